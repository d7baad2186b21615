"""Claims from templates, allocated by the real scheduler from slices that no driver stands behind."""

import json

import pytest

from tests.e2e.controlplane.plane import until
from tests.e2e.rig.cluster import pod
from webhook.cluster.claims import CachedLookup
from webhook.cluster.errors import ClusterError
from webhook.cluster.relay import RelayClient
from webhook.core.dra.manifests import claim_of
from webhook.core.dra.references import TEMPLATE, Reference

RESOURCES = "/apis/resource.k8s.io/v1"
NUMA = "resource.kubernetes.io/numaNode"
CLASSES = {
    "gpu.nvidia.com": "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",
    "dranet": "device.driver == 'dra.net'",
}
PLACES = {"gpu-0": 0, "gpu-1": 0, "gpu-2": 1, "gpu-3": 1, "nic-0": 1, "nic-1": 1}
"""Device -> NUMA node. Left to itself, the allocator takes the first GPUs, which are far from every NIC."""

NODES = ("dra-1", "dra-2", "dra-3")


def slices(node):
    for driver, prefix in (("gpu.nvidia.com", "gpu"), ("dra.net", "nic")):
        attributes = {"type": {"string": "gpu"}} if prefix == "gpu" else {}
        found = [
            {"name": name, "attributes": attributes | {NUMA: {"int": numa}}}
            for name, numa in PLACES.items()
            if name.startswith(prefix)
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{prefix}"},
            "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": found},
        }


NODE_CLASS = {
    "apiVersion": "numalign.io/v1alpha1",
    "kind": "NodeClass",
    "metadata": {"name": "dra"},
    "spec": {
        "selector": {"example.com/machine": "dra"},
        "topology": {"sockets": 2, "numaNodes": [{"id": numa, "cpus": 32, "memory": "128Gi"} for numa in (0, 1)]},
        "kubelet": {
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "single-numa-node",
            "topologyManagerScope": "pod",
            "systemReserved": {"cpu": "2", "memory": "2Gi"},
        },
        "resourceSlices": list(slices("any")),
    },
}


@pytest.fixture(scope="module")
def nodes(plane, cluster):
    """Nodes with devices, which the webhook knows from the file that its sidecar writes."""
    for name, expression in CLASSES.items():
        made = {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
        plane.api.create(f"{RESOURCES}/deviceclasses", made)
    everything = [each for node in NODES for each in slices(node)]
    for node in NODES:
        plane.node(node, {"cpu": "64", "memory": "256Gi"}, {})
    for each in everything:
        plane.api.create(f"{RESOURCES}/resourceslices", each)
    for replica in cluster.replicas:
        (replica.directory("classes") / "dra.yaml").write_text(json.dumps(NODE_CLASS))
    until(lambda: _is_changed(plane), what="the webhook to know the slices")


def requests(gpus=2):
    return [
        {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": gpus}},
        {"name": "nic", "exactly": {"deviceClassName": "dranet"}},
    ]


def by_hand(name, gpus=2):
    metadata = {"name": name, "ownerReferences": []}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    return {**kind, "metadata": metadata, "spec": {"devices": {"requests": requests(gpus)}}}


def _is_changed(plane):
    done = plane.kubectl("create", "-n", "strict", "--dry-run=server", "-o", "json", "-f", "-", manifest=by_hand("try"))
    return done.code == 0 and "constraints" in json.loads(done.out)["spec"]["devices"]


def claimed(plane, namespace, name, node):
    """Create a template and a pod with a claim of it, and return the claim once it is allocated."""
    plane.api.create(f"{RESOURCES}/namespaces/{namespace}/resourceclaimtemplates", template(name, 2))
    made = referring(name)
    made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    plane.api.create(f"/api/v1/namespaces/{namespace}/pods", made)
    return until(lambda: _allocated(plane, namespace, name), what=f"an allocation for {name}")


def _allocated(plane, namespace, name):
    found = plane.api.get(f"{RESOURCES}/namespaces/{namespace}/resourceclaims")["items"]
    mine = (each for each in found if each["metadata"]["ownerReferences"][0]["name"] == name)
    return next((each for each in mine if (each.get("status") or {}).get("allocation")), None)


def template(name, gpus):
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name}}
    return {**kind, "spec": {"spec": {"devices": {"requests": requests(gpus)}}}}


def referring(name):
    """A pod with a claim from a template; of the classes there are, only the one with devices states no other product."""
    made = pod(name, 0, nodeSelector={"nvidia.com/gpu.product": "claimed"})
    made["spec"]["resourceClaims"] = [{"name": "devices", "resourceClaimTemplateName": name}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "devices"}]
    return made


def _is_denied(plane, name):
    done = plane.kubectl("create", "-n", "strict", "--dry-run=server", "-f", "-", manifest=referring(name))
    return "denied the request" in done.err


def numa_nodes(claim):
    return {PLACES[each["device"]] for each in claim["status"]["allocation"]["devices"]["results"]}


