"""Is a pod ever worse off for being shaped? Random pods and sets of node classes, judged by the kubelet's own managers.

    python -m tests.conformance.shaping --minor 37 --cases 20000

For each class whose kubelet certainly admits a pod as written, the pod as the mutating handler returns it must be admitted,
or required node affinity must keep it off; and what the model says about the returned pod must be what the kubelet says.
"""

import argparse
import copy
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jsonpatch

from tests.conformance import generator
from tests.conformance.compare import ask_model, ask_oracle, describe, difference, oracle_path
from webhook.config.catalogue import load_catalogue
from webhook.config.load import load_policy, parse_class
from webhook.core.accelerators import Catalogue
from webhook.core.decide import mutate
from webhook.core.decision import Request
from webhook.core.kubelet.node import NodeKubelet, compile_class
from webhook.core.policy import CpuRules, HugepageRules, MemoryRules, Policy
from webhook.core.snapshot import Snapshot

JSON = dict[str, Any]

MODES = ("strict", "strict", "best-effort")


@dataclass(frozen=True, slots=True)
class World:
    """A pod, the node classes that it could land on, and the pod as the mutating handler returns it."""

    number: int
    classes: tuple[JSON, ...]
    pod: JSON
    returned: JSON

    def cases(self) -> Iterator[JSON]:
        """Yield what the oracle is asked: per class the pod as written and, where it was changed, as returned."""
        for node_class in self.classes:
            yield {"nodeClass": node_class, "pod": self.pod}
            if self.returned != self.pod:
                yield {"nodeClass": node_class, "pod": self.returned}


def world(seed: int, number: int, minor: int) -> World:
    """Return one random world."""
    rng = random.Random(f"shaping/{seed}/{number}")
    chosen = [generator.case(seed, 3 * number + index, minor) for index in range(rng.choice((1, 2, 2, 3)))]
    classes = tuple(
        _named(case["nodeClass"], index) for index, case in enumerate(chosen) if index == 0 or _quick(case["nodeClass"])
    )
    pod = _casual(rng, chosen[0]["pod"])
    policy, catalogue = _shipped()
    snapshot = Snapshot(
        _changed(rng, policy),
        catalogue,
        tuple(sorted(filter(None, map(_compile, classes)), key=lambda node: node.node_class.name)),
    )
    decision = mutate(copy.deepcopy(pod), Request(namespace="default", label=rng.choice(MODES)), snapshot)
    returned = jsonpatch.apply_patch(pod, [dict(step) for step in decision.patch])
    return World(number, classes, pod, returned)


def _quick(node_class: JSON) -> bool:
    """Tell whether any pod is merged in no time; the pod was made with the first class in mind only."""
    spec = node_class["spec"]
    return len(spec["topology"]["numaNodes"]) <= 4 or spec["kubelet"]["topologyManagerPolicy"] in ("single-numa-node", "none")


def _named(node_class: JSON, index: int) -> JSON:
    node_class["metadata"]["name"] = f"class-{index}"
    node_class["spec"]["selector"] = {"class": f"class-{index}"}
    if index:
        node_class["spec"]["daemonSets"] = {"cpu": "500m", "memory": "128Mi"}
    return node_class


@lru_cache(1)
def _shipped() -> tuple[Policy, Catalogue]:
    policy, _ = load_policy()
    return policy, load_catalogue()


def _changed(rng: random.Random, policy: Policy) -> Policy:
    """Return the shipped policy or, as often, one with other rules for shapes."""
    if rng.random() < 0.5:
        return policy
    return replace(
        policy,
        cpu=CpuRules(rng.choice(("share", "share", "request", "limit")), rng.choice((None, None, 2000, 3000))),
        memory=MemoryRules(rng.choice(("always", "always", "never")), rng.choice((1 << 30, 64 << 20))),
        hugepages=HugepageRules(rng.choice((1 << 30, 2 << 20)), rng.choice((0, 0, 1 << 30))),
        shape_shared=rng.random() < 0.5,
        steer=rng.random() < 0.8,
    )


def _compile(document: JSON) -> NodeKubelet | None:
    node_class, _ = parse_class(document)
    node = None if node_class is None else compile_class(node_class)
    return None if node is None or node.start is not None else node


