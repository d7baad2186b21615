"""LimitRanges: what the API server's plugin refuses after us, and shapes that it does not refuse."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest

from tests.unit.core.setting import GPU, JSON, SINGLE, amounts, bare, kubelet, m112, named, pod, snapshot
from webhook.core import decide
from webhook.core.decision import Decision, Request
from webhook.core.edit import put
from webhook.core.limitranges import breaches, distance, limits_of, with_defaults
from webhook.core.policy import HugepageRules, MemoryRules, Policy

DGX = named(m112(kubelet(SINGLE)), "dgx")
WHOLE_CORES = named(m112(kubelet(SINGLE, cpuManagerPolicyOptions={"full-pcpus-only": "true"})), "cores")
SMALL = {"cpu": "6", "memory": "8Gi"}


def limit_range(*items: JSON, name: str = "bounds") -> JSON:
    return {"metadata": {"namespace": "team", "name": name}, "spec": {"limits": list(items)}}


def of_pods(**bounds: JSON) -> JSON:
    return limit_range({"type": "Pod", **bounds})


def of_containers(**bounds: JSON) -> JSON:
    return limit_range({"type": "Container", **bounds})


def given(requests: JSON | None = None, limits: JSON | None = None, name: str = "main", **more: Any) -> JSON:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def found(made: JSON, *ranges: JSON) -> list[str]:
    return sorted(str(breach) for breach in breaches(made, limits_of(ranges).get("team", ())))


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("made", "bounds", "told"),
    [
        (pod(given({"cpu": "2"}, {"cpu": "6"})), of_containers(max={"cpu": "6"}), []),
        (pod(given({"cpu": "2"}, {"cpu": "6001m"})), of_containers(max={"cpu": "6"}), ["main would get 6001m"]),
        (pod(given({"cpu": "2"})), of_containers(max={"cpu": "6"}), ["main has no cpu limit"]),
        (pod(given({}, {"cpu": "2"})), of_containers(min={"cpu": "2"}), []),
        (pod(given({"cpu": "1"}, {"cpu": "2"})), of_containers(min={"cpu": "2"}), ["main would get 1"]),
        (pod(given({"cpu": "2"}, {"cpu": "1"})), of_containers(min={"cpu": "2"}), ["main would get 2"]),
        (pod(given({}, {})), of_containers(min={"cpu": "2"}), ["main has no cpu request"]),
        (pod(given({"cpu": "1"}, {"cpu": "2"})), of_containers(maxLimitRequestRatio={"cpu": "2"}), []),
        (pod(given({"cpu": "1"}, {"cpu": "2"})), of_containers(maxLimitRequestRatio={"cpu": "1500m"}), ["main has 2 for 1"]),
        (pod(given({"cpu": "1"})), of_containers(maxLimitRequestRatio={"cpu": "2"}), ["main has no cpu limit"]),
        (pod(given({"cpu": "0"}, {"cpu": "1"})), of_containers(maxLimitRequestRatio={"cpu": "2"}), ["main has no cpu request"]),
        (
            pod(given({}, {"cpu": "4"}), init=[given({}, {"cpu": "8"}, "fetch")]),
            of_containers(max={"cpu": "6"}),
            ["fetch would get 8"],
        ),
        # all containers of a pod together, those without a limit left out
        (pod(given({}, {"cpu": "4"}), given({"cpu": "3"}, {}, "b")), of_pods(max={"cpu": "7"}), []),
        (pod(given({}, {"cpu": "4"}), given({}, {"cpu": "3"}, "b")), of_pods(max={"cpu": "6"}), ["the pod would get 7"]),
        (pod(given({}, {"cpu": "4"}), given({"cpu": "3"}, {}, "b")), of_pods(max={"cpu": "6"}), ["the pod would get 4"]),
        (pod(given()), of_pods(max={"memory": "1Gi"}), ["the pod has no memory limit"]),
        # the largest init container, with the sidecars before it; sidecars run beside the others
        (pod(given({}, {"cpu": "4"}), init=[given({}, {"cpu": "6"}, "fetch")]), of_pods(max={"cpu": "6"}), []),
        (
            pod(given({}, {"cpu": "1"}), init=[given({}, {"cpu": "2"}, "side", **SIDECAR), given({}, {"cpu": "5"}, "fetch")]),
            of_pods(max={"cpu": "6"}),
            ["the pod would get 7"],
        ),
        (
            pod(given({}, {"cpu": "1"}), init=[given({}, {"cpu": "5"}, "fetch"), given({}, {"cpu": "2"}, "side", **SIDECAR)]),
            of_pods(max={"cpu": "5"}),
            [],
        ),
        # what the pod says of itself counts instead, but for hugepages
        (put(pod(given({}, {"cpu": "9"})), ("spec", "resources"), {"limits": {"cpu": "6"}}), of_pods(max={"cpu": "6"}), []),
        (
            put(pod(given({}, {"hugepages-2Mi": "4Mi"})), ("spec", "resources"), {"limits": {"hugepages-2Mi": "2Mi"}}),
            of_pods(max={"hugepages-2Mi": "2Mi"}),
            ["the pod would get 4Mi"],
        ),
        # amounts beyond what thousandths can hold are compared whole
        (pod(given({}, {"memory": "10P"})), of_pods(max={"memory": "10000000000000000500m"}), []),
        # not ours
        (pod(given({}, {GPU: "4"})), of_containers(max={GPU: "2", "ephemeral-storage": "1Gi"}), []),
        (pod(given({}, {"cpu": "9"})), limit_range({"type": "PersistentVolumeClaim", "max": {"cpu": "1"}}), []),
    ],
)
def test_what_the_plugin_refuses(made: JSON, bounds: JSON, told: list[str]) -> None:
    lines = found(made, bounds)
    assert len(lines) == len(told)
    for line, end in zip(lines, told, strict=True):
        assert line.startswith("LimitRange team/bounds: ")
        assert line.endswith(f", {end}")


def test_a_breach_names_bound_field_and_value() -> None:
    bounds = limits_of([of_containers(max={"cpu": "6"})])["team"]
    (breach,) = breaches(pod(given({}, {"cpu": "1"}), given({}, {"cpu": "8"}, "b")), bounds)
    assert str(breach) == "LimitRange team/bounds: max cpu per Container is 6, b would get 8"
    assert breach.field == "spec.containers[1].resources.limits.cpu"
    (breach,) = breaches(pod(given({}, {"cpu": "8"})), limits_of([of_pods(max={"cpu": "6"})])["team"])
    assert breach.field == "spec"


def test_fewer_and_smaller_breaches_are_nearer() -> None:
    bounds = limits_of([of_pods(max=SMALL)])["team"]
    sizes = (("6", "8Gi"), ("8", "1Gi"), ("12", "1Gi"), ("7", "9Gi"))
    found = [breaches(pod(given({}, {"cpu": cpu, "memory": size})), bounds) for cpu, size in sizes]
    assert sorted(found, key=distance) == found
    assert len(set(map(distance, found))) == len(found)


@pytest.mark.parametrize(
    "item",
    [
        None,
        {},
        {"metadata": None, "spec": []},
        limit_range(),
        {"metadata": {"namespace": "team", "name": "x"}, "spec": {"limits": {}}},
        limit_range({"type": "Pod", "max": {"cpu": "lots"}}),
        limit_range({"type": "Pod", "max": ["cpu"]}),
        limit_range({"type": "Elephant", "max": {"cpu": "1"}}),
        limit_range({"type": "Container", "default": {"cpu": "1"}}),
    ],
)
def test_what_bounds_nothing_is_left_out(item: Any) -> None:
    assert limits_of([item]) == {}


def test_all_limit_ranges_of_a_namespace_count() -> None:
    other = {**of_pods(max={"cpu": "1"}), "metadata": {"namespace": "other", "name": "bounds"}}
    limits = limits_of([of_pods(max={"cpu": "6"}), limit_range({"type": "Pod", "max": {"cpu": "4"}}, name="more"), other])
    assert sorted(bound.owner for bound in limits["team"]) == ["team/bounds", "team/more"]
    assert len(limits["other"]) == 1


@pytest.mark.parametrize(
    ("item", "requests", "limits"),
    [
        ({"default": {"cpu": "2"}}, {"cpu": "2", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}),
        ({"max": {"cpu": "4"}}, {"cpu": "4", "memory": "1Gi"}, {"cpu": "4", "memory": "1Gi"}),
        ({"max": {"cpu": "4"}, "default": {"cpu": "2"}}, {"cpu": "2", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}),
        ({"min": {"cpu": "1"}}, {"cpu": "1", "memory": "1Gi"}, {"memory": "1Gi"}),
        (
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "500m", "memory": "2Gi"}, "min": {"cpu": "100m"}},
            {"cpu": "500m", "memory": "1Gi"},
            {"cpu": "2", "memory": "1Gi"},
        ),
    ],
)
def test_defaults(item: JSON, requests: JSON, limits: JSON) -> None:
    made = pod(given({"memory": "1Gi"}, {"memory": "1Gi"}), init=[given({"memory": "1Gi"}, {"memory": "1Gi"}, "fetch")])
    completed = with_defaults(
        made, [limit_range({"type": "Container", **item}), limit_range({"type": "Pod", "max": {"cpu": "1"}})]
    )
    for each in (*completed["spec"]["containers"], *completed["spec"]["initContainers"]):
        assert each["resources"] == {"requests": requests, "limits": limits}
    assert with_defaults(made, []) is made


class World:
    """Classes with a LimitRange in the namespace `team`."""

    def __init__(self, *classes: JSON, bounds: JSON, policy: Policy | None = None) -> None:
        self.known = snapshot(*classes, policy=policy).knowing(limits_of([bounds]))

    def mutate(self, made: JSON, mode: str = "strict", namespace: str = "team") -> tuple[JSON, Decision]:
        decision = decide.mutate(made, Request(namespace, label=mode), self.known)
        return jsonpatch.apply_patch(made, list(decision.patch)), decision

    def validate(self, made: JSON, mode: str = "strict") -> Decision:
        return decide.validate(made, Request("team", label=mode), self.known)

    def refused(self, made: JSON) -> bool:
        return bool(breaches(made, self.known.limits["team"]))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (pod(bare()), {"main": ("6", "8Gi")}),
        (pod(bare(requests={"cpu": "2"})), {"main": ("6", "8Gi")}),
        (pod(bare(limits={"cpu": "4"})), {"main": ("4", "8Gi")}),
        (
            pod(bare(), bare("proxy", 0, limits={"cpu": "1500m", "memory": "2Gi"})),
            {"main": ("4", "6Gi"), "proxy": ("1500m", "2Gi")},
        ),
        (pod(bare(), bare("proxy", 0)), {"main": ("5", "7Gi"), "proxy": ("500m", "1Gi")}),
        (pod(bare(), bare("second", 2)), {"main": ("2", "2730Mi"), "second": ("4", "5460Mi")}),
    ],
)
def test_the_share_is_cut_to_the_maximum_of_pods(made: JSON, expected: dict[str, tuple[str, str]]) -> None:
    world = World(DGX, bounds=of_pods(max=SMALL))
    shaped, decision = world.mutate(made)
    assert amounts(shaped) == expected
    assert not world.refused(shaped)
    told = "numalign: less than its share: LimitRange team/bounds: max memory per Pod is 8Gi, the pod would get "
    assert any(warning.startswith(told) for warning in decision.warnings)
    assert world.validate(shaped).reason == "Aligned"


def test_init_containers_are_cut_along() -> None:
    world = World(DGX, bounds=of_pods(max=SMALL))
    shaped, _ = world.mutate(pod(bare(), init=[bare("fetch", 0)]))
    assert amounts(shaped) == {"main": ("6", "8Gi")}
    assert amounts(shaped, init=True) == {"fetch": ("5999m", "8Gi")}


def test_whole_cores_stay_whole() -> None:
    shaped, _ = World(WHOLE_CORES, bounds=of_pods(max={"cpu": "5", "memory": "8Gi"})).mutate(pod(bare()))
    assert amounts(shaped) == {"main": ("4", "8Gi")}


def test_spec_resources_are_cut() -> None:
    gates = {"PodLevelResourceManagers": True, "PodLevelResources": True}
    world = World(named(m112(kubelet(SINGLE, featureGates=gates)), "pod-level"), bounds=of_pods(max=SMALL))
    shaped, _ = world.mutate(put(pod(bare()), ("spec", "resources"), {"requests": {"cpu": "2"}}))
    assert shaped["spec"]["resources"]["limits"] == {"cpu": "6", "memory": "8Gi"}


def test_elsewhere_and_without_knowledge_nothing_changes() -> None:
    free = snapshot(DGX)
    world = World(DGX, bounds=of_pods(max=SMALL))
    expected = decide.mutate(pod(bare()), Request("elsewhere", label="strict"), free)
    assert world.mutate(pod(bare()), namespace="elsewhere")[1] == expected
    assert decide.mutate(pod(bare()), Request("team", label="strict"), free) == expected
    assert amounts(world.mutate(pod(bare()))[0]) != amounts(world.mutate(pod(bare()), namespace="elsewhere")[0])


def test_a_pod_that_fits_is_shaped_as_ever() -> None:
    made = pod(bare())
    shaped, decision = World(DGX, bounds=of_pods(max={"cpu": "64", "memory": "256Gi"})).mutate(made)
    expected = decide.mutate(made, Request("team", label="strict"), snapshot(DGX))
    assert (decision.patch, decision.warnings) == (expected.patch, expected.warnings)
    assert shaped != made


@pytest.mark.parametrize(
    ("made", "bounds", "told"),
    [
        # one core of two CPUs is the least
        (pod(bare()), of_pods(max={"cpu": "1"}), "max cpu per Pod is 1, the pod would get 2"),
        # rounding up an author's own number
        (
            pod(bare(limits={"cpu": "3", "memory": "8Gi"})),
            of_containers(max={"cpu": "3"}),
            "max cpu per Container is 3, main would get 4",
        ),
        # a sidecar without a limit counted for nothing before
        (
            pod(bare(limits={"cpu": "6", "memory": "8Gi"}), bare("proxy", 0, requests={"cpu": "100m"})),
            of_pods(max={"cpu": "6"}),
            "max cpu per Pod is 6, the pod would get 6100m",
        ),
    ],
)
def test_a_pod_that_no_accepted_shape_aligns_is_left_and_told_why(made: JSON, bounds: JSON, told: str) -> None:
    world = World(WHOLE_CORES, bounds=bounds)
    shaped, decision = world.mutate(made)
    assert shaped == made
    assert f"numalign: not shaped: LimitRange team/bounds: {told}" in decision.warnings
    answer = world.validate(made)
    assert (answer.allowed, answer.reason) == (False, "LimitRange")
    assert answer.message.startswith(f"LimitRange team/bounds: {told}.\nHave it changed")
    assert answer.causes[0].reason == "LimitRange"
    assert answer.causes[0].message == f"LimitRange team/bounds: {told}"
    assert "use another namespace" in answer.message
    assert world.validate(made, "best-effort").allowed
    assert f"numalign: LimitRange team/bounds: {told}" in world.validate(made, "audit").warnings


def test_no_change_is_proposed_that_the_limit_range_refuses() -> None:
    answer = World(WHOLE_CORES, bounds=of_pods(max={"cpu": "1"})).validate(pod(bare()))
    assert "Nearest change" not in answer.message
    assert "No change that would align it was found." in answer.message


def test_a_pod_that_fits_no_class_is_refused_for_that() -> None:
    answer = World(DGX, bounds=of_pods(max=SMALL)).validate(pod(bare(gpu=5)))
    assert answer.reason == "TopologyAffinityError"
    assert "now 5, use 4" in answer.message
    assert "LimitRange" not in answer.message


def test_what_the_limit_range_refuses_anyway_is_its_own_to_say() -> None:
    """The pod's own numbers are beyond it: whatever becomes of them, we neither mend nor mention that."""
    shaped, decision = World(DGX, bounds=of_pods(max={"cpu": "6"})).mutate(pod(bare(limits={"cpu": "8"})))
    assert amounts(shaped) == {"main": ("8", "63987Mi")}
    assert not any("LimitRange" in warning for warning in decision.warnings)


