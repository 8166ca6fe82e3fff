"""Zone patterns: near locations together, those with room, and one of those that promise the same."""

from __future__ import annotations

import numpy as np
import pytest

from berth.network.routing import Routing
from berth.scheduling.gang.budget import UNLIMITED
from berth.scheduling.planning import finish
from berth.scheduling.replicas.problem import Prices
from berth.scheduling.replicas.search.patterns import Pattern, patterns
from tests.support.counts import books_of, nodes, problem


def found(*replicas: int, limit: int = 6, **fields: object) -> list[Pattern]:
    books = books_of(problem(*replicas, edges=[(0, 1)], **fields))
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
def test_the_best_location_comes_first(fields: dict[str, object], first: Pattern) -> None:
    assert found(1, 1, **fields)[0] == first


def test_nowhere_to_go_no_pattern() -> None:
    assert found(1, 1, on=nodes(0)) == []
