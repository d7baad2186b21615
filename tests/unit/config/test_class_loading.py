"""Loading node classes from files: what counts, what is refused beyond the document's shape, and what only deserves a look."""

from copy import deepcopy

import pytest
import yaml

from webhook.config.load import load_builtin_classes, load_classes

GI = 1024**3

SEED = """
apiVersion: numalign.io/v1alpha1
kind: NodeClass
metadata: {name: dgx}
spec:
  selector: {nvidia.com/gpu.machine: DGXH100}
  topology:
    sockets: 2
    threadsPerCore: 2
    numaNodes:
    - {id: 0, cpus: '0-55,112-167', memory: 512Gi, hugepages: {1Gi: 64Gi}, devices: {nvidia.com/gpu: 4}}
    - {id: 1, cpus: '56-111,168-223', memory: 512Gi, hugepages: {1Gi: 64Gi}, devices: {nvidia.com/gpu: 4}}
  kubelet:
    cpuManagerPolicy: static
    cpuManagerPolicyOptions: {full-pcpus-only: "true"}
    systemReserved: {cpu: "4", memory: 8Gi}
    kubeReserved: {cpu: "2", memory: 4Gi}
    memoryManagerPolicy: Static
    reservedMemory:
    - {numaNode: 0, limits: {hugepages-1Gi: 8Gi}}
    - {numaNode: 1, limits: {hugepages-1Gi: 8Gi}}
    topologyManagerPolicy: single-numa-node
    topologyManagerScope: pod
"""


def write(path, *documents):
    path.write_text("---\n".join(yaml.safe_dump(document) for document in documents))
    return path


def named(document, name, **selector):
    document = deepcopy(document)
    document["metadata"]["name"] = name
    document["spec"]["selector"] = selector or {"machine": name}
    return document


def names(loaded):
    return [kubelet.node_class.name for kubelet in loaded.classes]


def test_a_file_may_hold_documents_lists_and_objects_with_items(tmp_path, document):
    one, two, three, four = (named(document, name) for name in ("one", "two", "three", "four"))
    file = write(tmp_path / "all.yaml", one, [two, three], {"kind": "List", "items": [four]}, None)
    loaded = load_classes([file])
    assert loaded.errors == ()
    assert names(loaded) == ["four", "one", "three", "two"]


def test_a_directory_counts_without_hidden_files_and_subdirectories(tmp_path, document):
    write(tmp_path / "b.yaml", named(document, "b"))
    write(tmp_path / "a.yml", named(document, "a"))
    (tmp_path / "c.json").write_text(yaml.safe_dump(named(document, "c"), default_flow_style=True))
    write(tmp_path / ".hidden.yaml", named(document, "hidden"))
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub" / "d.yaml", named(document, "d"))
    loaded = load_classes([tmp_path])
    assert loaded.errors == ()
    assert names(loaded) == ["a", "b", "c"]


def test_a_file_named_twice_counts_once(tmp_path, document):
    file = write(tmp_path / "a.yaml", document)
    assert names(load_classes([file, tmp_path, file])) == ["box"]


@pytest.mark.parametrize(("make", "message"), [(False, "cannot be read"), (True, "expected YAML or JSON files")])
def test_paths_that_hold_nothing_are_errors(tmp_path, make, message):
    path = tmp_path / "classes"
    if make:
        path.mkdir()
    (error,) = load_classes([path]).errors
    assert (error.file, message in error.message) == (str(path), True)


def test_errors_of_all_files_come_at_once_with_file_and_line(tmp_path, document):
    bad = named(document, "bad")
    bad["spec"]["topology"]["sockets"] = -1
    write(tmp_path / "a.yaml", bad, named(document, "good"))
    (tmp_path / "b.yaml").write_text("a: 1\na: 2\n")
    (tmp_path / "c.yaml").write_text("[")
    loaded = load_classes([tmp_path])
    assert names(loaded) == ["good"]
    text = (tmp_path / "a.yaml").read_text().splitlines()
    first = loaded.errors[0]
    assert (first.file, first.path) == (str(tmp_path / "a.yaml"), "spec.topology.sockets")
    assert text[first.line - 1].strip() == "sockets: -1"
    assert {(error.file[-6:], error.path) for error in loaded.errors} >= {("b.yaml", "a"), ("c.yaml", "")}


