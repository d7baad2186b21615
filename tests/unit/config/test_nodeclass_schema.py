"""Each thing that can be wrong with a NodeClass document, and where it is said to be."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.config.documents import read_text
from webhook.config.load import parse_class
from webhook.core.model import Hami, SpreadDevices, Taint

REMOVED = object()


def fresh():
    """A sound document; hypothesis wants one for each example, which no fixture gives."""
    nodes = [{"id": 0, "cpus": 4, "memory": "64Gi"}, {"id": 1, "cpus": 4, "memory": "64Gi"}]
    return {
        "apiVersion": "numalign.io/v1alpha1",
        "kind": "NodeClass",
        "metadata": {"name": "x"},
        "spec": {"selector": {"a": "b"}, "topology": {"sockets": 1, "numaNodes": nodes}},
    }


TOPOLOGY = ("spec", "topology")
NODES = (*TOPOLOGY, "numaNodes")


def put(document, path, value):
    *way, last = path
    parent = reduce(lambda inner, step: inner[step], way, document)
    if value is REMOVED:
        del parent[last]
    else:
        parent[last] = value
    return document


def errors_of(document):
    node_class, errors = parse_class(document)
    assert (node_class is None) == bool(errors)
    return {error.path: error.message for error in errors}


def test_a_sound_document_has_none(document):
    assert errors_of(document) == {}


CASES = [
    (("apiVersion",), "numalign.io/v2", "apiVersion", "expected one of numalign.io/v1alpha1"),
    (("kind",), "NodeClas", "kind", "did you mean NodeClass?"),
    (("kind",), REMOVED, "kind", "is required"),
    (("metadata",), REMOVED, "metadata", "is required"),
    (("metadata", "name"), "Box!", "metadata.name", "expected a name"),
    (("metadata", "uid"), "x", "metadata.uid", "is no known field"),
    (("spec",), 3, "spec", "expected a mapping of fields"),
    (("spec",), None, "spec", "is required"),
    (("spec", "selectr"), {}, "spec.selectr", "is no known field; did you mean selector?"),
    (("spec", "selector"), ["a"], "spec.selector", "expected a mapping"),
    (("spec", "selector"), {"a b": "c"}, "spec.selector.a b", "expected a label key"),
    (("spec", "selector"), {"a": True}, "spec.selector.a", "expected a label value"),
    (("spec", "selector"), {"a": "x" * 64}, "spec.selector.a", "at most 63"),
    (("spec", "labels"), {"example.com/machine": "other"}, "spec.labels[example.com/machine]", "cannot be both"),
    (("spec", "taints"), [{"key": "k", "effect": "NoSchedul"}], "spec.taints[0].effect", "did you mean NoSchedule?"),
    (("spec", "taints"), {"key": "k"}, "spec.taints", "expected a list"),
    (("spec", "kubernetes"), 1.37, "spec.kubernetes", "in quotes, got 1.37"),
    (("spec", "kubernetes"), "2.0", "spec.kubernetes", 'expected a version such as "1.37"'),
    (("spec", "kubelet"), ["x"], "spec.kubelet", "expected fields of a KubeletConfiguration"),
    (("spec", "daemonSets"), {"cpu": "-1"}, "spec.daemonSets.cpu", "not negative"),
    (("spec", "daemonSets"), {"memory": "2Gib"}, "spec.daemonSets.memory", "expected a quantity such as 512Gi"),
    (("spec", "sharing"), {"nvidia.com/gpu": 0}, "spec.sharing[nvidia.com/gpu]", "at least 1"),
    (("spec", "sharing"), {"gpu": 4}, "spec.sharing.gpu", "expected a resource name"),
    (("spec", "deviceSpecs"), "passd", "spec.deviceSpecs", "did you mean passed?"),
    (("spec", "hami"), {"mode": "hami"}, "spec.hami.mode", "expected one of hami-core, mig, mps"),
    (("spec", "hami"), {"deviceSplitCount": -1}, "spec.hami.deviceSplitCount", "at least 1"),
    (("spec", "hami"), {"refit": "yes"}, "spec.hami.refit", "expected true or false"),
    (("spec", "source"), 5, "spec.source", "expected a text"),
    (TOPOLOGY, REMOVED, "spec.topology", "is required"),
    ((*TOPOLOGY, "sockets"), 0, "spec.topology.sockets", "at least 1"),
    ((*TOPOLOGY, "sockets"), "2", "spec.topology.sockets", "expected a whole number"),
    ((*TOPOLOGY, "sockets"), 9, "spec.topology.sockets", "only 8 cores"),
    ((*TOPOLOGY, "threadsPerCore"), True, "spec.topology.threadsPerCore", "expected a whole number"),
    (
        (*TOPOLOGY, "threadsPerCore"),
        3,
        "spec.topology.numaNodes[1].cpus",
        "8 CPUs are no whole number of cores at threadsPerCore 3",
    ),
    ((*TOPOLOGY, "cpuNumbering"), "neighbours", "spec.topology.cpuNumbering", "expected one of split, adjacent"),
    ((*TOPOLOGY, "coresPerUncoreCache"), 0, "spec.topology.coresPerUncoreCache", "at least 1"),
    (
        (*TOPOLOGY, "devicesWithoutTopology"),
        {"nvidia.com/gpu": -1},
        "spec.topology.devicesWithoutTopology[nvidia.com/gpu]",
        "at least 0",
    ),
    (
        (*TOPOLOGY, "devicesOnSeveralNodes"),
        [{"resource": "a/b", "count": 1, "numaNodes": [0, 7]}],
        "spec.topology.devicesOnSeveralNodes[0].numaNodes",
        "NUMA node 7 does not exist",
    ),
    (
        (*TOPOLOGY, "devicesOnSeveralNodes"),
        [{"resource": "a/b", "count": 1, "numaNodes": [0]}],
        "spec.topology.devicesOnSeveralNodes[0].numaNodes",
        "expected a list",
    ),
    (NODES, REMOVED, "spec.topology.numaNodes", "is required"),
    (NODES, {}, "spec.topology.numaNodes", "expected a list of NUMA nodes"),
    (NODES, [], "spec.topology.numaNodes", "at least one NUMA node with CPUs"),
    (NODES, [{"id": 0, "memory": "1Gi"}], "spec.topology.numaNodes", "at least one NUMA node with CPUs"),
    ((*NODES, 1), "x", "spec.topology.numaNodes[1]", "expected a mapping of fields"),
    ((*NODES, 1, "id"), 0, "spec.topology.numaNodes[1].id", "NUMA node 0 stands at numaNodes[0] already"),
    ((*NODES, 1, "id"), -1, "spec.topology.numaNodes[1].id", "at least 0"),
    ((*NODES, 1, "id"), REMOVED, "spec.topology.numaNodes[1].id", "is required"),
    ((*NODES, 1, "cpus"), "4-7;12", "spec.topology.numaNodes[1].cpus", "expected a CPU list such as 0-55,112-167"),
    ((*NODES, 1, "cpus"), "7-4", "spec.topology.numaNodes[1].cpus", "expected a CPU list"),
    ((*NODES, 1, "cpus"), "4,4", "spec.topology.numaNodes[1].cpus", "lists a CPU twice"),
    ((*NODES, 1, "cpus"), "0-99999", "spec.topology.numaNodes[1].cpus", "expected a CPU list"),
    ((*NODES, 1, "cpus"), [4, 5], "spec.topology.numaNodes[1].cpus", "expected a CPU list"),
    ((*NODES, 1, "cpus"), "3-6,12-15", "spec.topology.numaNodes[1].cpus", "CPU 3 is on NUMA node 0 already"),
    ((*NODES, 1, "cpus"), 8, "spec.topology.numaNodes[1].cpus", "expected a list of CPU ids, as on the other NUMA nodes"),
    ((*NODES, 1, "memory"), REMOVED, "spec.topology.numaNodes[1].memory", "is required"),
    ((*NODES, 1, "memory"), "64 GB", "spec.topology.numaNodes[1].memory", "expected a quantity"),
    ((*NODES, 1, "memory"), "-64Gi", "spec.topology.numaNodes[1].memory", "not negative"),
    ((*NODES, 1, "hugepages"), {"1Gi": "65Gi"}, "spec.topology.numaNodes[1].hugepages", "the node has 64Gi of memory"),
    ((*NODES, 1, "hugepages"), {"1Gi": "40Gi", "2Mi": "40Gi"}, "spec.topology.numaNodes[1].hugepages", "take 80Gi"),
    ((*NODES, 1, "hugepages"), {"1Gi": "1536Mi"}, "spec.topology.numaNodes[1].hugepages", "no whole number of pages"),
    ((*NODES, 1, "hugepages"), {"3Mi": "3Mi"}, "spec.topology.numaNodes[1].hugepages.3Mi", "a power of two"),
    (
        (*NODES, 1, "hugepages"),
        {"1Gi": "1Gi", "1024Mi": "1Gi"},
        "spec.topology.numaNodes[1].hugepages.1024Mi",
        "stands here twice",
    ),
    ((*NODES, 1, "distances"), [21], "spec.topology.numaNodes[1].distances", "expected 2 distances"),
    ((*NODES, 1, "distances"), [21, 0], "spec.topology.numaNodes[1].distances[1]", "at least 1"),
    ((*NODES, 1, "devices"), {"nvidia.com/gpu": -2}, "spec.topology.numaNodes[1].devices[nvidia.com/gpu]", "at least 0, got -2"),
    (
        (*NODES, 1, "devices"),
        {"nvidia.com/gpu": 1.5},
        "spec.topology.numaNodes[1].devices[nvidia.com/gpu]",
        "expected a whole number",
    ),
    ((*NODES, 1, "device"), {}, "spec.topology.numaNodes[1].device", "did you mean devices?"),
]


@pytest.mark.parametrize(("at", "value", "path", "message"), CASES, ids=[f"{c[2]}-{i}" for i, c in enumerate(CASES)])
def test_says_what_is_wrong_and_where(document, at, value, path, message):
    found = errors_of(put(document, at, value))
    assert message in found[path]


def test_all_errors_come_at_once(document):
    document["spec"]["selector"] = {"a b": "c"}
    document["spec"]["topology"]["numaNodes"][0]["cpus"] = "x"
    document["spec"]["topology"]["numaNodes"][1]["memory"] = "y"
    document["spec"]["hami"] = {"mode": "z"}
    document["metadata"]["name"] = "?"
    document["extra"] = 1
    assert set(errors_of(document)) == {
        "spec.selector.a b",
        "spec.topology.numaNodes[0].cpus",
        "spec.topology.numaNodes[1].memory",
        "spec.hami.mode",
        "metadata.name",
        "extra",
    }


def test_judging_takes_no_selector(document):
    del document["spec"]["selector"]
    assert errors_of(document) == {}


def test_sharing_must_agree_with_hami(document):
    document["spec"] |= {"hami": {"deviceSplitCount": 10}, "sharing": {"nvidia.com/gpu": 4}}
    assert "hami.deviceSplitCount" in errors_of(document)["spec.sharing[nvidia.com/gpu]"]


@pytest.mark.parametrize("value", [None, 3, "text", [], [1]])
def test_what_is_no_document_is_an_error(value):
    assert "" in errors_of(value)


def test_null_is_absent(document):
    document["spec"] |= {"labels": None, "taints": None, "hami": None, "sharing": None, "daemonSets": None}
    document["spec"]["topology"] |= {"coresPerUncoreCache": None, "devicesWithoutTopology": None, "nonsense": None}
    assert errors_of(document) == {}


def test_everything_arrives_in_the_model(document):
    spec, topology = document["spec"], document["spec"]["topology"]
    spec |= {
        "labels": {"zone": "a"},
        "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        "kubernetes": "v1.36.3",
        "daemonSets": {"cpu": "500m", "memory": "2Gi"},
        "sharing": {"nvidia.com/gpu": 4},
        "deviceSpecs": "notPassed",
        "source": "the vendor",
    }
    topology |= {
        "devicesWithoutTopology": {"a/b": 3},
        "devicesOnSeveralNodes": [{"resource": "c/d", "count": 2, "numaNodes": [1, 0]}],
        "cpuNumbering": "adjacent",
        "coresPerUncoreCache": 2,
    }
    topology["numaNodes"][0] |= {"hugepages": {"1024Mi": "4Gi"}, "distances": [10, 32]}
    node_class, _ = parse_class(document)
    assert (node_class.name, node_class.minor, node_class.selector) == ("box", 36, {"example.com/machine": "box"})
    assert (node_class.labels, node_class.taints) == ({"zone": "a"}, (Taint("nvidia.com/gpu", "", "NoSchedule"),))
    assert (node_class.daemon_cpu, node_class.daemon_memory) == (500, 2 * 1024**3)
    assert (node_class.sharing, node_class.device_specs, node_class.source) == ({"nvidia.com/gpu": 4}, "notPassed", "the vendor")
    assert node_class.kubelet == spec["kubelet"]
    machine = node_class.topology
    assert (machine.sockets, machine.threads_per_core, machine.adjacent_siblings, machine.cores_per_uncore_cache) == (
        2,
        2,
        True,
        2,
    )
    assert machine.devices_without_topology == {"a/b": 3}
    assert machine.devices_on_several_nodes == (SpreadDevices("c/d", 2, (0, 1)),)
    first = machine.numa_nodes[0]
    assert (first.cpus, first.memory, first.hugepages) == ((0, 1, 2, 3, 8, 9, 10, 11), 64 * 1024**3, {1024**3: 4 * 1024**3})
    assert (first.distances, first.devices) == ((10, 32), {"nvidia.com/gpu": 2})


@pytest.mark.parametrize(
    ("hami", "sharing", "expected"),
    [
        ({}, {}, {"nvidia.com/gpu": 10}),
        ({"deviceSplitCount": 4}, {}, {"nvidia.com/gpu": 4}),
        ({"deviceSplitCount": 4}, {"nvidia.com/gpu": 4}, {"nvidia.com/gpu": 4}),
        ({"mode": "mig"}, {}, {}),
        (None, {"a/b": 2}, {"a/b": 2}),
    ],
)
def test_hami_advertises_each_gpu_several_times(document, hami, sharing, expected):
    document["spec"] |= {"hami": hami, "sharing": sharing}
    node_class, errors = parse_class(document)
    assert errors == ()
    assert node_class.sharing == expected


def test_hami_defaults(document):
    document["spec"]["hami"] = {"numaTopology": True}
    node_class, _ = parse_class(document)
    assert node_class.hami == Hami("hami-core", numa_topology=True, device_split_count=10, refit=False)


def cpus_of(document, counts, **topology):
    document["spec"]["topology"] |= {"threadsPerCore": 2, **topology}
    document["spec"]["topology"]["numaNodes"] = [{"id": i, "cpus": count, "memory": "8Gi"} for i, count in enumerate(counts)]
    node_class, errors = parse_class(document)
    assert errors == ()
    return [node.cpus for node in node_class.topology.numa_nodes]


@pytest.mark.parametrize(
    ("counts", "numbering", "expected"),
    [
        ([4, 4], "split", [(0, 1, 4, 5), (2, 3, 6, 7)]),
        ([4, 4], "adjacent", [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ([4, 2, 0], "split", [(0, 1, 3, 4), (2, 5), ()]),
        (["0-1,4-5", "", "2-3,6-7"], "split", [(0, 1, 4, 5), (), (2, 3, 6, 7)]),
        (["0-1,4-5", 0, "2-3,6-7"], "split", [(0, 1, 4, 5), (), (2, 3, 6, 7)]),
        ([" 5 , 0-1 , 4 "], "split", [(0, 1, 4, 5)]),
    ],
)
def test_cpu_lists_and_counts(document, counts, numbering, expected):
    assert cpus_of(document, counts, cpuNumbering=numbering, sockets=1) == expected


def test_numa_nodes_are_sorted_by_id_before_cpus_are_numbered(document):
    nodes = [{"id": 1, "cpus": 2, "memory": "8Gi"}, {"id": 0, "cpus": 2, "memory": "8Gi"}]
    document["spec"]["topology"] |= {"numaNodes": nodes, "threadsPerCore": 1}
    node_class, _ = parse_class(document)
    assert [(node.id, node.cpus) for node in node_class.topology.numa_nodes] == [(0, (0, 1)), (1, (2, 3))]


@given(
    st.lists(st.integers(0, 6).map(lambda cores: cores * 2), min_size=1, max_size=5).filter(any),
    st.sampled_from(["split", "adjacent"]),
)
def test_counted_cpus_are_all_ids_once(counts, numbering):
    cpus = cpus_of(fresh(), counts, cpuNumbering=numbering)
    assert [len(mine) for mine in cpus] == counts
    assert sorted(cpu for mine in cpus for cpu in mine) == list(range(sum(counts)))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from([case[0] for case in CASES]),
)
def test_nonsense_anywhere_is_an_error_or_fine_but_never_a_crash(value, at):
    node_class, errors = parse_class(put(fresh(), at, value))
    assert (node_class is None) == bool(errors)


@pytest.mark.parametrize("written", ["0-1,4-5", "0,1,4,5", "'0-1,4-5'"])
def test_a_cpu_list_in_braces_needs_no_quotes(written):
    text = f"""
        apiVersion: numalign.io/v1alpha1
        kind: NodeClass
        metadata: {{name: x}}
        spec:
          selector: {{a: b}}
          topology:
            numaNodes:
            - {{id: 0, cpus: {written}, memory: 64Gi}}
            - {{id: 1, cpus: 2-3,6-7, memory: 64Gi}}
            sockets: 1
    """
    (document,), _ = read_text(text, "x.yaml")
    node_class, errors = parse_class(document)
    assert errors == ()
    assert [node.cpus for node in node_class.topology.numa_nodes] == [(0, 1, 4, 5), (2, 3, 6, 7)]
