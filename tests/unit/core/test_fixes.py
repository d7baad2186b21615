"""The search for the nearest change: what it tries, how much it asks, what it never claims."""

from __future__ import annotations

from typing import Any

import pytest
from explaining import CATALOGUE, GPU, container, node, pod

from webhook.core import fixes, knobs
from webhook.core.change import Change, applied, merged, setting
from webhook.core.containers import visit
from webhook.core.fixes import CALLS_PER_CLASS, Fix, diagnose
from webhook.core.kubelet import admit
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.verdict import Verdict
from webhook.core.wellformed import problems


class Counting:
    """The model, asked and counted."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, where: NodeKubelet, of: Any) -> Verdict:
        self.calls += 1
        return admit.judge(where, of)


def changes_of(of: dict[str, Any], where: NodeKubelet) -> list[list[tuple[str, str, str]]]:
    found = diagnose(of, where, CATALOGUE, admit.judge)
    return [[(change.container, change.resource, change.value) for change in fix.changes] for fix in found.fixes]


def test_any_one_of_several_resources_may_give_way_nearest_first() -> None:
    of = pod(container(cpu="62", memory="64Gi", gpu=2, nic=1))
    where = node(nics=(1, 0))
    assert changes_of(of, where) == [[("trainer", "cpu", "60")], [("trainer", "openshift.io/mlx", "")]]


def test_the_largest_amount_that_works_is_found_between_the_guesses() -> None:
    # Beside b's 20 CPUs node 1 has 44 left, and node 0 has 40.
    of = pod(container("a", cpu="50", memory="1Gi", gpu=1), container("b", cpu="20", memory="1Gi", gpu=1))
    first = changes_of(of, node())[0]
    assert first == [("a", "cpu", "44")]


def test_the_devices_are_kept_as_many_as_possible_when_several_resources_must_give_way() -> None:
    (together,) = changes_of(pod(container(cpu="100", memory="64Gi", gpu=6)), node())
    assert together == [("trainer", GPU, "4"), ("trainer", "cpu", "64")]


def test_what_is_aligned_after_evening_out_needs_nothing_else() -> None:
    of = pod(container(gpu=2, requests={"cpu": "8", "memory": "64Gi"}))
    assert changes_of(of, node()) == [[("trainer", "cpu", "8"), ("trainer", "memory", "64Gi")]]


def test_a_kubelet_that_does_not_start_is_not_asked() -> None:
    judge = Counting()
    found = diagnose(pod(container(gpu=5)), node(systemReserved={"cpu": "4", "memory": "1Gi"}), CATALOGUE, judge)
    assert (found.fixes, judge.calls) == ((), 0)


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("numa_nodes", [2, 8])
def test_the_questions_are_bounded(count: int, numa_nodes: int) -> None:
    judge = Counting()
    containers = [container(f"c{index}", cpu="99", memory="999Gi", gpu=9) for index in range(count)]
    where = node(policy="restricted", gpus=(1,) * numa_nodes, nics=(0,) * numa_nodes, pin_memory=False)
    diagnose(pod(*containers), where, CATALOGUE, judge)
    assert 0 < judge.calls <= CALLS_PER_CLASS


def test_a_search_that_was_cut_short_says_so() -> None:
    crowd = pod(*(container(f"c{index}", cpu="9", memory="9Gi", gpu=1) for index in range(40)))
    assert diagnose(crowd, node(), CATALOGUE, admit.judge).exhausted
    hopeless = node(cpuManagerPolicy="none", pin_memory=False)
    assert not diagnose(pod(container(cpu="9", memory="9Gi", gpu=1)), hopeless, CATALOGUE, admit.judge).exhausted


def test_each_fix_names_every_class_on_which_it_works() -> None:
    nodes = {"big": node("big"), "small": node("small", cpus=56), "dead": node("dead", systemReserved={"cpu": "4"})}
    of = pod(container(cpu="70", memory="64Gi", gpu=1))
    diagnoses = {name: diagnose(of, each, CATALOGUE, admit.judge) for name, each in nodes.items()}
    found = fixes.nearest(of, diagnoses, nodes, admit.judge)
    assert [([c.value for c in fix.changes], fix.classes) for fix in found] == [(["64"], ("big",)), (["56"], ("big", "small"))]


def test_a_fix_that_serves_no_further_class_is_left_out() -> None:
    nodes = {name: node(name) for name in ("a", "b")}
    of = pod(container(cpu="62", memory="64Gi", gpu=5))
    diagnoses = {name: diagnose(of, each, CATALOGUE, admit.judge) for name, each in nodes.items()}
    assert len(fixes.nearest(of, diagnoses, nodes, admit.judge)) == 1


@pytest.mark.parametrize(
    ("limits", "requests", "fields", "present"),
    [
        ({"cpu": "60"}, None, ("limits",), "60"),
        ({"cpu": "60"}, {"cpu": "60"}, ("requests", "limits"), "60"),
        ({"memory": "1Gi"}, {"cpu": "60"}, ("requests",), "60"),
        ({"memory": "1Gi"}, None, ("limits",), ""),
    ],
)
def test_a_change_is_made_where_the_author_wrote_the_amount(
    limits: dict[str, str], requests: dict[str, str] | None, fields: tuple[str, ...], present: str
) -> None:
    of = pod(container(requests=requests, **limits))
    change = setting(visit(of)[0], "cpu", "56", 0.1)
    assert (change.fields, change.present) == (fields, present)
    resources = applied(of, [change])["spec"]["containers"][0]["resources"]
    assert all(resources[field]["cpu"] == "56" for field in fields)
    assert "56" not in str(of)


def test_a_resource_is_left_out_of_requests_and_limits() -> None:
    of = pod(container(gpu=1, cpu="1", requests={GPU: 1}))
    changed = applied(of, [setting(visit(of)[0], GPU, "", 1.0)])
    assert changed["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {}}


def test_changes_to_one_amount_become_one() -> None:
    first = Change("a", ("spec", "containers", 0), ("limits",), "cpu", "", "52", 0.05, evens_out=True)
    then = Change("a", ("spec", "containers", 0), ("limits",), "cpu", "52", "40", 0.2)
    other = Change("b", ("spec", "containers", 1), ("limits",), "cpu", "2", "1", 0.5)
    merged_changes = merged([first, other, then])
    assert [(c.container, c.present, c.value) for c in merged_changes] == [("a", "", "40"), ("b", "2", "1")]
    assert Fix(merged_changes).distance < Fix((first, other, then)).distance


def test_a_missing_limit_that_must_be_lowered_takes_its_request_along() -> None:
    of = pod(container(gpu=6, requests={"cpu": "100", "memory": "300Gi"}))
    (found,) = diagnose(of, node(), CATALOGUE, admit.judge).fixes
    assert problems(applied(of, found.changes)) == ()
    assert admit.judge(node(), applied(of, found.changes)).aligned


def test_zero_and_unreadable_amounts_are_no_knobs() -> None:
    of = pod(container(cpu="0", memory="x", gpu=0, nic=1))
    found = knobs.find(of, node(nics=(1, 1)), CATALOGUE)
    assert [knob.resource for knob in found] == ["openshift.io/mlx"]