def test_lines_within_lists_are_right(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("kind: List\nitems:\n- kind: NodeClass\n  spec:\n    hami: {mode: x}\n")
    errors = {error.path: error.line for error in load_classes([file]).errors}
    assert errors["spec.hami.mode"] == 5
    assert errors["metadata"] == 3


def test_the_seeds_dgx_configuration_is_refused_with_the_kubelets_reason_and_what_would_do(tmp_path):
    file = tmp_path / "dgx.yaml"
    file.write_text(SEED)
    loaded = load_classes([file])
    assert loaded.classes == ()
    assert {error.path for error in loaded.errors} == {"spec.kubelet.reservedMemory"}
    assert all(error.line == SEED[: SEED.index("reservedMemory:")].count("\n") + 1 for error in loaded.errors)
    memory, hugepages = (error.message for error in loaded.errors)
    assert "the kubelet would not start" in memory
    assert (
        'total amount "0" of type "memory" is not equal to the value "12388Mi" determined by Node Allocatable feature' in memory
    )
    assert 'total amount "16Gi" of type "hugepages-1Gi" is not equal to the value "0"' in hugepages
    fix = "[{numaNode: 0, limits: {memory: 6194Mi}}, {numaNode: 1, limits: {memory: 6194Mi}}]"
    assert fix in memory


def test_the_seeds_dgx_configuration_starts_once_corrected(tmp_path):
    file = tmp_path / "dgx.yaml"
    file.write_text(SEED.replace("hugepages-1Gi: 8Gi", "memory: 6194Mi"))
    loaded = load_classes([file])
    assert loaded.errors == ()
    assert loaded.classes[0].memory_allocatable[0] == {
        "memory": 448 * GI - 6194 * 1024**2,
        "hugepages-1Gi": 64 * GI,
        "hugepages-2Mi": 0,
    }


@pytest.mark.parametrize(
    ("kubelet", "path", "message"),
    [
        ({"topologyManagerPolicy": "single"}, "spec.kubelet.topologyManagerPolicy", "must be one of"),
        ({"cpuManagerPolicy": "static", "systemReserved": {}}, "spec.kubelet.systemReserved.cpu", "reserved CPU"),
        ({"featureGates": {"Nonsense": True}}, "spec.kubelet.featureGates.Nonsense", "Nonsense"),
        (
            {
                "memoryManagerPolicy": "Static",
                "systemReserved": {"cpu": "1", "memory": "90Gi"},
                "evictionHard": {"memory.available": "1Gi"},
                "reservedMemory": [{"numaNode": 0, "limits": {"memory": "91Gi"}}],
            },
            "spec.kubelet.reservedMemory",
            "91Gi of memory are reserved on NUMA node 0, which has 64Gi",
        ),
        (
            {"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 0, "limits": {"cpu": "1"}}]},
            "spec.kubelet.reservedMemory[0].limits.cpu",
            "not supported",
        ),
    ],
)
def test_kubelets_that_do_not_start_are_refused_at_the_field(tmp_path, document, kubelet, path, message):
    document["spec"]["kubelet"] = kubelet
    loaded = load_classes([write(tmp_path / "a.yaml", document)])
    assert loaded.classes == ()
    assert loaded.errors[0].path == path
    assert loaded.errors[0].line > 1
    assert loaded.errors[0].message.startswith("the kubelet would not start: ")
    assert message in loaded.errors[0].message


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ({"selector": {"a": "1"}}, {"selector": {"a": "1"}}, True),
        ({"selector": {"a": "1"}}, {"selector": {"a": "1", "b": "2"}}, True),
        ({"selector": {"a": "1"}}, {"selector": {"b": "2"}}, True),
        ({"selector": {"a": "1"}}, {"selector": {"a": "2"}}, False),
        ({"selector": {"a": "1", "b": "1"}}, {"selector": {"a": "1", "b": "2"}}, False),
        ({"selector": {"a": "1"}, "labels": {"b": "1"}}, {"selector": {"b": "2"}}, False),
        ({"selector": {"a": "1"}, "labels": {"c": "1"}}, {"selector": {"b": "2"}, "labels": {"c": "2"}}, False),
        ({"selector": {"a": "1"}, "labels": {"c": "1"}}, {"selector": {"b": "2"}, "labels": {"c": "1"}}, True),
    ],
)
def test_classes_that_could_share_a_node_are_refused(tmp_path, document, one, other, overlap):
    first, second = named(document, "first"), named(document, "second")
    first["spec"] |= one
    second["spec"] |= other
    loaded = load_classes([write(tmp_path / "a.yaml", first), write(tmp_path / "b.yaml", second)])
    assert [error.path for error in loaded.errors] == ["spec.selector"] * overlap
    if overlap:
        (error,) = loaded.errors
        assert error.file == str(tmp_path / "b.yaml")
        assert "first" in error.message
        assert "second" in error.message
        assert str(tmp_path / "a.yaml") in error.message


def test_classes_of_different_hardware_vendors_never_compete(tmp_path, document):
    first, second = named(document, "first", a="1"), named(document, "second", b="2")
    for node in second["spec"]["topology"]["numaNodes"]:
        node["devices"] = {"amd.com/gpu": 2}
    assert load_classes([write(tmp_path / "a.yaml", first, second)]).errors == ()
    second["spec"]["topology"]["devicesWithoutTopology"] = {"nvidia.com/gpu": 1}
    assert [error.path for error in load_classes([write(tmp_path / "a.yaml", first, second)]).errors] == ["spec.selector"]