def test_a_minimum_of_containers_counts() -> None:
    """An init container may be lowered by a thousandth, so as to take no CPUs of its own; not where that is too little."""
    made = pod(bare(), init=[bare("fetch", 0, requests={"cpu": "1"}, limits={"cpu": "4", "memory": "1Gi"})])
    world = World(DGX, bounds=of_containers(min={"cpu": "4"}))
    assert world.mutate(made)[0] == made
    assert any("min cpu per Container is 4, fetch would get 3999m" in warning for warning in world.mutate(made)[1].warnings)


def test_hugepages_are_left_out_where_they_are_too_many() -> None:
    pages = named(m112(kubelet(SINGLE)), "pages")
    policy = Policy(hugepages=HugepageRules(size=2 * 1024**2, per_accelerator=4 * 1024**2))
    for numa in pages["spec"]["topology"]["numaNodes"]:
        numa["hugepages"] = {"2Mi": "128Mi"}
    free = World(pages, bounds=of_pods(max={"cpu": "64"}), policy=policy).mutate(pod(bare()))[0]
    held = World(pages, bounds=of_pods(max={"hugepages-2Mi": "2Mi"}), policy=policy).mutate(pod(bare()))[0]
    assert free["spec"]["containers"][0]["resources"]["limits"]["hugepages-2Mi"] == "4Mi"
    assert "hugepages-2Mi" not in held["spec"]["containers"][0]["resources"]["limits"]


def test_memory_that_is_the_authors_stays_the_authors() -> None:
    policy = Policy(memory=MemoryRules(inject="never"))
    made = pod(bare(limits={"memory": "4Gi"}))
    shaped, _ = World(DGX, bounds=of_pods(max=SMALL), policy=policy).mutate(made)
    assert amounts(shaped) == {"main": ("6", "4Gi")}


def test_decisions_are_remembered_by_bounds() -> None:
    world = World(DGX, bounds=of_pods(max=SMALL))
    before = world.mutate(pod(bare()))[0]
    world.known = world.known.knowing(limits_of([of_pods(max={"cpu": "3", "memory": "8Gi"})]))
    assert (amounts(before)["main"][0], amounts(world.mutate(pod(bare()))[0])["main"][0]) == ("6", "3")


@pytest.mark.parametrize("odd", [None, [], {}, ["Pod"], 1])
def test_a_type_that_is_none_is_left_out(odd: Any) -> None:
    assert limits_of([limit_range({"type": odd, "max": {"cpu": "1"}})]) == {}
