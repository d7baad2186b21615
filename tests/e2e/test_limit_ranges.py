"""LimitRanges, which the API server checks after us: no pod of ours is refused by one that would have taken it as written."""

import base64
import itertools
import json
import random
import re

import pytest

from tests.e2e.controlplane.plane import until
from tests.e2e.rig.cluster import pod
from tests.server.reviews import encoded
from tests.server.running import post
from webhook.cluster.errors import ClusterError
from webhook.core.limitranges import breaches, limits_of

SMALL = {"cpu": "6", "memory": "8Gi"}
NUMBER = itertools.count()


@pytest.fixture
def namespaces(plane, cluster):  # noqa: ARG001
    """Makes namespaces by mode."""
    made = []

    def make(mode="strict"):
        made.append(plane.namespace(f"limits-{next(NUMBER)}", {"numalign.io/mode": mode}))
        return made[-1]

    yield make
    plane.must("delete", "namespace", *made, "--wait=false")


def limit_range(*limits, name="bounds"):
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": list(limits)}}


def of_pods(**bounds):
    return limit_range({"type": "Pod", **bounds})


def with_sidecar(name="one", **more):
    """A pod that a small maximum of pods takes as written: one container has a limit, and those without count for nothing."""
    made = pod(name, **more)
    amounts = {"cpu": "1", "memory": "1Gi"}
    made["spec"]["containers"].append({"name": "proxy", "image": "example.invalid/x", "resources": {"limits": amounts}})
    return made


def create(plane, namespace, manifest, **query):
    return plane.api.create(f"/api/v1/namespaces/{namespace}/pods", manifest, **query)


def apply(plane, namespace, manifest):
    plane.must("apply", "-n", namespace, "-f", "-", manifest=manifest)


def limits(obj):
    return {each["name"]: each["resources"]["limits"] for each in obj["spec"]["containers"]}


def cpus(plane, namespace, manifest):
    """What the containers of a pod get together; None while a LimitRange refuses it, for want of knowledge of ours."""
    try:
        obj = create(plane, namespace, manifest, dryRun="All")
    except ClusterError as error:
        if "usage per Pod" not in str(error):
            raise
        return None
    return sum(int(each["cpu"].removesuffix("m")) * (1 if each["cpu"].endswith("m") else 1000) for each in limits(obj).values())


def _patch(replica, manifest, namespace):
    """What a replica answers to an API server that it cannot call back."""
    connection = replica.connect()
    answer, body = post(connection, "/mutate/pods/strict", encoded(manifest, namespace=namespace))
    connection.close()
    assert answer.status == 200
    return json.loads(base64.b64decode(json.loads(body)["response"]["patch"]))


def until_known(cluster, namespace):
    """Wait until every replica knows that six CPUs are the most."""
    for replica in cluster.replicas:
        most = {"op": "add", "path": "/spec/containers/0/resources/limits/cpu", "value": "6"}
        until(lambda: most in _patch(replica, pod("one"), namespace), what="the LimitRange to be known")  # noqa: B023


def test_a_share_is_cut_to_what_the_limit_range_takes(plane, cluster, namespaces):
    namespace = namespaces()
    apply(plane, namespace, of_pods(max=SMALL))
    until_known(cluster, namespace)
    dry = create(plane, namespace, with_sidecar(), dryRun="All")
    real = create(plane, namespace, with_sidecar())
    assert limits(dry) == limits(real)
    assert limits(real)["main"] == {"cpu": "4", "memory": "7Gi", "nvidia.com/gpu": "1"}
    assert all(each["resources"]["requests"] == each["resources"]["limits"] for each in real["spec"]["containers"])


def test_the_same_pod_passes_without_us_and_would_not_with_its_whole_share(plane, namespaces):
    """Else the test before this one would show nothing."""
    without, unknown = namespaces("off"), namespaces()
    apply(plane, without, of_pods(max=SMALL))
    create(plane, without, with_sidecar())
    whole = create(plane, unknown, with_sidecar(), dryRun="All")
    with pytest.raises(ClusterError, match="maximum cpu usage per Pod is 6"):
        create(plane, without, {**whole, "metadata": {"name": "whole"}})


def test_kubectl_says_why_a_pod_gets_less(plane, cluster, namespaces):
    namespace = namespaces()
    apply(plane, namespace, of_pods(max=SMALL))
    until_known(cluster, namespace)
    done = plane.kubectl("create", "-n", namespace, "-f", "-", manifest=pod("one"))
    assert done.code == 0, done.err
    told = f"Warning: numalign: less than its share: LimitRange {namespace}/bounds: max cpu per Pod is 6, the pod would get "
    assert told in done.err


def test_a_limit_range_counts_within_seconds_and_no_longer_than_it_is_there(plane, namespaces):
    namespace = namespaces()
    whole = cpus(plane, namespace, with_sidecar())
    assert whole > 6000
    for most in ("6", "4"):
        apply(plane, namespace, of_pods(max={"cpu": most, "memory": "8Gi"}))
        until(lambda: cpus(plane, namespace, with_sidecar()) == int(most) * 1000, seconds=10, what=f"{most} CPUs")  # noqa: B023
    plane.must("delete", "limitrange", "bounds", "-n", namespace)
    until(lambda: cpus(plane, namespace, with_sidecar()) == whole, seconds=10, what="the whole share")


