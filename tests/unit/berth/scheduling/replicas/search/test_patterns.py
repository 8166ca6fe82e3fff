"""Zone patterns: near locations together, those with room, and of those that promise the same the emptiest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from berth.network.routing import Routing
from berth.scheduling.gang.budget import UNLIMITED
from berth.scheduling.planning import finish
from berth.scheduling.replicas.problem import Nodes, Prices
from berth.scheduling.replicas.rule import AntiAffinity, Spread
from berth.scheduling.replicas.search.patterns import WIDEST, Pattern, patterns
from tests.support.counts import books_of, nodes, problem


def found(*replicas: int, limit: int = 6, columns: Sequence[int] | None = None, **fields: Any) -> list[Pattern]:
    books = books_of(problem(*replicas, edges=[(0, 1)], **fields), columns)
    return [pattern for _, pattern in finish(patterns(books, UNLIMITED, range(len(replicas)), limit))]


def test_one_of_every_width_that_is_worth_a_try_and_none_twice() -> None:
    ranked = found(3, 3, routing=Routing.SAME_ZONE)
    assert {len(pattern) for pattern in ranked} == {1, 2, 3}
    assert len({tuple(sorted(pattern)) for pattern in ranked}) == len(ranked)
    assert len(found(3, 3, limit=2)) == 2


def test_single_replicas_go_to_one_location() -> None:
    assert found(1, 1) == [(0,)]


def test_two_locations_are_of_one_region() -> None:
    (pair,) = (pattern for pattern in found(2, 2, prices=Prices(survive_zone=100)) if len(pattern) == 2)
    assert pair in ((0, 1), (2, 3))


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        pytest.param({"on": nodes([0, 0, 0, 0, 9, 9, 0, 0])}, (2,), id="where there is room"),
        pytest.param({"mask": np.arange(8) >= 6}, (3,), id="where a mask lets them"),
        pytest.param({"placed": {1: {5: 1}}}, (2,), id="where the other is"),
    ],
)
def test_the_best_location_comes_first(fields: dict[str, Any], first: Pattern) -> None:
    assert found(1, 1, **fields)[0] == first


@pytest.mark.parametrize(
    ("fields", "columns", "best"),
    [
        pytest.param({"on": nodes([9, 9, 8, 9, 9, 9, 9, 9])}, None, (0,), id="all others are as empty"),
        pytest.param({"on": nodes([9, 9, 8, 9, 9, 10, 9, 9])}, None, (2,), id="the emptiest"),
        pytest.param({"on": nodes([9, 9, 8, 9, 9, 10, 9, 9])}, (0, 2, 4, 6), (2,), id="nodes that are no columns"),
        pytest.param({"on": nodes(9), "mask": np.arange(8) != 0}, None, (1,), id="nodes that are closed to them"),
        pytest.param({"request": np.array([0])}, None, (0,), id="pods that ask for nothing"),
    ],
)
def test_of_locations_that_are_alike_the_emptiest(
    fields: dict[str, Any], columns: Sequence[int] | None, best: Pattern
) -> None:
    assert found(1, 1, columns=columns, **fields)[0] == best


def test_what_others_of_the_plan_take_is_not_free() -> None:
    books = books_of(problem(1, 1, 3, edges=[(0, 1)]))
    books.insert(2, 0, 3)
    books.insert(2, 2)
    assert finish(patterns(books, UNLIMITED, [0, 1], 6))[0][1] == (2,)


def test_the_fullest_location_of_a_pattern_decides() -> None:
    """Zones 0 and 1 hold more together, but one of them is nearly full."""
    (pair,) = (
        pattern
        for pattern in found(2, 2, on=nodes([20, 20, 3, 3, 8, 8, 8, 8]), prices=Prices(survive_zone=100))
        if len(pattern) == 2
    )
    assert sorted(pair) == [2, 3]


APART: Final = AntiAffinity(domain=np.arange(9), subjects=[0], selects=[0])
"""No two replicas of the first workload on a node"""


@pytest.mark.parametrize(
    ("free", "fields", "best"),
    [
        pytest.param([[1] * 6, [3, 3]], {}, 1, id="the emptier one has remainders alone"),
        pytest.param([[9], [4, 4]], {}, 1, id="the emptier one has one node, and both replicas would die with it"),
        pytest.param([[9, 9], [4, 4]], {}, 0, id="one node does not hold more than the other"),
        pytest.param([[1] * 6, [1, 1]], {}, 0, id="a slice is cut in both"),
        pytest.param([[9, 9], [2, 2, 2]], {"replicas": 3, "rules": [APART]}, 1, id="rules keep replicas apart"),
        pytest.param([[9, 9], [2, 2, 2]], {"replicas": 3}, 0, id="no rule keeps them apart"),
        pytest.param(
            [[9, 9], [2, 2, 2]],
            {"replicas": 3, "rules": [Spread(domain=np.arange(5), subjects=[0], selects=[0], max_skew=1, hard=False)]},
            1,
            id="a spread over nodes keeps them apart",
        ),
    ],
)
def test_of_locations_that_are_alike_one_whose_nodes_take_whole_slices(
    free: list[list[int]], fields: dict[str, Any], best: int
) -> None:
    replicas = fields.pop("replicas", 2)
    rules = [replace(rule, domain=np.arange(sum(map(len, free)))) for rule in fields.pop("rules", [])]
    ranked = found(replicas, replicas, on=_in_zones(free), rules=rules)
    assert next(pattern for pattern in ranked if len(pattern) == 1) == (best,)


@pytest.mark.parametrize(
    ("free", "pair"),
    [
        pytest.param([[4, 4], [4, 4], [4, 4]], [0, 1], id="all alike"),
        pytest.param([[4, 4], [6, 6], [6, 6]], [1, 2], id="the emptiest"),
        pytest.param([[1] * 20, [4, 4], [4, 4]], [1, 2], id="those whose nodes take whole slices"),
    ],
)
def test_of_locations_that_are_as_far_the_better_ones_are_together(free: list[list[int]], pair: list[int]) -> None:
    ranked = found(2, 2, on=_in_zones(free), routing=Routing.SAME_ZONE)
    assert sorted(next(pattern for pattern in ranked if len(pattern) == 2)) == pair


def _in_zones(free: list[list[int]]) -> Nodes:
    """Zones at the same distance from each other, by what their nodes have."""
    zone = np.repeat(np.arange(len(free)), [len(own) for own in free])
    cost = np.full((len(free), len(free)), 5.0)
    np.fill_diagonal(cost, 1.0)
    return Nodes(free=np.array([[one] for own in free for one in own]), location=zone, location_cost=cost, zone=zone)


def test_nowhere_to_go_no_pattern() -> None:
    assert found(1, 1, on=nodes(0)) == []


@pytest.mark.parametrize(
    ("slices", "wide"),
    [
        pytest.param(12, [], id="six racks have room"),
        pytest.param(14, [7], id="one more"),
        pytest.param(20, [10], id="all racks of a zone"),
        pytest.param(26, [13], id="more than a zone"),
        pytest.param(60, [], id="more than there is"),
    ],
)
def test_what_few_locations_have_no_room_for_goes_to_as_many_as_it_takes(slices: int, wide: list[int]) -> None:
    """Two zones of ten racks, each of which has room for two slices; what has no pattern is spread over everything."""
    rack = np.arange(20)
    zone = rack // 10
    cost = np.where(zone[:, None] == zone, 3.0, 30.0)
    np.fill_diagonal(cost, 1.0)
    racks = Nodes(free=np.full((20, 1), 4), location=rack, location_cost=cost, zone=zone)
    ranked = found(slices, slices, on=racks, limit=20)
    assert [len(pattern) for pattern in ranked if len(pattern) > WIDEST] == wide
    for pattern in ranked:
        assert len({place // 10 for place in pattern}) == (1 if len(pattern) <= 10 else 2)
