"""Pods on sockets by what they take alone: found wherever there is a way, within bounded work."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.interference.packing import pack


def fits(places: tuple[int, ...], sizes: list[int], capacities: list[int]) -> bool:
    taken = [0] * len(capacities)
    for place, size in zip(places, sizes, strict=True):
        taken[place] += size
    return all(each <= capacity for each, capacity in zip(taken, capacities, strict=True))


@given(st.lists(st.integers(0, 9), max_size=7), st.lists(st.integers(0, 16), min_size=1, max_size=3))
def test_a_way_is_found_if_there_is_one(sizes: list[int], capacities: list[int]) -> None:
    found = pack(sizes, capacities)
    ways = product(range(len(capacities)), repeat=len(sizes))
    assert (found is not None) == any(fits(way, sizes, capacities) for way in ways)
    if found is not None:
        place = {pod: at for at, group in enumerate(found) for pod in group}
        assert sorted(place) == list(range(len(sizes)))
        assert fits(tuple(place[pod] for pod in range(len(sizes))), sizes, capacities)


@pytest.mark.parametrize(
    ("sizes", "capacities"),
    [
        pytest.param([6, 5, 4, 4, 3, 3, 3, 2], [10, 10, 10], id="not by the largest first where it is tightest"),
        pytest.param([1] * 110, [55, 55], id="as many as a node has"),
        pytest.param([], [4], id="nobody"),
    ],
)
def test_full_sockets(sizes: list[int], capacities: list[int]) -> None:
    found = pack(sizes, capacities)
    assert found is not None
    assert [sum(sizes[pod] for pod in group) for group in found] == capacities or not sizes


def test_it_gives_up_after_its_steps() -> None:
    assert pack([1] * 40, [20, 20], steps=39) is None
    assert pack([1] * 40, [20, 20], steps=40) is not None


def test_what_led_nowhere_is_not_tried_again() -> None:
    # Even pods leave one of each socket: without a memory all ways to deal them would be tried.
    assert pack([4] * 9 + [2] * 7, [17, 17, 17], steps=200) is None
