"""Merging hints."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.kubelet.make import hints, written
from webhook.core.kubelet.contract import ChancePanicError, Hint, KubeletPanicError
from webhook.core.kubelet.topology import TopologyPolicy, filtered

SINGLE, RESTRICTED, BEST_EFFORT = "single-numa-node", "restricted", "best-effort"
BOTH, WIDE = hints("0T", "1T", "0,1F"), hints("0,1T")


def merged(policy: str, *lists: tuple[Hint, ...] | None, nodes: int = 2) -> str:
    found = TopologyPolicy(policy, (1 << nodes) - 1).merge([{str(index): found} for index, found in enumerate(lists)])
    (hint,) = written((found.hint,)) or ()
    return f"{'A' if found.admit else 'R'} {hint}"


@pytest.mark.parametrize(
    ("lists", "single", "restricted", "best_effort"),
    [
        ([BOTH, BOTH], "A 0T", "A 0T", "A 0T"),
        ([BOTH, hints("1T", "0,1F")], "A 1T", "A 1T", "A 1T"),
        ([WIDE, WIDE], "R *F", "A 0,1T", "A 0,1T"),
        ([BOTH, WIDE], "R *F", "R", "A 0,1F"),
        ([hints("0T"), hints("1T")], "R *F", "R", "A 0,1F"),
        ([BOTH, None], "A 0T", "A 0T", "A 0T"),
        ([None, None], "A *T", "A 0,1T", "A 0,1T"),
        ([BOTH, ()], "R *F", "R", "A 0F"),
        ([(), ()], "R *F", "R", "A 0,1F"),
        ([hints("0,1F"), BOTH], "R *F", "R", "A 0,1F"),
    ],
)
def test_policies(lists: list[tuple[Hint, ...] | None], single: str, restricted: str, best_effort: str):
    assert merged(SINGLE, *lists) == single
    assert merged(RESTRICTED, *lists).startswith(restricted)
    assert merged(BEST_EFFORT, *lists) == best_effort


def test_no_preference_is_not_the_same_as_not_possible():
    assert [written(found) for found in filtered([None, {}, {"a": None}, {"a": ()}, {"a": BOTH}])] == [
        ["*T"],
        ["*T"],
        ["*T"],
        ["*F"],
        ["0T", "1T", "0,1F"],
    ]


def test_one_numa_node_needs_no_mask_under_single_numa_node():
    assert merged(SINGLE, hints("0T"), nodes=1) == "A *T"
    assert merged(RESTRICTED, hints("0T"), nodes=1) == "A 0T"


def test_what_is_not_preferred_is_as_wide_as_the_neediest_resource():
    assert merged(BEST_EFFORT, hints("0F", "0,1F", "0,1,2F"), hints("0,1F", "0,1,2F"), nodes=3) == "A 0,1F"


def test_closest_nodes_win_over_low_ones():
    near = {0: (10, 30, 12), 1: (30, 10, 30), 2: (12, 30, 10)}
    pairs = hints("0,1T", "0,2T", "1,2T", "0,1,2F")

    assert TopologyPolicy(RESTRICTED, 0b111, near).merge([{"gpu": pairs}]).hint == Hint(0b101, preferred=True)


def test_a_missing_distance_panics():
    policy = TopologyPolicy(RESTRICTED, 0b100001, {0: (10, 21), 5: (21, 10)})

    with pytest.raises(KubeletPanicError):
        policy.merge([{"gpu": hints("0T", "5T", "0,5F")}])
    assert policy.merge([{"gpu": hints("0T")}]).hint == Hint(1, preferred=True)


def test_the_random_order_of_one_managers_resources_decides_whether_a_missing_distance_panics():
    policy = TopologyPolicy(RESTRICTED, 0b1011, {0: (10, 21, 21), 1: (21, 10, 21), 3: (21, 21, 10)})
    gpu, nic = hints("0T", "3T", "1,3F"), hints("1,3T", "0,1,3F")

    with pytest.raises(ChancePanicError):
        policy.merge([{"gpu": gpu, "nic": nic}])
    with pytest.raises(KubeletPanicError) as panic:
        policy.merge([{"gpu": gpu}, {"memory": nic}])
    assert not isinstance(panic.value, ChancePanicError)
    assert policy.merge([{"nic": nic}, {"cpu": gpu}]).hint == Hint(0b1010, preferred=False)


def test_too_many_hints_to_see_which_distances_are_missing():
    policy = TopologyPolicy(BEST_EFFORT, 0b1011, {0: (10, 21, 21), 1: (21, 10, 21), 3: (21, 21, 10)})
    found = hints("0T", "1T", "3T", "0,1F", "0,3F", "1,3F", "0,1,3F")

    with pytest.raises(ChancePanicError):
        policy.merge([{str(index): found for index in range(6)}])


# --- the fold against the kubelet's own way: every combination of one hint of each list -----------------------------------

NODES = 3
MASKS = st.integers(1, (1 << NODES) - 1)
LISTS = st.one_of(
    st.just((Hint(None, preferred=True),)),
    st.just((Hint(None, preferred=False),)),
    st.lists(st.builds(Hint, MASKS, st.booleans()), min_size=1, max_size=5, unique_by=lambda hint: hint.mask).map(tuple),
)
DISTANCES = {0: (10, 12, 40), 1: (12, 10, 20), 2: (40, 20, 10)}


def brute_force(lists: list[tuple[Hint, ...]], *, closest: bool) -> Hint:
    everything = (1 << NODES) - 1
    narrowest = [min((h.mask.bit_count() for h in found if h.mask is not None), default=0) for found in lists]
    aim = max(narrowest, default=0)
    best: Hint | None = None
    for combination in product(*lists):
        masks = [hint.mask for hint in combination if hint.mask is not None]
        mask = everything
        for one in masks:
            mask &= one
        candidate = Hint(mask, all(hint.preferred for hint in combination) and len(set(masks)) <= 1)
        if mask and (best is None or replaces(best, candidate, aim, closest=closest)):
            best = candidate
    return best or Hint(everything, preferred=False)


def replaces(current: Hint, candidate: Hint, aim: int, *, closest: bool) -> bool:
    """HintMerger.compare, case by case."""
    now, then = current.mask or 0, candidate.mask or 0
    if current.preferred != candidate.preferred:
        return candidate.preferred
    fitter = fits_better(now, then, closest=closest)
    if current.preferred or now.bit_count() > aim:
        return fitter
    if now.bit_count() == aim:
        return then.bit_count() == aim and fitter
    if then.bit_count() > aim:
        return False
    if then.bit_count() == now.bit_count():
        return fitter
    return then.bit_count() > now.bit_count()


def fits_better(now: int, then: int, *, closest: bool) -> bool:
    if now.bit_count() != then.bit_count() or not closest:
        return (then.bit_count(), then) < (now.bit_count(), now)
    return (average(then), then) < (average(now), now)


def average(mask: int) -> float:
    nodes = [node for node in range(NODES) if mask >> node & 1]
    return sum(DISTANCES[one][other] for one in nodes for other in nodes) / len(nodes) ** 2


@given(st.lists(LISTS, min_size=1, max_size=4), st.booleans())
def test_the_fold_finds_what_trying_everything_finds(lists: list[tuple[Hint, ...]], closest: bool):
    provided = [{"r": None if found[0] == Hint(None, True) else () if found[0].mask is None else found} for found in lists]
    policy = TopologyPolicy(BEST_EFFORT, (1 << NODES) - 1, DISTANCES if closest else None)
    expected = brute_force(lists, closest=closest)

    assert policy.merge(provided).hint == expected
    restricted = TopologyPolicy(RESTRICTED, (1 << NODES) - 1, DISTANCES if closest else None).merge(provided)
    assert restricted.admit is expected.preferred
    assert not restricted.admit or restricted.hint == expected


@given(st.lists(LISTS, min_size=2, max_size=4).flatmap(lambda lists: st.tuples(st.just(lists), st.permutations(lists))))
def test_the_order_of_providers_does_not_matter(pair: tuple[list[tuple[Hint, ...]], list[tuple[Hint, ...]]]):
    policy = TopologyPolicy(BEST_EFFORT, (1 << NODES) - 1)
    one, other = ([{"r": found if found[0].mask is not None else ()} for found in lists] for lists in pair)

    assert policy.merge(one) == policy.merge(other)
