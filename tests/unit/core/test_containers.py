import pytest

from webhook.core.containers import Kind, field_path, visit

POD = {
    "spec": {
        "initContainers": [
            {"name": "setup"},
            {"name": "proxy", "restartPolicy": "Always"},
            {"name": "late", "restartPolicy": "Never"},
        ],
        "containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}, {"name": "side"}],
    }
}


def test_visits_in_the_kubelets_order_with_kind_and_path():
    assert [(c.name, c.kind, field_path(c.path)) for c in visit(POD)] == [
        ("setup", Kind.INIT, "spec.initContainers[0]"),
        ("proxy", Kind.SIDECAR, "spec.initContainers[1]"),
        ("late", Kind.INIT, "spec.initContainers[2]"),
        ("main", Kind.APP, "spec.containers[0]"),
        ("side", Kind.APP, "spec.containers[1]"),
    ]


@pytest.mark.parametrize("pod", [{}, {"spec": None}, {"spec": {"containers": None, "initContainers": None}}])
def test_a_pod_without_containers_has_none(pod):
    assert visit(pod) == ()


@pytest.mark.parametrize("resources", [{}, {"resources": None}, {"resources": {}}, {"resources": {"limits": None}}])
def test_absent_quantities_are_empty(resources):
    (container,) = visit({"spec": {"containers": [{"name": "a", **resources}]}})
    assert container.quantities("limits") == {}
    assert container.quantities("requests") == {}


def test_quantities_are_as_written():
    assert visit(POD)[3].quantities("limits") == {"cpu": "1"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("spec",), "spec"),
        (
            ("spec", "containers", 0, "resources", "limits", "nvidia.com/gpu"),
            "spec.containers[0].resources.limits[nvidia.com/gpu]",
        ),
        (("metadata", "annotations", "a.b"), "metadata.annotations[a.b]"),
        ((0, "spec"), "[0].spec"),
    ],
)
def test_paths_read_like_the_api_servers(path, text):
    assert field_path(path) == text
