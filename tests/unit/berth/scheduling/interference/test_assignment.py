"""The best assignment of pods to sockets: brute force on small cases, sound and locally best on larger."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.interference.assignment import EXACT_PODS, Assignment, SocketCost, best_assignment, cheapest

SIZES = st.lists(st.integers(1, 4), max_size=5)
CAPACITIES = st.lists(st.integers(0, 8), max_size=3)
TABLES = st.lists(st.lists(st.integers(-9, 99), min_size=16, max_size=16), min_size=16, max_size=16)


def table_cost(table: list[list[int]]) -> SocketCost:
    """Cost of pods together: the sum over ordered pairs, a little more on later sockets."""

    def cost(pods: tuple[int, ...], socket: int) -> float:
        return sum(table[one][other] for one in pods for other in pods if one != other) + socket * len(pods)

    return cost


def brute_force(sizes: list[int], capacities: list[int], cost: SocketCost) -> float:
    best = inf
    for places in product(range(len(capacities)), repeat=len(sizes)):
        groups = [tuple(pod for pod, at in enumerate(places) if at == socket) for socket in range(len(capacities))]
        if all(sum(sizes[pod] for pod in group) <= room for group, room in zip(groups, capacities, strict=True)):
            best = min(best, sum(cost(group, socket) for socket, group in enumerate(groups)))
    return best


def check(found: Assignment, sizes: list[int], capacities: list[int], cost: SocketCost) -> None:
    assert sorted(pod for group in found.sockets for pod in group) == list(range(len(sizes)))
    for group, room in zip(found.sockets, capacities, strict=True):
        assert sum(sizes[pod] for pod in group) <= room
    assert found.cost == pytest.approx(sum(cost(group, socket) for socket, group in enumerate(found.sockets)))


@given(SIZES, CAPACITIES, TABLES)
def test_few_pods_are_assigned_as_brute_force_does(
    sizes: list[int], capacities: list[int], table: list[list[int]]
) -> None:
    cost = table_cost(table)
    found = best_assignment(sizes, capacities, cost)
    best = brute_force(sizes, capacities, cost)
    if found is None:
        assert best == inf
    else:
        check(found, sizes, capacities, cost)
        assert found.cost == best


@given(TABLES, st.integers(1, 5), st.lists(st.booleans(), min_size=1, max_size=7))
def test_more_sockets_like_the_last_one_change_nothing(table: list[list[int]], pods: int, dear: list[bool]) -> None:
    """What costs the same on two sockets is one array; equal ones that are not are looked at one by one."""
    groups = [tuple(pod for pod in range(pods) if number >> pod & 1) for number in range(1 << pods)]
    cost = table_cost(table)
    costs = {extra: np.array([cost(group, 0) + extra * len(group) for group in groups]) for extra in (False, True)}
    found = cheapest(pods, [costs[extra] for extra in dear])
    assert found == cheapest(pods, [costs[extra].copy() for extra in dear])
    assert found is not None


@settings(max_examples=15)
@given(TABLES, st.integers(EXACT_PODS + 1, 10))
def test_many_pods_are_assigned_so_that_no_two_change_places_for_the_better(table: list[list[int]], count: int) -> None:
    cost, sizes, capacities = table_cost(table), [1] * count, [2] * 5
    found = best_assignment(sizes, capacities, cost)
    assert found is not None
    check(found, sizes, capacities, cost)
    place = {pod: socket for socket, group in enumerate(found.sockets) for pod in group}
    for one in place:
        for other in place:
            swapped = {**place, one: place[other], other: place[one]}
            groups = [tuple(pod for pod, at in swapped.items() if at == socket) for socket in range(5)]
            assert sum(cost(group, socket) for socket, group in enumerate(groups)) >= found.cost - 1e-6


@pytest.mark.parametrize(
    ("sizes", "capacities"),
    [
        pytest.param([3], [2, 2], id="a pod larger than a socket"),
        pytest.param([1], [], id="no socket"),
        pytest.param([1] * 9, [4, 4], id="many pods, too little room"),
    ],
)
def test_pods_that_do_not_fit(sizes: list[int], capacities: list[int]) -> None:
    assert best_assignment(sizes, capacities, lambda pods, socket: 0.0) is None


def test_no_pods_leave_all_sockets_empty() -> None:
    assert best_assignment([], [2, 2], lambda pods, socket: 0.0) == Assignment(0, ((), ()))
