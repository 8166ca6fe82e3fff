"""Where a newcomer goes and who makes room, where that is proved: never worse than looking at everything."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.assignment import EXACT_PODS
from berth.scheduling.interference.counted_pairings import CountedPairings
from berth.scheduling.interference.counted_seats import Guest, Step, step_for
from berth.scheduling.interference.group_costs import MOST
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.slowdown import PRICE, SlowdownModel, Workload

LETTERS = [Workload("", letter) for letter in InterferenceClass]
JUDGE = LeastSlowdown(SlowdownModel(), LETTERS)
PAIRINGS = CountedPairings(JUDGE.group_costs(LETTERS, 1, more=False))
A, B, C, D = range(4)
Pods = list[tuple[int, int, int]]
"""class, size and place of each"""


def step(newcomer: tuple[int, int], guests: Pods, capacities: list[int]) -> Step | None:
    strides = PAIRINGS.costs.strides
    there = [Guest(strides[letter], size, place) for letter, size, place in guests]
    return step_for(PAIRINGS, strides[newcomer[0]], newcomer[1], there, capacities)


def after(found: Step, newcomer: tuple[int, int], guests: Pods) -> Pods:
    """Where all are then."""
    places = [found.to if number == found.moved else place for number, (_, _, place) in enumerate(guests)]
    moved = [(letter, size, place) for (letter, size, _), place in zip(guests, places, strict=True)]
    return [*moved, (*newcomer, found.place)]


def total(then: Pods, now: Pods) -> float:
    """What they suffer then, and the price of those that moved."""
    groups = [[LETTERS[letter] for letter, _, at in then if at == place] for place in range(8)]
    moved = sum(one[2] != other[2] for one, other in zip(then, now, strict=False))
    return sum(JUDGE.on_socket(group, room=False) for group in groups) + PRICE * moved


@st.composite
def nodes(draw: st.DrawFn, most: int) -> tuple[tuple[int, int], Pods, list[int]]:
    """A newcomer, pods that fit where they are, and sockets."""
    capacities = draw(st.lists(st.integers(2000, 8000), min_size=1, max_size=5))
    left, guests = list(capacities), []
    for _ in range(draw(st.integers(0, most))):
        letter, size = draw(st.integers(0, 3)), draw(st.sampled_from([250, 1000, 2000]))
        place = draw(st.integers(0, len(capacities) - 1))
        if size <= left[place]:
            left[place] -= size
            guests.append((letter, size, place))
    return (draw(st.integers(0, 3)), draw(st.sampled_from([250, 1000, 2000]))), guests, capacities


@given(nodes(EXACT_PODS - 1))
def test_what_is_proved_of_few_pods_is_as_good_as_all_assignments(
    node: tuple[tuple[int, int], Pods, list[int]],
) -> None:
    newcomer, guests, capacities = node
    found = step(newcomer, guests, capacities)
    if found is not None:
        every = [*guests, (*newcomer, -1)]
        pods, sizes = [LETTERS[letter] for letter, _, _ in every], [size for _, size, _ in every]
        best = JUDGE.seats(pods, sizes, capacities, [None if at < 0 else at for _, _, at in every])
        assert best is not None
        expected = [(letter, size, at) for (letter, size, _), at in zip(every, best, strict=True)]
        assert total(after(found, newcomer, guests), guests) == pytest.approx(total(expected, guests))


@given(nodes(20))
def test_everybody_fits_where_they_go(node: tuple[tuple[int, int], Pods, list[int]]) -> None:
    newcomer, guests, capacities = node
    found = step(newcomer, guests, capacities)
    if found is not None:
        taken = Counter[int]()
        for _, size, place in after(found, newcomer, guests):
            taken[place] += size
        assert all(taken[place] <= capacity for place, capacity in enumerate(capacities))
        assert (found.moved is None) == (found.to == -1)


@pytest.mark.parametrize(
    ("newcomer", "guests", "capacities", "expected"),
    [
        pytest.param((D, 1000), [], [4000, 4000], Step(0), id="the first of empty sockets"),
        pytest.param((A, 1000), [(D, 1000, 0), (A, 1000, 1)], [4000, 4000], Step(1), id="where nobody suffers"),
        pytest.param((B, 1000), [(A, 1000, 0), (D, 1000, 1)], [4000, 4000], Step(0), id="not worth a move"),
        pytest.param((D, 1000), [(A, 3000, 0), (D, 1000, 1)], [3000, 4000], Step(0, 0, 1), id="one makes room for it"),
        pytest.param((D, 1000), [(A, 3000, 0), (D, 2000, 1)], [3000, 4000], None, id="not proved to be the best"),
        pytest.param((D, 5000), [], [4000, 4000], None, id="no room at all"),
    ],
)
def test_it_goes(newcomer: tuple[int, int], guests: Pods, capacities: list[int], expected: Step | None) -> None:
    assert step(newcomer, guests, capacities) == expected


def test_one_makes_room_where_that_is_worth_it() -> None:
    """Two D on one socket are far above the limit: the A beside the third goes to them and it alone is with B."""
    guests = [(D, 1000, 0), (B, 1000, 1)]
    found = step((C, 1000), [*guests, (A, 1000, 1)], [4000, 4000])
    assert found is not None
    every = after(found, (C, 1000), [*guests, (A, 1000, 1)])
    assert total(every, [*guests, (A, 1000, 1)]) < total([*guests, (A, 1000, 1), (C, 1000, 1)], [*guests, (A, 1000, 1)])


def test_of_many_it_stays_where_nobody_makes_it_better_by_the_price() -> None:
    guests = [(A, 250, place) for place in range(4) for _ in range(3)]
    assert step((A, 250), guests, [8000] * 4) == Step(0)


@pytest.mark.parametrize(
    ("newcomer", "guests", "sockets"),
    [
        pytest.param(B, [(B, 1), (C, 0), (C, 0), (C, 1), (B, 1), (C, 0), (D, 0), (B, 0)], 2, id="two sockets"),
        pytest.param(
            A,
            [(D, 1), (B, 0), (D, 1), (C, 2), (C, 2), (A, 1), (D, 0), (D, 1), (C, 2), (C, 1)],
            3,
            id="three sockets",
        ),
    ],
)
def test_of_many_a_newcomer_for_whom_another_moved_has_no_better_socket_then(
    newcomer: int, guests: list[tuple[int, int]], sockets: int
) -> None:
    """It goes anywhere for nothing, unlike those that are there."""
    there, alone = [(letter, 0, place) for letter, place in guests], (newcomer, 0)
    found = step(alone, there, [1000] * sockets)
    if found is not None:
        own = total(after(found, alone, there), there)
        others = [total(after(found._replace(place=place), alone, there), there) for place in range(sockets)]
        assert own <= min(others) + 1e-6


def test_more_pods_than_a_group_can_count_are_looked_at_otherwise() -> None:
    """As a group, 1024 A would be the same as one B."""
    assert step((D, 0), [*[(A, 0, 0)] * (MOST + 1), *[(D, 0, 1)] * 3], [4000, 4000]) is None
