"""Shortlists: how they are cut, and which of them need no search."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from berth.scheduling.gang import Application, Infrastructure, InfrastructureState, PlacedPeers, Weights, plan
from berth.scheduling.gang.candidate_nodes import CandidateNodes
from berth.scheduling.gang.instance import Instance
from berth.scheduling.gang.problem import NodeMasks
from berth.scheduling.gang.search_state import INFEASIBLE, SearchState
from tests.support.gang import app, boutique, nodes

TWO_ZONES = np.array([[1.0, 10.0], [10.0, 1.0]])


def two_zones(
    first: list[float], second: list[float], *, cost: np.ndarray = TWO_ZONES, price: float = 0.0
) -> Infrastructure:
    """Return nodes of these cores in two zones; `price` makes the first node dearer than the others."""
    cores = [*first, *second]
    prices = np.zeros((len(cores), 2))
    prices[0, 0] = price
    location = [0] * len(first) + [1] * len(second)
    return nodes(*cores, location=location, location_cost=cost, price=prices)


def instance_of(infrastructure: Infrastructure, application: Application) -> Instance:
    return Instance(InfrastructureState(infrastructure), application, Weights())


PAIR = app(6, 6, edges=[(0, 1)])
"""Half of it fits on a node of 6 to 11 cores."""
FIRST, SECOND = np.array([0, 1]), np.array([2, 3])


class TestPromises:
    @pytest.mark.parametrize(
        ("infrastructure", "used", "expected"),
        [
            pytest.param(two_zones([6, 6], [6, 6]), [0, 1], False, id="equal-room"),
            pytest.param(two_zones([6, 6], [6.2, 6]), [0, 1], True, id="a-little-more-room"),
            pytest.param(two_zones([6, 6], [9, 6]), [0, 1], True, id="roomier-first-node"),
            pytest.param(two_zones([6, 6], [6, 9]), [0, 1], True, id="more-room-on-two-nodes"),
            pytest.param(two_zones([9, 9], [9, 6]), [0, 1], True, id="less-room-may-fit-better"),
            pytest.param(two_zones([12, 9], [12, 9]), [0, 0], False, id="as-far-as-twice-the-nodes-in-use"),
            pytest.param(two_zones([12, 9], [12, 6]), [0, 0], True, id="differs-within-twice-the-nodes-in-use"),
            pytest.param(two_zones([12, 12], [24, 24]), [0, 1], False, id="more-than-the-application-needs"),
            pytest.param(two_zones([6, 6], [6, 6]), [0, 2], True, id="plan-across-zones"),
            pytest.param(two_zones([6, 6], [6, 6], cost=np.array([[5, 10], [10, 1]])), [0, 1], True, id="nearer"),
            pytest.param(two_zones([6, 6], [6, 6], cost=np.array([[1, 10], [10, 5]])), [0, 1], False, id="farther"),
            pytest.param(two_zones([6, 6], [6, 6], price=1.0), [0, 1], True, id="prices-differ"),
        ],
    )
    def test_only_other_room_or_nearer_nodes_are_worth_a_search(
        self, infrastructure: Infrastructure, used: list[int], expected: bool
    ) -> None:
        candidate_nodes = CandidateNodes(instance_of(infrastructure, PAIR))
        assert candidate_nodes.promises(SECOND, FIRST, np.array(used)) is expected

    def test_placed_neighbours_tell_locations_apart(self) -> None:
        application = app(6, 6, edges=[(0, 1)], placed_peers=PlacedPeers.of([0], [3]))
        candidate_nodes = CandidateNodes(instance_of(two_zones([6, 6], [6, 6]), application))
        assert candidate_nodes.promises(SECOND, FIRST, FIRST)

    @pytest.mark.parametrize(
        ("second", "searched"),
        [pytest.param([300] * 8, 1, id="alike"), pytest.param([300, *[290] * 7], 2, id="room-differs")],
    )
    def test_a_location_without_promise_is_not_searched(
        self, monkeypatch: pytest.MonkeyPatch, second: list[float], searched: int
    ) -> None:
        seen: list[list[int]] = []

        def counted(instance: Instance, columns: np.ndarray) -> SearchState:
            seen.append(sorted(columns.tolist()))
            return SearchState(instance, columns)

        monkeypatch.setattr(importlib.import_module("berth.scheduling.gang.strategies.berth"), "SearchState", counted)
        result = plan(two_zones([300] * 8, second), boutique())
        assert result.complete
        assert len(seen) == searched

    def test_a_location_that_fails_is_followed_by_the_next(self) -> None:
        # Pooled room is enough in the first zone, but no node there takes the large component.
        infrastructure = two_zones([4, 4, 4, 4], [9, 3, 3])
        result = plan(infrastructure, app(8, 2, 2, edges=[(0, 1), (1, 2)]))
        assert result.complete
        assert set(result.assignment.tolist()) <= {4, 5, 6}


class TestClasses:
    def masks(self, count: int, own: list[int]) -> NodeMasks:
        """Two classes: anywhere, and only `own`."""
        rows = np.ones((2, count), dtype=np.bool_)
        rows[1] = False
        rows[1, own] = True
        return NodeMasks(rows, np.array([0, 1], dtype=np.int32))

    def test_every_class_has_its_nodes_in_every_shortlist(self) -> None:
        count = 200
        infrastructure = nodes(*[10.0] * count, price=np.arange(2.0 * count).reshape(count, 2))
        own = [150, 199]
        candidate_nodes = CandidateNodes(
            instance_of(infrastructure, app(8, 8, edges=[(0, 1)], allowed=self.masks(count, own)))
        )
        for columns in candidate_nodes.shortlists(16):
            assert set(own) <= set(columns.tolist())

    def test_a_class_with_enough_cheap_nodes_adds_none(self) -> None:
        count = 200
        infrastructure = nodes(*[10.0] * count, price=np.arange(2.0 * count).reshape(count, 2))
        own = list(range(0, count, 2))
        shared = CandidateNodes(instance_of(infrastructure, app(8, 8, edges=[(0, 1)], allowed=self.masks(count, own))))
        free = CandidateNodes(instance_of(infrastructure, app(8, 8, edges=[(0, 1)])))
        cut = [columns.tolist() for columns in shared.shortlists(48)]
        assert cut == [columns.tolist() for columns in free.shortlists(48)]


class TestSearchState:
    @pytest.mark.parametrize(
        ("fields", "kept"),
        [
            pytest.param({}, False, id="neither-limited-nor-charged"),
            pytest.param({"bandwidth_capacity": [np.inf, 100.0]}, True, id="one-node-is-limited"),
            pytest.param({"bandwidth_price": 1.0}, True, id="charged"),
        ],
    )
    def test_traffic_is_followed_only_where_it_matters(self, fields: dict[str, Any], kept: bool) -> None:
        instance = instance_of(nodes(4, 4, **fields), app(3, 3, edges=[(0, 1)], bandwidth=[5]))
        assert (SearchState(instance, np.array([0, 1])).traffic is not None) is kept

    @pytest.mark.parametrize(
        ("columns", "kept"),
        [pytest.param([0, 1], False, id="one-zone"), pytest.param([0, 2], True, id="two-zones")],
    )
    def test_limits_are_checked_only_where_they_can_be_broken(self, columns: list[int], kept: bool) -> None:
        instance = instance_of(two_zones([6, 6], [6, 6]), app(6, 6, edges=[(0, 1)], max_cost=[5]))
        search = SearchState(instance, np.array(columns))
        assert (search.limits is not None) is kept
        search.place(0, 0)
        assert (search.costs(1)[1] >= INFEASIBLE) is np.bool_(kept)