@pytest.mark.parametrize("type_", ["Pod", "Container"])
def test_a_pod_that_cannot_be_aligned_within_it(plane, namespaces, type_):
    """Strict says why, and names the LimitRange; best-effort leaves the pod as written, which the LimitRange takes."""
    strict, lenient = namespaces(), namespaces("best-effort")
    bounds = limit_range({"type": type_, "max": {"cpu": "1"}, **({"default": {"cpu": "1"}} if type_ == "Container" else {})})
    manifest = with_sidecar(limits={"cpu": "500m", "memory": "1Gi"}) if type_ == "Container" else with_sidecar()
    for namespace in (strict, lenient):
        apply(plane, namespace, bounds)
    refused = until(lambda: _says(plane, strict, manifest, "changed, or use another namespace"), what="both replicas to know it")
    assert refused.code == 1
    assert f"LimitRange {strict}/bounds: max cpu per {type_} is 1, " in refused.err
    taken = until(lambda: _says(plane, lenient, manifest, "numalign: not shaped: LimitRange"), what="both replicas to know it")
    assert taken.code == 0, taken.err
    assert f"LimitRange {lenient}/bounds: max cpu per {type_} is 1, " in taken.err
    created = create(plane, lenient, manifest)
    assert "cpu" not in limits(created)["main"] or type_ == "Container"
    assert "numalign.io/injected" not in created["metadata"].get("annotations", {})


def _says(plane, namespace, manifest, text):
    done = plane.kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", manifest=manifest)
    return done if text in done.err else None


def test_what_we_take_for_refused_is_what_the_api_server_refuses(plane, namespaces):
    """Random pods and LimitRanges, away from our webhooks."""
    chance, verdicts = random.Random(7), []
    for _ in range(10):
        namespace, types = namespaces("off"), chance.sample(["Pod", "Container"], chance.randint(1, 2))
        bounds = limit_range(*(_random_item(chance, type_) for type_ in types))
        apply(plane, namespace, bounds)
        known = limits_of([{**bounds, "metadata": {"namespace": namespace, "name": "bounds"}}])[namespace]
        for _ in range(25):
            # without a limit a container would get the LimitRange's default
            manifest = _random_pod(chance, complete="Container" in types)
            verdicts.append(_is_refused(plane, namespace, manifest))
            assert verdicts[-1] == bool(breaches(manifest, known)), (manifest, bounds)
    assert 50 < sum(verdicts) < len(verdicts) - 50


def _is_refused(plane, namespace, manifest):
    try:
        create(plane, namespace, manifest, dryRun="All")
    except ClusterError as error:
        if not re.search("(usage|ratio) per (Pod|Container) is", str(error)):
            raise
        return True
    return False


AMOUNTS = {"cpu": ["100m", "499999u", "500m", "1", "1500m", "2"], "memory": ["64Mi", "100M", "1Gi", "1.5Gi", "2Gi"]}


def _random_item(chance, type_):
    field = chance.choice(["min", "max", "maxLimitRequestRatio"])
    sums = {"cpu": ["200m", "1", "2500m", "3"], "memory": ["128Mi", "1Gi", "2.5Gi", "4Gi"], "hugepages-2Mi": ["2Mi", "4Mi"]}
    ratios = ["1", "1500m", "2", "4"]
    offered = {"cpu": ratios, "memory": ratios} if field == "maxLimitRequestRatio" else sums
    resources = chance.sample(sorted(offered), chance.choice([1, 1, 2]))
    return {"type": type_, field: {resource: chance.choice(offered[resource]) for resource in resources}}


def _random_pod(chance, *, complete):
    apps = [_random_container(chance, f"app-{n}", complete) for n in range(chance.randint(1, 2))]
    inits = [_random_container(chance, f"init-{n}", complete) for n in range(chance.randint(0, 2))]
    for each in inits:
        if chance.random() < 0.5:
            each["restartPolicy"] = "Always"
    spec = {"containers": apps, "initContainers": inits}
    if chance.random() < 0.2:
        whole = {"cpu": chance.choice(["8", "9"]), "memory": "16Gi"}
        spec["resources"] = {"requests": whole, "limits": whole}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "random"}, "spec": spec}


def _random_container(chance, name, complete):
    requests, limits = {}, {}
    for resource, amounts in AMOUNTS.items():
        low, high = sorted((chance.randrange(len(amounts)), chance.randrange(len(amounts))))
        if complete or chance.random() < 0.7:
            limits[resource] = amounts[high]
        if complete or chance.random() < 0.7:
            requests[resource] = amounts[low]
    if complete or (chance.random() < 0.3 and "memory" in limits):
        limits["hugepages-2Mi"] = requests["hugepages-2Mi"] = "2Mi"
    return {"name": name, "image": "example.invalid/x", "resources": {"requests": requests, "limits": limits}}


def test_the_last_known_limit_ranges_count_while_the_api_server_is_away(plane, cluster, namespaces):
    namespace = namespaces()
    apply(plane, namespace, of_pods(max=SMALL))
    until_known(cluster, namespace)
    plane.apiserver.stop(seconds=5.0)  # it would wait a minute for watches to end
    try:
        for replica in cluster.replicas:
            for name in ("one", "two", "three"):
                patch = _patch(replica, with_sidecar(name), namespace)
                assert {"op": "add", "path": "/spec/containers/0/resources/limits/cpu", "value": "4"} in patch
    finally:
        plane.apiserver.start()
        plane.await_apiserver()
    plane.must("delete", "limitrange", "bounds", "-n", namespace)
    until(lambda: (cpus(plane, namespace, with_sidecar()) or 0) > 6000, what="what happened since")
