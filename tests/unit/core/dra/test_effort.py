"""A claim is not changed into one over which the scheduler would run out of time."""

from __future__ import annotations

import pytest

from tests.unit.core.dra.claiming import CPU, GPU, JSON, NIC, claim, inventory, mutated, on, request
from webhook.core.dra import claims
from webhook.core.dra.attributes import shared_attributes
from webhook.core.dra.candidates import wanted
from webhook.core.dra.effort import most_combinations
from webhook.core.dra.encoding import Encoding, required

FOUR_AND_FOUR = [on(GPU, *[0] * 4, *[1] * 4), on(NIC, *[0] * 4, *[1] * 4)]
PARTITIONS = [on(GPU, *[0] * 32, *[1] * 32), on(NIC, *[0] * 4, *[1] * 4)]


@pytest.mark.parametrize(
    ("requests", "slices", "combinations"),
    [
        ((request("gpu", 2),), FOUR_AND_FOUR, 2 * 2),  # of one that is left: none and that one, on two NUMA nodes
        ((request("gpu", 8),), [on(GPU, *[0] * 8, *[1] * 8)], 2 * 13_700),
        ((request("gpu", 8),), [on(GPU, *[0] * 8)], 13_700),
        ((request("nic"), request("gpu", 4)), FOUR_AND_FOUR, 2 * 4 * (1 + 3 + 6 + 6)),
        ((request("gpu", 4), request("nic")), FOUR_AND_FOUR, 2 * 4 * 3 * 2),
        ((request("gpu", 4), request("nic")), PARTITIONS, 2 * 32 * 31 * 30 * 29),
    ],
)
def test_combinations(requests: tuple[JSON, ...], slices: list[JSON], combinations: int) -> None:
    made, known = claim(*requests), inventory(node=slices)
    everything = [wanted(each, known) for each in claims.visit(claims.devices(made))]
    encoding = required(claims.devices(made), shared_attributes(everything)[0])
    assert isinstance(encoding, Encoding)
    assert most_combinations(encoding, everything, known.nodes) == combinations


@pytest.mark.parametrize(
    ("requests", "slices", "strict", "best_effort"),
    [
        ((request("gpu", 4), request("nic")), FOUR_AND_FOUR, True, True),
        ((request("gpu", 8),), [on(GPU, *[0] * 8, *[1] * 8)], True, True),
        ((request("gpu", 9),), [on(GPU, *[0] * 16, *[1] * 16)], False, False),
        ((request("nic"), request("gpu", 4)), PARTITIONS, True, False),  # the hub comes first
        ((request("gpu", 4), request("nic")), PARTITIONS, False, False),
        ((request("gpu"), request("cpu", 16)), [on(GPU, 0, 1), on(CPU, *[0] * 64, *[1] * 64)], False, False),
    ],
)
def test_too_many(requests: tuple[JSON, ...], slices: list[JSON], strict: bool, best_effort: bool) -> None:
    for mode, expected in (("strict", strict), ("best-effort", best_effort)):
        _, decision = mutated(claim(*requests), inventory(node=slices), mode)
        assert (decision.outcome, decision.reason) == (("mutated", "") if expected else ("unchanged", "TooManyCombinations"))
        assert any("too many combinations" in line for line in decision.warnings) is not expected


def test_what_moving_the_hub_costs_counts() -> None:
    """As written a node without a free NIC is given up at once; with the GPUs first, all their combinations come before it."""
    sixteen = [on(GPU, *[0] * 8, *[1] * 8), on(NIC, 0, 1)]
    for requests, outcome in (
        ((request("gpu", 4), request("nic")), "mutated"),
        ((request("nic"), request("gpu", 4)), "unchanged"),
        ((request("nic"), request("gpu", 2)), "mutated"),
    ):
        _, decision = mutated(claim(*requests), inventory(node=sixteen), "best-effort")
        assert decision.outcome == outcome


def test_a_node_without_the_devices_does_not_count() -> None:
    few = [on(GPU, *[0] * 32, *[1] * 32)]
    _, decision = mutated(claim(request("gpu", 4), request("nic")), inventory(few=few, node=FOUR_AND_FOUR))
    assert decision.outcome == "mutated"