def _casual(rng: random.Random, pod: JSON) -> JSON:
    """Leave out what authors often leave out: CPU and memory, of some containers or of all, as limits or altogether."""
    dropped = rng.choice(((), ("cpu",), ("memory",), ("cpu", "memory"), ("cpu", "memory")))
    lists = rng.choice((("limits",), ("limits", "requests"), ("limits", "requests")))
    pod = copy.deepcopy(pod)
    if rng.random() < 0.6:
        _add_device(rng, pod)
    for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
        if rng.random() < 0.8:
            for name in lists:
                for resource in dropped:
                    container.get("resources", {}).get(name, {}).pop(resource, None)
    return pod


def _add_device(rng: random.Random, pod: JSON) -> None:
    """See to it that the pod is our business."""
    container = rng.choice(pod["spec"]["containers"])
    resources = container.setdefault("resources", {})
    count = resources.setdefault("limits", {}).setdefault(generator.GPU, rng.choice((1, 1, 2)))
    resources.setdefault("requests", {})[generator.GPU] = count


def kept_off(pod: JSON, labels: JSON) -> bool:
    """Tell whether required node affinity (of the form that steering injects) excludes nodes with these labels."""
    required = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return False
    return all(
        any(_excludes(expression, labels) for expression in term.get("matchExpressions", ()))
        for term in required["nodeSelectorTerms"]
    )


def _excludes(expression: JSON, labels: JSON) -> bool:
    return expression["operator"] == "NotIn" and labels.get(expression["key"]) in expression["values"]


def judge(subject: World, verdicts: Iterator[JSON]) -> Iterator[tuple[str, str]]:
    """Yield per class a word for how the pod fares there, and details where that is wrong."""
    for node_class in subject.classes:
        written = next(verdicts)
        returned = next(verdicts) if subject.returned != subject.pod else written
        answer = ask_model({"nodeClass": node_class, "pod": subject.returned})
        what = "" if answer.no_class else difference(answer, returned)
        if what:
            yield f"WRONG {what}", describe(answer, returned)
        elif not _offers(node_class, subject.pod):
            yield "no candidate", ""
        elif returned.get("timedOut") or not (written["certain"] and returned["certain"]):
            yield "left to chance", ""
        elif written["admitted"] and not returned["admitted"] and not kept_off(subject.returned, node_class["spec"]["selector"]):
            yield "WORSE", f"as written: {written['masks']}\n{describe(answer, returned)}"
        else:
            yield _fate(subject, written, returned), ""


def _offers(node_class: JSON, pod: JSON) -> bool:
    """Tell whether the class has each device resource; the scheduler would not let a pod near it otherwise."""
    topology = node_class["spec"]["topology"]
    known = {name for node in topology["numaNodes"] for name in node.get("devices", {})}
    known |= {
        *topology.get("devicesWithoutTopology", {}),
        *(spread["resource"] for spread in topology.get("devicesOnSeveralNodes", ())),
    }
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    return known.issuperset(name for each in containers for name in each.get("resources", {}).get("limits", {}) if "/" in name)


def _fate(subject: World, written: JSON, returned: JSON) -> str:
    if subject.returned == subject.pod:
        return "unchanged"
    if returned["aligned"] and not written["aligned"]:
        return "changed, now aligned"
    if written["admitted"] and not returned["admitted"]:
        return "changed, kept off"
    return "changed"


def main(given: Sequence[str] | None = None) -> int:
    """Run the check; exits with 1 where a pod is worse off or an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", type=int, default=37, choices=(34, 35, 36, 37))
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--show", type=int, default=5)
    options = parser.parse_args(given)
    worlds = [world(options.seed, number, options.minor) for number in range(options.cases)]
    cases = (case for each in worlds for case in each.cases())
    verdicts = ask_oracle(oracle_path(options.minor), cases, workers=options.workers, repeat=3)
    counts: Counter[str] = Counter()
    wrong = 0
    for each in worlds:
        for fate, detail in judge(each, verdicts):
            counts[fate] += 1
            if detail:
                wrong += 1
                if wrong <= options.show:
                    print(f"world {each.number}: {fate}\nwritten:  {json.dumps(each.pod)}")
                    print(f"returned: {json.dumps(each.returned)}\n{detail}\n")
    print("\n".join(f"{count:7} {fate}" for fate, count in counts.most_common()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