@pytest.mark.usefixtures("nodes")
class TestClaims:
    def test_left_alone_the_allocator_mixes_numa_nodes(self, plane):
        claim = claimed(plane, "off", "alone", "dra-1")
        assert numa_nodes(claim) == {0, 1}

    def test_required(self, plane):
        claim = claimed(plane, "strict", "required", "dra-2")
        assert claim["spec"]["devices"]["constraints"] == [{"matchAttribute": NUMA, "requests": ["gpu", "nic"]}]
        assert numa_nodes(claim) == {1}

    def test_a_template_is_looked_up_as_the_pod_names_it(self, plane, cluster):
        """Through the sidecar's socket, with what the roles in deploy/ let it read."""
        plane.api.create(f"{RESOURCES}/namespaces/strict/resourceclaimtemplates", template("looked-up", 2))
        lookup = CachedLookup(RelayClient(cluster.replicas[0].directory("cluster") / "claims.sock"))
        found = lookup.find("strict", Reference("devices", TEMPLATE, "looked-up", 0))
        assert claim_of(found)["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
        assert lookup.find("strict", Reference("devices", TEMPLATE, "nobody", 0)) is None

    def test_a_pod_whose_template_no_node_can_satisfy_is_refused(self, plane):
        """Its claim would be made later, by a controller, out of sight of whoever made the pod."""
        done = plane.kubectl("create", "-n", "strict", "-f", "-", manifest=[template("too-many", 4), referring("too-many")])
        assert done.code == 1
        assert 'admission webhook "strict.claims.numalign.io" denied the request: spec.resourceClaims[0]' in done.err
        assert "at most 2 share one" in done.err

    def test_a_pod_whose_template_can_be_satisfied_is_admitted(self, plane):
        done = plane.kubectl("create", "-n", "strict", "-f", "-", manifest=[template("enough", 2), referring("enough")])
        assert done.code == 0, done.err
        assert "not judged" not in done.err

    @pytest.mark.parametrize(("of", "sized"), [(requests(2)[:1], True), (requests(2), False)], ids=["gpus", "gpus-and-nic"])
    def test_a_pod_is_sized_only_where_its_first_cpus_are_beside_its_first_devices(self, plane, of, sized):
        """The kubelet's first CPUs are on node 0, and so are the first GPUs, but not those beside a NIC."""
        name = f"of-{len(of)}"
        made = template(name, 2)
        made["spec"]["spec"]["devices"]["requests"] = of
        plane.api.create(f"{RESOURCES}/namespaces/strict/resourceclaimtemplates", made)
        done = plane.kubectl("create", "-n", "strict", "--dry-run=server", "-o", "json", "-f", "-", manifest=referring(name))
        assert done.code == 0, done.err
        limits = json.loads(done.out)["spec"]["containers"][0]["resources"].get("limits", {})
        assert (limits.get("cpu") == "30") is sized
        assert ("no component aligns them with each other" in done.err) is sized
        assert ("its CPUs would be away from its devices" in done.err) is not sized

    def test_a_pod_that_asks_for_more_than_any_node_has_is_refused(self, plane):
        done = plane.kubectl("create", "-n", "strict", "-f", "-", manifest=[template("nine", 9), referring("nine")])
        assert done.code == 1
        assert "devices/gpu asks for 9 devices; 4 there" in done.err

    def test_without_its_sidecar_the_server_admits_and_says_what_it_could_not_read(self, plane, cluster):
        plane.api.create(f"{RESOURCES}/namespaces/strict/resourceclaimtemplates", template("unread", 4))
        for replica in cluster.replicas:
            replica.sidecar.stop()
        try:
            done = plane.kubectl("create", "-n", "strict", "--dry-run=server", "-f", "-", manifest=referring("unread"))
            assert done.code == 0, done.err
            assert "Warning: numalign: claims were not read, so not judged: ResourceClaimTemplate unread" in done.err
        finally:
            for replica in cluster.replicas:
                replica.sidecar.start()
        until(lambda: _is_denied(plane, "unread"), what="lookups by the new sidecars")

    def test_preferred_and_what_becomes_of_it_where_no_numa_node_is_left(self, plane):
        first = claimed(plane, "best-effort", "first", "dra-3")
        assert [each["name"] for each in first["spec"]["devices"]["requests"][0]["firstAvailable"]] == ["aligned", "any"]
        assert numa_nodes(first) == {1}
        second = claimed(plane, "best-effort", "second", "dra-3")
        assert numa_nodes(second) == {0, 1}
        assert {each["request"] for each in second["status"]["allocation"]["devices"]["results"]} == {"gpu/any", "nic"}

    def test_a_claim_written_by_hand_that_no_node_can_satisfy_is_refused(self, plane):
        done = plane.kubectl("create", "-n", "strict", "-f", "-", manifest=by_hand("four", 4))
        assert done.code == 1
        assert 'admission webhook "strict.resourceclaims.numalign.io" denied the request: ' in done.err
        assert "at most 2 share one" in done.err
        with pytest.raises(ClusterError):
            plane.api.get(f"{RESOURCES}/namespaces/strict/resourceclaims/four")

    def test_the_same_in_best_effort_is_a_warning(self, plane):
        done = plane.kubectl("create", "-n", "best-effort", "--dry-run=server", "-f", "-", manifest=by_hand("four", 4))
        assert done.code == 0, done.err
        assert "Warning: numalign: claim not aligned: no node has 4 gpu and 1 nic with one" in done.err
