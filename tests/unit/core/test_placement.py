"""Which classes a pod can land on: every operator, taint and special case, and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.core.model import NodeClass, Taint, Topology
from webhook.core.placement import can_land, implies_a_class, names_nodes, selected, tolerated


def node_class(*taints: Taint, **labels: str) -> NodeClass:
    return NodeClass("a", {"product": "h100"}, Topology(1, 1, ()), labels=labels, taints=taints)


def pod(*terms: Any, **spec: Any) -> dict[str, Any]:
    if terms:
        required = {"nodeSelectorTerms": list(terms)}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"spec": spec}


def term(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


BY_NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (pod(), True),
        (pod(nodeSelector={"product": "h100"}), True),
        (pod(nodeSelector={"product": "a100"}), False),
        (pod(nodeSelector={"zone": "b"}), None),
        (pod(nodeSelector={"zone": "b", "product": "a100"}), False),
        (pod(nodeSelector={"count": "8"}), True),
        (pod(term("product", "In", "h100", "x")), True),
        (pod(term("product", "In", "x")), False),
        (pod(term("product", "In")), False),
        (pod(term("zone", "In", "x")), None),
        (pod(term("product", "NotIn", "x")), True),
        (pod(term("product", "NotIn", "h100")), False),
        (pod(term("zone", "NotIn", "x")), None),
        (pod(term("product", "Exists")), True),
        (pod(term("zone", "Exists")), None),
        (pod(term("product", "DoesNotExist")), False),
        (pod(term("zone", "DoesNotExist")), None),
        (pod(term("count", "Gt", "7")), True),
        (pod(term("count", "Gt", "8")), False),
        (pod(term("count", "Lt", "9")), True),
        (pod(term("count", "Lt", "8")), False),
        (pod(term("product", "Gt", "7")), False),
        (pod(term("count", "Gt", "7", "8")), False),
        (pod(term("count", "Gt", "seven")), False),
        (pod(term("zone", "Gt", "7")), None),
        (pod(term("product", "Near", "h100")), None),
        # terms are ORed, expressions in a term are ANDed
        (pod(term("product", "In", "x"), term("product", "Exists")), True),
        (pod(term("product", "In", "x"), term("zone", "Exists")), None),
        (
            pod(
                {
                    "matchExpressions": [
                        *term("product", "Exists")["matchExpressions"],
                        *term("count", "Lt", "1")["matchExpressions"],
                    ]
                }
            ),
            False,
        ),
        # an empty term matches nothing, nor does an empty list of terms
        (pod({}), False),
        (pod({"matchExpressions": [], "matchFields": None}), False),
        (pod({}, term("product", "Exists")), True),
        ({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}}}, False),
        # nobody knows the nodes' names
        (pod(BY_NAME), None),
        (pod({**BY_NAME, **term("product", "In", "x")}), False),
        ({"spec": {"affinity": {"podAffinity": {}}}}, True),
    ],
)
def test_selectors_and_affinity(made: dict[str, Any], expected: bool | None) -> None:
    assert selected(made, node_class(count="8")) is expected


GPU_TAINT = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("taint", "toleration", "expected"),
    [
        (GPU_TAINT, {}, False),
        (GPU_TAINT, {"key": "gpu", "operator": "Exists"}, True),
        (GPU_TAINT, {"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        (GPU_TAINT, {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        (GPU_TAINT, {"operator": "Exists"}, True),
        (GPU_TAINT, {"key": "gpu", "value": "yes"}, True),
        (GPU_TAINT, {"key": "gpu", "operator": "Equal", "value": "no"}, False),
        (GPU_TAINT, {"key": "other", "operator": "Exists"}, False),
        (GPU_TAINT, {"key": "gpu", "operator": "Like", "value": "yes"}, False),
        (Taint("gpu", "", "NoSchedule"), {"key": "gpu"}, True),
        (Taint("sla", "95", "NoSchedule"), {"key": "sla", "operator": "Gt", "value": "90"}, True),
        (Taint("sla", "95", "NoSchedule"), {"key": "sla", "operator": "Gt", "value": "95"}, False),
        (Taint("sla", "95", "NoExecute"), {"key": "sla", "operator": "Lt", "value": "96"}, True),
        (Taint("sla", "high", "NoExecute"), {"key": "sla", "operator": "Lt", "value": "96"}, False),
        (Taint("sla", "95", "NoExecute"), {"key": "sla", "operator": "Lt", "value": "096"}, False),
        (Taint("gpu", "yes", "PreferNoSchedule"), {}, True),
    ],
)
def test_tolerations(taint: Taint, toleration: dict[str, str], expected: bool) -> None:
    assert tolerated(pod(tolerations=[toleration] if toleration else []), [taint]) is expected


def test_every_taint_must_be_tolerated() -> None:
    taints = (GPU_TAINT, Taint("team", "a", "NoExecute"))
    assert not can_land(pod(tolerations=[{"key": "gpu", "operator": "Exists"}]), node_class(*taints))
    assert can_land(pod(tolerations=[{"operator": "Exists"}]), node_class(*taints))


def test_node_name_goes_past_the_scheduler_but_not_past_the_kubelet() -> None:
    assert can_land(pod(nodeName="n"), node_class(GPU_TAINT))
    assert not can_land(pod(nodeName="n"), node_class(Taint("gone", "", "NoExecute")))
    assert not can_land(pod(nodeName="n", nodeSelector={"product": "a100"}), node_class())


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (pod(), False),
        (pod(nodeName="n"), True),
        (pod(BY_NAME), True),
        (pod(term("a", "Exists"), BY_NAME), True),
        (pod(term("a", "Exists")), False),
    ],
)
def test_pods_that_name_their_nodes(made: dict[str, Any], expected: bool) -> None:
    assert names_nodes(made) is expected


A = NodeClass("a", {"product": "h100"}, Topology(1, 1, ()))
B = NodeClass("b", {"product": "b200", "site": "x"}, Topology(1, 1, ()))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (pod(), False),
        (pod(nodeSelector={"product": "h100"}), True),
        (pod(nodeSelector={"product": "h200"}), False),
        (pod(nodeSelector={"product": "b200"}), False),
        (pod(nodeSelector={"product": "b200", "site": "x", "more": "y"}), True),
        (pod(term("product", "In", "h100")), True),
        (pod(term("product", "In", "h100", "l4")), False),
        (pod(term("product", "In", "h100", "b200"), nodeSelector={"site": "x"}), True),
        (pod(term("product", "In", "h100"), term("zone", "Exists")), False),
        (pod(term("product", "In", "h100"), {}), True),
        (pod(term("product", "Exists")), False),
        (pod({}), False),
        (pod(BY_NAME), False),
        (pod(*[{"matchExpressions": [e for k in "abcd" for e in term(k, "In", *"stuv")["matchExpressions"]]}]), False),
    ],
)
def test_selectors_that_leave_only_described_nodes(made: dict[str, Any], expected: bool) -> None:
    assert implies_a_class(made, [A, B]) is expected
