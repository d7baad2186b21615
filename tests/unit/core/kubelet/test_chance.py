"""Trying out what the kubelet leaves to chance."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.kubelet.chance import Chooser, Matters, always, spreads

ALL = Matters(later=True, last=True)


@given(st.lists(st.integers(0, 3), max_size=4).map(tuple), st.data())
def test_spreads_are_all_ways_to_take_some(capacities: tuple[int, ...], data: st.DataObject):
    count = data.draw(st.integers(0, sum(capacities)))
    found = list(spreads(capacities, count))

    assert len(found) == len(set(found)) > 0
    assert all(sum(one) == count and all(0 <= n <= cap for n, cap in zip(one, capacities, strict=True)) for one in found)


def test_spreads_are_complete():
    assert len(list(spreads((1,) * 8, 3))) == comb(8, 3)


@pytest.mark.parametrize(
    ("matters", "expected"),
    [(ALL, False), (Matters(later=False, last=True), True), (Matters(later=True, last=False), False)],
)
def test_all_sequences_of_choices_are_tried(matters: Matters, expected: bool):
    def run(chooser: Chooser) -> bool:
        first = chooser.pick((2, 2), 2, last=False)
        second = chooser.pick((1, 1), 1, last=True)
        return (first, second) not in {((0, 2), (0, 1)), ((0, 2), (1, 0))}

    assert always(run, matters, 256) is expected


def test_only_the_groups_count_for_the_last_user():
    seen = set()

    def run(chooser: Chooser) -> bool:
        seen.add(chooser.pick((4, 4), 4, last=True))
        return True

    assert always(run, ALL, 256)
    assert seen == {(4, 0), (3, 1), (0, 4)}


def test_a_run_that_ends_early_spares_the_rest():
    runs = []

    def run(chooser: Chooser) -> bool:
        runs.append(chooser)
        if chooser.pick((1, 1), 1, last=False) == (1, 0):
            return True
        chooser.pick((1, 1), 1, last=False)
        return True

    assert always(run, ALL, 256)
    assert len(runs) == 3


def test_too_many_sequences_are_uncertain():
    def run(chooser: Chooser) -> bool:
        for _ in range(9):
            chooser.pick((1, 1), 1, last=False)
        return True

    assert not always(run, ALL, 256)


def test_without_a_script_nothing_else_is_tried():
    chooser = Chooser()

    assert chooser.pick((2, 2), 3, last=False) == (2, 1)
    assert (chooser.path, chooser.chances) == ([], 1)
