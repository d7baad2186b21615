"""Other webhooks and admission plugins around us."""

import json
from contextlib import contextmanager

import pytest

from tests.e2e.controlplane.plane import until
from tests.e2e.rig.cluster import pod
from tests.e2e.rig.injector import Injector
from webhook.cluster.errors import ClusterError

pytestmark = pytest.mark.usefixtures("cluster")
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
LIGHT = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
GREEDY = {"requests": {"cpu": "100", "memory": "128Mi"}, "limits": {"cpu": "100", "memory": "128Mi"}}


@pytest.fixture
def namespace(plane, request):
    name = f"near-{abs(hash(request.node.name)) % 10**8}"
    yield plane.namespace(name, {"numalign.io/mode": "strict"})
    plane.must("delete", "namespace", name, "--wait=false")


@pytest.fixture
def create(plane, namespace):
    def run(manifest, **query):
        return plane.api.create(f"/api/v1/namespaces/{namespace}/pods", manifest, dryRun="All", **query)

    return run


@contextmanager
def injecting(plane, create, name, namespace, resources):
    """An injector whose registration counts already; after it, its absence does."""

    def counts():
        return any(each["name"] == "proxy" for each in create(pod("probe", 0))["spec"]["containers"])

    with Injector(plane, name, namespace, resources) as injector:
        until(counts, what=f"the injector {name}")
        yield injector
    until(lambda: not counts(), what=f"the end of {name}")


def resources(obj, name):
    return next(each["resources"] for each in obj["spec"]["containers"] if each["name"] == name)


@pytest.mark.parametrize("name", ["aaa-injector", "zzz-injector"], ids=["before us", "after us"])
def test_an_injected_sidecar_leaves_the_pod_aligned(plane, create, namespace, name):
    with injecting(plane, create, name, namespace, LIGHT):
        obj = create(pod("one"))
    main, proxy = resources(obj, "main"), resources(obj, "proxy")
    assert main["limits"]["cpu"].isdigit()
    assert main["requests"] == main["limits"]
    assert proxy["requests"] == proxy["limits"]
    assert not proxy["limits"]["cpu"].isdigit()
    injected = json.dumps(json.loads(obj["metadata"]["annotations"]["numalign.io/injected"]))
    assert "containers/1" in injected or "proxy" in injected


def test_the_order_of_webhooks_does_not_matter(plane, create, namespace):
    results = []
    for name in ("aaa-injector", "zzz-injector"):
        with injecting(plane, create, name, namespace, LIGHT):
            results.append(create(pod("one", nodeSelector=H100)))
    by_name = [{each["name"]: each["resources"] for each in obj["spec"]["containers"]} for obj in results]
    assert by_name[0] == by_name[1]


def test_the_refusal_names_the_sidecar_that_spoils_the_pod(plane, create, namespace):
    manifest = pod("four", 4, cpu=40, limits={"cpu": "40", "memory": "64Gi"}, memory="64Gi", nodeSelector=H100)
    create(manifest)
    with (
        injecting(plane, create, "zzz-injector", namespace, GREEDY),
        pytest.raises(ClusterError, match="denied the request") as refused,
    ):
        create(manifest)
    assert "proxy" in str(refused.value)


def test_a_quota_sees_what_we_inject(plane, create, namespace):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"requests.cpu": "4"}}}
    plane.must("create", "-n", namespace, "-f", "-", manifest=quota)
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/few"
    until(lambda: plane.api.get(path).get("status", {}).get("hard"), what="the quota")
    with pytest.raises(ClusterError, match="exceeded quota"):
        create(pod("one"))


def test_a_quota_that_demands_requests_is_satisfied_by_us(plane, create, namespace):
    hard = {"requests.cpu": "200", "limits.cpu": "200", "requests.memory": "2Ti", "limits.memory": "2Ti"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"}, "spec": {"hard": hard}}
    plane.must("create", "-n", namespace, "-f", "-", manifest=quota)
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/all"
    until(lambda: plane.api.get(path).get("status", {}).get("hard"), what="the quota")
    create(pod("one"))


@pytest.mark.parametrize(
    "bounds",
    [
        {"default": {"cpu": "6", "memory": "8Gi"}, "defaultRequest": {"cpu": "2", "memory": "8Gi"}},
        {"max": {"cpu": "6", "memory": "8Gi"}},
    ],
    ids=["defaults", "maximum"],
)
def test_a_limit_range_of_containers_is_kept(plane, create, namespace, bounds):
    """It gives its defaults before we are asked, and a maximum without a default is one; we never raise a limit that is there."""
    plane.must("create", "-n", namespace, "-f", "-", manifest=limit_range([{"type": "Container", **bounds}]))
    given = until(lambda: _limited(create), what="the LimitRange")
    assert given["requests"] == given["limits"] == {"cpu": "6", "memory": "8Gi", "nvidia.com/gpu": "1"}


def _limited(create):
    given = resources(create(pod("one")), "main")
    return given if int(given["limits"]["cpu"]) <= 6 else None


def limit_range(limits):
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds"}, "spec": {"limits": limits}}


def test_pod_security_restricted_takes_what_we_return(plane, create, namespace):
    plane.must("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    manifest = pod("one")
    manifest["spec"]["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    drop = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    manifest["spec"]["containers"][0]["securityContext"] = drop
    assert resources(create(manifest), "main")["limits"]["cpu"].isdigit()


def test_a_runtime_classs_overhead_and_a_priority_class_are_kept(plane, create):
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sandboxed"}, "handler": "kata"}
    runtime["overhead"] = {"podFixed": {"cpu": "250m", "memory": "160Mi"}}
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    plane.must("create", "-f", "-", manifest=[runtime, priority])
    obj = until(lambda: _created(create), what="the RuntimeClass")
    assert obj["spec"]["overhead"] == {"cpu": "250m", "memory": "160Mi"}
    assert obj["spec"]["priority"] == 1000
    assert resources(obj, "main")["limits"]["cpu"].isdigit()


def _created(create):
    try:
        return create(pod("one", runtimeClassName="sandboxed", priorityClassName="urgent"))
    except ClusterError as error:
        if "sandboxed" in str(error) or "urgent" in str(error):
            return None  # the API server's own cache does not have them yet
        raise
