"""Node affinity: keep off, prefer, leave alone, and take back."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.core.model import NodeClass, Topology
from webhook.core.placement import PREFERRED, REQUIRED, required_terms, selected
from webhook.core.shape import steering

NOTHING = Topology(1, 1, ())


def node_class(name: str, selector: dict[str, str], **labels: str) -> NodeClass:
    return NodeClass(name, selector, NOTHING, labels=labels)


H100 = node_class("h100", {"product": "h100"})
A100 = node_class("a100", {"product": "a100"})
L4 = node_class("l4", {"product": "l4"})
DELL = node_class("dell", {"product": "h100", "machine": "dell"})
HP = node_class("hp", {"product": "h100", "machine": "hp"})
VENDOR = node_class("vendor", {"instance": "p5"}, product="h100")
POD: Any = {"spec": {"containers": []}}


def not_in(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "NotIn", "values": list(values)}


@pytest.mark.parametrize(
    ("keep", "avoid", "complete", "expected"),
    [
        ([H100], [A100], True, [[not_in("product", "a100")]]),
        ([H100], [L4, A100], True, [[not_in("product", "a100", "l4")]]),
        ([H100], [A100], False, [[not_in("product", "a100")]]),
        # several keys: one that tells them apart is enough
        ([DELL], [HP], True, [[not_in("machine", "hp")]]),
        ([DELL, L4], [HP], True, [[not_in("machine", "hp")], [not_in("product", "h100")]]),
        # ... unless undescribed nodes may share it
        ([DELL], [HP], False, [[not_in("machine", "hp")], [not_in("product", "h100")]]),
        # a label that is stated counts like a selector's
        ([VENDOR], [L4], True, [[not_in("product", "l4")]]),
        ([L4], [VENDOR], True, [[not_in("instance", "p5")]]),
        # its own selector tells a class' nodes, whatever others do not state
        ([VENDOR], [HP, A100], True, [[not_in("machine", "hp"), not_in("product", "a100")], [not_in("product", "a100", "h100")]]),
        # nothing to do, or nothing that can be done
        ([H100], [], True, None),
        ([], [A100], True, None),
        ([H100], [node_class("all", {})], True, None),
    ],
)
def test_what_keeps_a_pod_off(keep: list[NodeClass], avoid: list[NodeClass], complete: bool, expected: Any) -> None:
    found = steering.keep_off(POD, keep, avoid, complete=complete)
    assert found == expected


def test_no_more_terms_than_anybody_would_read() -> None:
    avoid = [node_class(str(i), {"product": "h100", "machine": str(i)}) for i in range(4)]
    assert steering.keep_off(POD, [VENDOR], avoid[:3], complete=True) is not None
    assert steering.keep_off(POD, [VENDOR], avoid, complete=True) is None


def pod_with(*terms: Any, **spec: Any) -> Any:
    return {"spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}} | spec}


ZONE, BY_NAME = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, {"matchFields": [{"key": "metadata.name"}]}
OURS = [[not_in("product", "a100")]]
BOTH = [[not_in("machine", "hp")], [not_in("product", "h100")]]


@pytest.mark.parametrize("made", [{"spec": {"nodeName": "n"}}, pod_with(BY_NAME), pod_with(ZONE, BY_NAME), pod_with()])
def test_never_for_pods_that_name_their_nodes_or_match_nothing(made: Any) -> None:
    assert steering.keep_off(made, [H100], [A100], complete=True) is None


@pytest.mark.parametrize(
    ("made", "ours", "expected"),
    [
        (POD, OURS, [{"matchExpressions": OURS[0]}]),
        (POD, BOTH, [{"matchExpressions": BOTH[0]}, {"matchExpressions": BOTH[1]}]),
        (pod_with(ZONE), OURS, [{"matchExpressions": [*ZONE["matchExpressions"], *OURS[0]]}]),
        # empty terms stay empty: an expression would let nodes in
        (pod_with({}, ZONE), OURS, [{}, {"matchExpressions": [*ZONE["matchExpressions"], *OURS[0]]}]),
        (pod_with(ZONE, ZONE), BOTH, [{"matchExpressions": [*ZONE["matchExpressions"], *each]} for each in (*BOTH, *BOTH)]),
    ],
)
def test_anded_into_every_term_and_taken_back(made: Any, ours: Any, expected: Any) -> None:
    steered = steering.required(made, ours)
    assert required_terms(steered) == expected
    assert steering.without_required(expected, ours) == list(required_terms(made) or [])


def test_it_excludes_the_avoided_class_and_no_other() -> None:
    for keep, avoid in (([H100], A100), ([DELL, L4], HP), ([VENDOR], HP)):
        ours = steering.keep_off(POD, keep, [avoid], complete=True)
        assert ours is not None
        steered = steering.required(POD, ours)
        assert selected(steered, avoid) is False
        assert all(selected(steered, each) is not False for each in keep)


@pytest.mark.parametrize(
    "terms",
    [
        [ZONE],
        [{"matchExpressions": [*OURS[0], *ZONE["matchExpressions"]]}],
        [{"matchExpressions": [not_in("product", "l4")]}],
        [{"matchExpressions": BOTH[0]}],
    ],
)
def test_terms_that_somebody_changed_since_are_left_alone(terms: Any) -> None:
    assert steering.without_required(terms, OURS if terms[0] != {"matchExpressions": BOTH[0]} else BOTH) is None


def test_preference() -> None:
    wish = steering.preference(POD, [H100, VENDOR], [A100])
    assert wish == {
        "weight": 100,
        "preference": {"matchExpressions": [{"key": "product", "operator": "In", "values": ["h100"]}]},
    }
    made = steering.preferred({"spec": {"affinity": {"nodeAffinity": {PREFERRED: ["theirs"]}}}}, wish)
    assert made["spec"]["affinity"]["nodeAffinity"][PREFERRED] == ["theirs", wish]
    assert steering.preference(POD, [VENDOR], [HP]) is None
    assert steering.preference(POD, [H100], []) is None
    assert steering.preference({"spec": {"nodeName": "n"}}, [H100], [A100]) is None
