"""`takeByTopology`, against what the original takes."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.kubelet.classes import cpus, topology
from webhook.core.kubelet.config import CpuOptions
from webhook.core.kubelet.cpu import strategy
from webhook.core.kubelet.cpu_assignment import EndlessLoopError, NotEnoughCpusError, _deviation, take_by_topology
from webhook.core.kubelet.machine import CpuTopology, cpu_topology, format_set

TABLE = Path(__file__).with_name("assignments.txt")

OPTIONS = {
    "packed": CpuOptions(),
    "spread": CpuOptions(distribute_across_cores=True),
    "caches": CpuOptions(prefer_align_by_uncore_cache=True),
    "distributed": CpuOptions(distribute_across_numa=True),
    "distributed cores": CpuOptions(distribute_across_numa=True, full_pcpus_only=True),
    "distributed, by socket": CpuOptions(distribute_across_numa=True, align_by_socket=True),
}


@cache
def machine(name: str) -> CpuTopology:
    return cpu_topology(
        {
            "two-socket": topology(12, 12),
            "nps2": topology(8, 8, 8, 8),
            "nps4": topology(*[8] * 8),
            "caches": topology(16, 16, cores_per_uncore_cache=4),
            "two sockets, one node": topology(16),
            "smt4 caches": topology(16, 16, threads=4, cores_per_uncore_cache=2),
            "uneven": topology(8, 4, 12, threads=1, sockets=1),
            "smt4": topology(16, 16, threads=4, adjacent_siblings=True),
            "uneven sockets": topology(6, 2, 4, 4, threads=1),
        }[name]
    )


def rows() -> Iterator[tuple[str, ...]]:
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield tuple(cell.strip() for cell in line.split("|"))


def take(name: str, options: str, minor: int, free: int, count: int) -> str:
    where = machine(name)
    try:
        return format_set(take_by_topology(where, strategy(OPTIONS[options], where.threads_per_core, minor), free, count))
    except EndlessLoopError:
        return "HANG"
    except NotEnoughCpusError as error:
        return f"ERR {error}"


@pytest.mark.parametrize("row", list(rows()), ids=" / ".join)
def test_takes_what_the_kubelet_takes(row: tuple[str, ...]):
    name, options, minor, free, count, taken = row

    assert take(name, options, int(minor), cpus(free), int(count)) == taken


def test_more_than_is_free():
    found = take("two-socket", "packed", 37, cpus("0-3"), 5)

    assert found == "ERR not enough cpus available to satisfy request: requested=5, available=4"


def test_a_part_of_a_cache_goes_before_half_a_core_elsewhere():
    assert take("caches", "caches", 37, cpus("0,4-7,20-23"), 3) == "4-5,20"
    assert take("caches", "packed", 37, cpus("0,4-7,20-23"), 3) == "0,4,20"


def test_a_whole_cache_goes_before_as_much_of_a_larger_one():
    """Three cores fit the free part of the cache of cores 0 to 3, and are the whole of the next."""
    uneven = cpu_topology(topology(14, 6, sockets=1, cores_per_uncore_cache=4))
    taken = take_by_topology(uneven, strategy(OPTIONS["caches"], 2, 37), cpus("1-6,11-16"), 6)

    assert format_set(taken) == "4-6,14-16"


def test_the_deviation_is_of_a_mean_rounded_to_thousandths():
    assert _deviation({0: 100, 1: 100, 2: 101}) == 0.471
    assert _deviation({0: 8, 1: 8}) == 0


@pytest.mark.parametrize("options", OPTIONS)
def test_nothing_is_always_there(options: str):
    assert take("nps2", options, 37, 0, 0) == ""


@given(
    st.sampled_from(["two-socket", "nps2", "nps4", "caches", "two sockets, one node", "uneven", "smt4"]),
    st.sampled_from(sorted(OPTIONS)),
    st.sampled_from([34, 37]),
    st.integers(0),
    st.data(),
)
def test_takes_as_many_as_asked_of_what_is_free(name: str, options: str, minor: int, bits: int, data: st.DataObject):
    free = machine(name).cpus & bits
    count = data.draw(st.integers(0, free.bit_count()))

    taken = take(name, options, minor, free, count)

    if taken == "HANG" or "accounting error" in taken:
        assert options.startswith("distributed")
    else:
        assert cpus(taken).bit_count() == count
        assert cpus(taken) & ~free == 0
