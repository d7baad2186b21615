"""The allocator's search: whether a node has the devices of all claims, and which ones come first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.dra.claiming import GPU, JSON, NIC, NUMA, device, inventory, on, request, spec
from webhook.core.dra.allocation import Fits
from webhook.core.dra.demand import Demand, demand, together
from webhook.core.dra.search import Certainty, TooLongError, first, joint_fits

HUB = {
    "requests": [
        {
            "name": "gpu",
            "firstAvailable": [
                {"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
                for name in ("aligned", "any")
            ],
        },
        request("nic"),
    ],
    "constraints": [{"matchAttribute": NUMA, "requests": ["gpu/aligned", "nic"]}],
}


def wants(*claims: JSON, slices: list[JSON]) -> Demand:
    known = inventory(n=slices)
    return together(demand(f"c{index}", devices, known) for index, devices in enumerate(claims))


def asking(*requests: JSON, **more: Any) -> JSON:
    return {"requests": list(requests)} | more


def chosen(found: Demand) -> dict[str, list[str]] | None:
    made = first("n", found, Certainty.SURE)
    return None if made is None else {"/".join(key): [each.name for each in devices] for key, devices in made.items()}


MATCH = [{"matchAttribute": NUMA}]


@pytest.mark.parametrize(
    ("claims", "slices", "found"),
    [
        ([asking(request("gpu", 2))], [on(GPU, 0, 0, 1)], {"c0/gpu": ["d0", "d1"]}),
        ([asking(request("gpu", 2))] * 2, [on(GPU, 0, 0, 1, 1)], {"c0/gpu": ["d0", "d1"], "c1/gpu": ["d2", "d3"]}),
        ([asking(request("gpu", 2), constraints=MATCH)], [on(GPU, 0, 1, 1)], {"c0/gpu": ["d1", "d2"]}),
        ([asking(request("gpu", 2), constraints=MATCH)], [on(GPU, 0, 1)], None),
        (
            [asking(request("gpu"), request("nic"), constraints=MATCH)],
            [on(GPU, 0, 1), on(NIC, 1)],
            {"c0/gpu": ["d1"], "c0/nic": ["d0"]},
        ),
        # constraints end at their claim
        (
            [asking(request("gpu", 2), constraints=MATCH), asking(request("gpu"))],
            [on(GPU, 0, 1, 1)],
            {"c0/gpu": ["d1", "d2"], "c1/gpu": ["d0"]},
        ),
        # the outer alternative is tried with every device before the next one
        ([HUB], [on(GPU, 0, 1), on(NIC, 1)], {"c0/gpu": ["d1"], "c0/nic": ["d0"]}),
        ([HUB], [on(GPU, 0, 0), on(NIC, 1)], {"c0/gpu": ["d0"], "c0/nic": ["d0"]}),
        # values that say nothing match each other all the same, but what is not published matches nothing
        ([asking(request("gpu", 2), constraints=MATCH)], [on(GPU, 0, -1, -1)], {"c0/gpu": ["d1", "d2"]}),
        ([asking(request("gpu", 2), constraints=MATCH)], [on(GPU, 0, None, None)], None),
    ],
)
def test_the_first_devices_that_will_do(claims: list[JSON], slices: list[JSON], found: dict[str, list[str]] | None) -> None:
    assert chosen(wants(*claims, slices=slices)) == found


def test_pools_come_in_the_order_of_driver_and_name() -> None:
    def pool(name: str, device_name: str) -> JSON:
        return spec(GPU, device(device_name, numa=0), pool={"name": name, "generation": 1, "resourceSliceCount": 1})

    assert chosen(wants(asking(request("gpu")), slices=[pool("b", "x"), pool("a", "y")])) == {"c0/gpu": ["y"]}


COUNTERS = spec(GPU, *(device(f"d{i}", numa=0) | {"consumesCounters": [{}]} for i in range(3)))
SHARED = spec(GPU, device("d", numa=0) | {"allowMultipleAllocations": True})
LISTS = spec(GPU, *(device(f"d{i}", {NUMA: [0, 1]}) for i in range(2)))


@pytest.mark.parametrize(
    ("claims", "slices", "fits"),
    [
        ([asking(request("gpu", 3))], [on(GPU, 0, 0)], Fits.NO),
        ([asking(request("gpu", 2))] * 2, [on(GPU, 0, 0, 0)], Fits.NO),
        ([asking(request("gpu", 2))] * 2, [on(GPU, 0, 0, 0, 0)], Fits.YES),
        ([asking(request("gpu", 2), constraints=MATCH)] * 2, [on(GPU, 0, 0, 0, 1)], Fits.NO),
        ([asking(request("gpu", 10**12))], [on(GPU, 0, 0)], Fits.NO),
        ([asking(request("gpu", 2))], [COUNTERS], Fits.UNKNOWN),
        ([asking(request("gpu", 4))], [COUNTERS], Fits.NO),
        ([asking(request("gpu"), request("gpu2", cls="gpu"))], [SHARED], Fits.UNKNOWN),
        ([asking(request("gpu"))], [SHARED], Fits.YES),
        ([asking(request("gpu", 2), constraints=MATCH)], [LISTS], Fits.UNKNOWN),
        # what is not understood never makes a yes, and never a no
        ([asking(request("gpu", 1, adminAccess=True))], [on(GPU, 0)], Fits.UNKNOWN),
        ([asking({"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}})], [on(GPU, 0)], Fits.UNKNOWN),
        ([asking(request("tpu", 5))], [on(GPU, 0)], Fits.UNKNOWN),
        ([asking(request("gpu", 2), request("tpu", 5))], [on(GPU, 0)], Fits.NO),
        ([asking({"name": "a", "firstAvailable": [{"name": 1}]})], [on(GPU, 0)], Fits.UNKNOWN),
        ([asking({"name": "a", "firstAvailable": []})], [on(GPU, 0)], Fits.UNKNOWN),
        ([asking(request("gpu", 2), constraints=[{"distinctAttribute": NUMA}])], [on(GPU, 0, 0)], Fits.UNKNOWN),
        ([asking(request("gpu", 33))], [on(GPU, *([0] * 40))], Fits.UNKNOWN),
        # too long to tell
        ([asking(request("gpu", 16), constraints=MATCH)], [on(GPU, *range(8), *range(8), *([9] * 15))], Fits.NO),
    ],
)
def test_whether_a_node_has_them_all(claims: list[JSON], slices: list[JSON], fits: Fits) -> None:
    assert joint_fits("n", wants(*claims, slices=slices)) is fits


def test_a_search_ends() -> None:
    many = [asking(request("gpu", 12), constraints=MATCH), asking(request("gpu", 12), constraints=MATCH)]
    endless = wants(*many, slices=[on(GPU, *([0] * 23), *([1] * 1))])
    with pytest.raises(TooLongError):
        first("n", endless, Certainty.SURE)
    assert joint_fits("n", endless) is Fits.UNKNOWN


def test_other_nodes_are_other_nodes() -> None:
    known = inventory(n=[on(GPU, 0)], m=[on(GPU, 0, 0)])
    two = demand("c", asking(request("gpu", 2)), known)
    assert (joint_fits("n", two), joint_fits("m", two), joint_fits("nowhere", two)) == (Fits.NO, Fits.YES, Fits.NO)
