"""Trying out what the kubelet leaves to chance."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.kubelet.chance import Chooser, Matters, outcomes, spreads

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
    ("matters", "certain"), [(ALL, False), (Matters(later=False, last=True), True), (Matters(later=True, last=False), False)]
)
def test_all_sequences_of_choices_are_tried(matters: Matters, certain: bool):
    def run(chooser: Chooser) -> bool:
        first = chooser.pick((2, 2), 2, last=False)
        second = chooser.pick((1, 1), 1, last=True)
        return (first, second) in {((0, 2), (0, 1)), ((0, 2), (1, 0))}

    assert outcomes(run, lambda _: matters, lambda one, other: one == other) == (False, certain)


def test_only_the_groups_count_for_the_last_user():
    seen = set()

    def run(chooser: Chooser) -> None:
        seen.add(chooser.pick((4, 4), 4, last=True))

    assert outcomes(run, lambda _: ALL, lambda *_: True) == (None, True)
    assert seen == {(4, 0), (3, 1), (0, 4)}


def test_without_chance_there_is_one_run():
    runs = []

    def run(chooser: Chooser) -> None:
        runs.append(chooser)

    assert outcomes(run, lambda _: ALL, lambda *_: False) == (None, True)
    assert len(runs) == 1


def test_too_many_sequences_are_uncertain():
    def run(chooser: Chooser) -> None:
        for _ in range(9):
            chooser.pick((1, 1), 1, last=False)

    assert outcomes(run, lambda _: ALL, lambda *_: True) == (None, False)