@pytest.mark.parametrize("selector", [None, {}])
def test_a_class_needs_a_selector(tmp_path, document, selector):
    document["spec"]["selector"] = selector
    loaded = load_classes([write(tmp_path / "a.yaml", document)])
    assert loaded.classes == ()
    assert [(error.path, "at least one label" in error.message) for error in loaded.errors] == [("spec.selector", True)]


def test_a_name_stands_once(tmp_path, document):
    loaded = load_classes([write(tmp_path / "a.yaml", named(document, "x", a="1"), named(document, "x", a="2"))])
    assert [error.path for error in loaded.errors] == ["metadata.name"]


def warnings_of(tmp_path, document):
    loaded = load_classes([write(tmp_path / "a.yaml", document)])
    assert loaded.errors == ()
    return {warning.path: warning.message for warning in loaded.warnings}


@pytest.mark.parametrize(("stated", "used"), [("1.33", "1.34"), ("1.40", "1.37"), ("v1.29.1", "1.34")])
def test_unknown_minors_are_judged_as_the_nearest_with_a_warning(tmp_path, document, stated, used):
    document["spec"]["kubernetes"] = stated
    assert used in warnings_of(tmp_path, document)["spec.kubernetes"]


def test_misspelt_kubelet_fields_deserve_a_look(tmp_path, document):
    document["spec"]["kubelet"]["topologyManagerScop"] = "pod"
    document["spec"]["kubelet"] |= {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 110}
    assert warnings_of(tmp_path, document) == {
        "spec.kubelet.topologyManagerScop": (
            "is no field of a KubeletConfiguration; the kubelet ignores it; did you mean topologyManagerScope?"
        )
    }


def test_a_whole_answer_of_configz_is_refused_for_the_kubelet_would_ignore_all_of_it(tmp_path, document):
    document["spec"]["kubelet"] = {"kubeletconfig": document["spec"]["kubelet"]}
    (error,) = load_classes([write(tmp_path / "a.yaml", document)]).errors
    assert (error.path, "paste what stands below kubeletconfig" in error.message) == ("spec.kubelet", True)


def test_hami_without_numa_topology_reports_no_nodes(tmp_path, document):
    document["spec"]["hami"] = {"numaTopology": False}
    assert "devicesWithoutTopology" in warnings_of(tmp_path, document)["spec.hami.numaTopology"]
    document["spec"]["hami"] = {"numaTopology": True}
    assert warnings_of(tmp_path, document) == {}


@pytest.mark.parametrize(
    ("policy", "resources", "time"),
    [
        ("restricted", 1, "2 seconds"),
        ("best-effort", 2, "10 minutes"),
        ("restricted", 3, "43 hours"),
        ("single-numa-node", 3, None),
        ("none", 3, None),
    ],
)
def test_a_kubelet_that_merges_for_ages_deserves_a_look(tmp_path, document, policy, resources, time):
    devices = {f"example.com/d{index}": 1 for index in range(resources)}
    nodes = [{"id": index, "cpus": 2, "memory": "8Gi", "devices": devices} for index in range(8)]
    document["spec"]["topology"] |= {"numaNodes": nodes}
    document["spec"]["kubelet"] |= {
        "topologyManagerPolicy": policy,
        "memoryManagerPolicy": "Static",
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "2148Mi"}}],
    }
    found = warnings_of(tmp_path, document)
    assert set(found) == ({"spec.kubelet.topologyManagerPolicy"} if time else set())
    if time:
        assert time in found["spec.kubelet.topologyManagerPolicy"]
        assert "cpu, memory, example.com/d0" in found["spec.kubelet.topologyManagerPolicy"]


def test_built_in_classes_load_by_name():
    assert names(load_builtin_classes(["dgx-h100", "dgx-a100"])) == ["dgx-a100", "dgx-h100"]
    assert load_builtin_classes([]).classes == ()


def test_own_classes_must_not_overlap_with_built_in_ones(tmp_path, document):
    mine = named(document, "mine", **{"nvidia.com/gpu.machine": "DGXH100"})
    loaded = load_classes([write(tmp_path / "a.yaml", mine)], ["dgx-h100"])
    assert [error.path for error in loaded.errors] == ["spec.selector"]
    assert load_classes([tmp_path / "a.yaml"], ["aws-p5-48xlarge"]).errors == ()


@pytest.mark.parametrize("text", ["", "---\n", "# later\n"])
def test_an_empty_file_is_no_reason_to_forget_the_classes(tmp_path, text):
    file = tmp_path / "classes.yaml"
    file.write_text(text)
    assert [(e.file, e.message) for e in load_classes([file]).errors] == [
        (str(file), "expected a NodeClass document, found none")
    ]
