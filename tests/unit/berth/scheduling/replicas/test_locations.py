"""Which of many locations are looked at first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.cases import boutique
from berth.network.routing import Routing
from berth.scheduling.planning import finish
from berth.scheduling.replicas.locations import CELLS, in_order
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Floats, Nodes

NOTHING = np.zeros(1000)
ROOM = np.ones(1000)


def at_random(count: int, seed: int) -> Floats:
    """Costs of 1 to 1000 that have nothing to do with each other."""
    cost = np.random.default_rng(seed).uniform(1, 1000, (count, count))
    cost = (cost + cost.T) / 2
    np.fill_diagonal(cost, 1.0)
    return cost


def apart(cost: Floats, *groups: list[int]) -> Floats:
    """The same with groups of locations that are close together."""
    for group in groups:
        cost[np.ix_(group, group)] = 1.0
    return cost


def test_next_to_what_is_placed() -> None:
    place = np.arange(1000)
    cost = 1.0 + np.abs(place[:, None] - place)
    assert in_order(cost, ROOM, 3.0 * (place == 700), 5) == [700, 699, 701, 698, 702]


def test_all_of_a_few_by_their_distance_to_the_one_with_most_room() -> None:
    place = np.arange(9)
    cost = 1.0 + np.abs(place[:, None] - place)
    assert in_order(cost, 1.0 + (place == 4), np.zeros(9), 9) == [4, 3, 5, 2, 6, 1, 7, 0, 8]


def test_of_many_those_that_are_close_together() -> None:
    groups = [10, 400], [20, 300, 500, 700], [900, 5, 77, 444, 333, 888]
    chosen = in_order(apart(at_random(1000, 0) + 10, *groups), ROOM, NOTHING, 100)
    assert len(chosen) == 100
    for group in groups:
        assert set(group) <= set(chosen)


def test_those_next_to_the_closest_group_that_holds_all_pods() -> None:
    group = [20, 300, 500, 700]
    cost = apart(at_random(1000, 1) + 10, [10, 400], group)
    chosen = in_order(cost, ROOM / 4, NOTHING, 100)
    assert set(chosen[:4]) == set(group)
    near = np.argsort(cost[chosen[0]], kind="stable")[:50]
    assert set(near.tolist()) <= set(chosen)


def test_only_some_of_very_many_are_compared_with_all_others() -> None:
    count = 2 * int(CELLS**0.5)
    cost = np.ones((count, count))
    chosen = in_order(cost, np.ones(count), np.zeros(count), 50)
    assert len(set(chosen)) == 50


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 60), most=st.integers(1, 60), some=st.booleans())
def test_places_with_room_once_each_and_no_more_than_wanted(seed: int, count: int, most: int, some: bool) -> None:
    rng = np.random.default_rng(seed)
    room = rng.choice([0.0, 0.3, 2.0], count)
    placed = rng.integers(0, 2, count).astype(float) * some
    chosen = in_order(at_random(count, seed), room, placed, most)
    assert len(chosen) == len(set(chosen)) == min(most, np.count_nonzero(room))
    assert room[chosen].all()


@pytest.mark.parametrize(
    ("routing", "most"),
    [pytest.param(Routing.ALL, 16.0, id="all endpoints"), pytest.param(Routing.SAME_ZONE, 0.8, id="PreferSameZone")],
)
def test_an_application_finds_close_locations_among_many_with_random_costs(routing: Routing, most: float) -> None:
    size = 1000
    free = np.tile([1500, 16384, 110], (size, 1))
    free[500, 0] = 2000  # most room, and nobody near
    place = np.arange(size)
    nodes = Nodes(free=free, location=place, location_cost=at_random(size, 2), zone=place)
    answer = finish(plan(boutique(2, nodes=nodes, routing=routing, limits=False)))
    assert answer.complete
    assert answer.objective <= most
