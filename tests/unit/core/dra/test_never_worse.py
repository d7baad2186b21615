"""Promises about pods beside claimed devices, on random machines: never worse, the same again, whatever the order."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.dra.claiming import JSON
from tests.unit.core.dra.machines import (
    claiming,
    gpu_request,
    gpus,
    known,
    machine,
    mutated,
    nic_request,
    nics,
    template,
    user,
    validated,
)
from tests.unit.core.setting import bare, kubelet
from webhook.core import decide, judging
from webhook.core.accelerators import Asks
from webhook.core.decision import Request
from webhook.core.dra.served import MIXED, numa_node
from webhook.core.snapshot import Snapshot

places = st.lists(st.sampled_from([0, 1, 1, None]), min_size=1, max_size=6)
clean = st.lists(st.sampled_from([0, 1]), min_size=2, max_size=6)
kubelets = st.builds(
    kubelet,
    st.sampled_from(["single-numa-node", "restricted", "best-effort", "none"]),
    st.sampled_from(["pod", "container"]),
    memory=st.booleans(),
    cpu=st.sampled_from(["static", "static", "none"]),
)


@st.composite
def classes(draw: Any) -> list[JSON]:
    made = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        slices = [gpus(*draw(clean | places)), nics(*draw(clean))]
        config = draw(kubelets)
        if config["cpuManagerPolicy"] == "none" and config["topologyManagerPolicy"] == "none":
            config = kubelet()
        made.append(machine(*slices, name=name, config=config, described=draw(st.integers(0, 9)) > 0))
    return made


amounts = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(["1", "2500m", "4", "60"]), "memory": st.sampled_from(["1Gi", "64Gi", "200Gi"])}
)


@st.composite
def pods(draw: Any) -> tuple[JSON, JSON]:
    first = user(limits=draw(amounts), requests={})
    others = [bare("side", None, limits=draw(amounts))] if draw(st.booleans()) else []
    init = [bare("fetch", None, limits=draw(amounts))] if draw(st.integers(0, 3)) == 0 else []
    requests = [gpu_request(draw(st.integers(1, 3)))] + ([nic_request()] if draw(st.booleans()) else [])
    return claiming(first, *others, **({"initContainers": init} if init else {})), {"t": template(*requests)}


def kubelets_say(pod: JSON, snapshot: Snapshot) -> dict[str, Any]:
    return dict(judging.judge_all(pod, Asks(), snapshot.candidates))


def own_nodes(verdict: Any, snapshot: Snapshot, name: str) -> set[int]:
    numa = snapshot.nodes[name].machine.cpu_topology.numa
    return {cell for cell, members in numa.items() if any(members >> cpu & 1 for cpu in verdict.placements["main"].cpus)}


@settings(max_examples=25)
@given(classes(), pods(), st.sampled_from(["strict", "best-effort"]))
def test_never_worse_and_the_same_again(made: list[JSON], pod: tuple[JSON, JSON], mode: str) -> None:
    written, objects = pod
    snapshot = known(*made, objects=objects)
    final, decision = mutated(written, snapshot, mode)
    assert all(len(line) < 120 for line in decision.warnings)
    before, after = kubelets_say(written, snapshot), kubelets_say(final, snapshot)
    sight = decide.seen(written, Request("research", label=mode), snapshot)
    for each in sight.candidates:
        assert judging.keeps(before[each.name], after[each.name])
        if decision.patch and each.several and each.node.config.cpu_static:
            assert each.served is not None
            assert each.served.places["main"] <= own_nodes(after[each.name], snapshot, each.name)
            first = [numa_node(device) for device in snapshot.inventory.nodes[each.name]]
            assert each.served.places["main"] <= set(first)
    assert mutated(final, snapshot, mode)[1].patch == ()
    answer = validated(final, snapshot, mode)
    if decision.patch and answer.reason != "NotOnOneNode":  # that is the template's own fault
        assert answer.allowed
        assert f"numalign: {MIXED}" in answer.warnings


@settings(max_examples=10)
@given(classes(), pods())
def test_whatever_the_order(made: list[JSON], pod: tuple[JSON, JSON]) -> None:
    written, objects = pod
    final, decision = mutated(written, known(*made, objects=objects))
    turned = json.loads(json.dumps(written, sort_keys=True))
    again, same = mutated(turned, known(*reversed(made), objects=objects))
    assert again == final
    assert (same.outcome, same.reason, same.warnings) == (decision.outcome, decision.reason, decision.warnings)


@settings(max_examples=20)
@given(classes(), pods())
def test_strict_refuses_only_what_every_kubelet_refuses_or_no_class_has(made: list[JSON], pod: tuple[JSON, JSON]) -> None:
    written, objects = pod
    snapshot = known(*made, objects=objects)
    final, _ = mutated(written, snapshot)
    answer = validated(final, snapshot)
    if not answer.allowed and answer.reason not in {"NoClassServesClaims", "NotOnOneNode"}:
        assert all(not verdict.admitted for verdict in answer.verdicts.values())


@settings(max_examples=15)
@given(st.lists(clean, min_size=1, max_size=2), st.integers(0, 4), st.lists(st.integers(1, 3), min_size=1, max_size=2))
def test_extended_resources_by_dra_and_by_plugins(slices: list[list[int]], plugins: int, counts: list[int]) -> None:
    by_dra = [machine(gpus(*nodes), name=f"dra{index}") for index, nodes in enumerate(slices)]
    snapshot = known(*by_dra, machine(name="plugin", plugins=plugins))
    written = {"spec": {"containers": [bare(f"c{index}", count) for index, count in enumerate(counts)]}}
    final, decision = mutated(written, snapshot)
    sight = decide.seen(written, Request("research", label="strict"), snapshot)
    for each in sight.candidates:
        if each.is_by_dra and decision.patch:
            assert each.served is not None
            for name in each.served.bearers:
                numa = each.node.machine.cpu_topology.numa
                cpus = decision.verdicts[each.name].placements[name].cpus
                mine = {cell for cell, members in numa.items() if any(members >> cpu & 1 for cpu in cpus)}
                assert each.served.places[name] <= mine
    assert mutated(final, snapshot)[1].patch == ()
    answer = validated(final, snapshot)
    assert answer.allowed or not any(verdict.admitted for verdict in answer.verdicts.values())


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 40) | st.sampled_from(["gpus", "gpu", "t", "gpu.nvidia.com", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("name", "request", "requests", "exactly", "firstAvailable", "deviceClassName", "count", "allocationMode"),
                    *("constraints", "matchAttribute", "devices", "spec", "metadata", "annotations", "selectors", "capacity"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
SNAPSHOT_CLASSES = (machine(gpus(0, 1, None), nics(0)), machine(name="unknown", described=False))


@given(junk, junk, junk)
def test_never_raises_whatever_containers_and_templates_say(used: Any, devices: Any, requests: Any) -> None:
    pod = claiming(user())
    pod["spec"]["containers"][0]["resources"]["claims"] = used
    for inner in (devices, {"requests": requests}, {"requests": [gpu_request(2), requests], "constraints": devices}):
        made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "t"}}
        snapshot = known(*SNAPSHOT_CLASSES, objects={"t": made | {"spec": {"spec": {"devices": inner}}}})
        for mode in ("strict", "best-effort", "audit"):
            assert mutated(pod, snapshot, mode)[1].allowed
            assert validated(pod, snapshot, mode).allowed
