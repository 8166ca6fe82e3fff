"""Living free amounts: commit, release, copies, what is learnt from applications, thresholds, shared links."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.gang import InfrastructureState, LinkModel, PlacedPeers, plan
from tests.support.gang import app, nodes, only

LINKS = LinkModel(
    names=("rack-1", "spine", "direct"),
    capacity=np.array([10.0, 20.0, 5.0]),
    free=np.array([10.0, 20.0, 5.0]),
    by_location={(0, 1): (1,)},
    by_node={0: (0,)},
    by_pair={(2, 1): (2,)},
)
WHERE = np.array([0, 1, 0], dtype=np.int32)


class TestCommit:
    def test_takes_requests_and_bandwidth_of_cut_edges_at_both_ends(self) -> None:
        state = InfrastructureState(nodes(10, 10, bandwidth_capacity=8.0))
        state.commit(app(2, 3, 4, edges=[(0, 1), (1, 2)], bandwidth=[1, 5]), [0, 0, 1])
        assert state.free[:, 0].tolist() == [5.0, 6.0]
        assert state.bandwidth_free.tolist() == [3.0, 3.0]

    def test_unplaced_components_take_nothing(self) -> None:
        state = InfrastructureState(nodes(10, bandwidth_capacity=8.0))
        state.commit(app(2, 3, edges=[(0, 1)], bandwidth=1), [0, -1])
        assert state.free[0, 0] == 8.0
        assert state.bandwidth_free.tolist() == [8.0]

    def test_anchors_use_the_budget_of_the_placed_pod(self) -> None:
        state = InfrastructureState(nodes(10, 10, bandwidth_capacity=8.0))
        state.commit(app(1, placed_peers=PlacedPeers.of([0, 0], [1, 0], bandwidth=[2, 4])), [0])
        assert state.bandwidth_free.tolist() == [6.0, 6.0]

    def test_counts_versions(self) -> None:
        state = InfrastructureState(nodes(10))
        state.commit(app(1), [0])
        state.release(app(1), [0])
        state.set_free(0, [3.0, 4.0], bandwidth_free=7.0)
        assert state.version == 3
        assert state.free[0].tolist() == [3.0, 4.0]
        assert state.bandwidth_free[0] == 7.0

    def test_the_infrastructure_itself_stays_as_it_was(self) -> None:
        infrastructure = nodes(10, bandwidth_capacity=8.0)
        state = InfrastructureState(infrastructure)
        state.commit(app(4), [0])
        twin = state.copy()
        twin.commit(app(4), [0])
        assert (infrastructure.free[0, 0], state.free[0, 0], twin.free[0, 0]) == (10.0, 6.0, 2.0)

    def test_plans_leave_the_state_alone(self) -> None:
        state = InfrastructureState(nodes(10, 10, bandwidth_capacity=8.0))
        plan(state, app(6, 6, edges=[(0, 1)], bandwidth=1.0), explain=True)
        assert state.version == 0
        assert state.free[:, 0].tolist() == [10.0, 10.0]


class TestLearning:
    def test_smallest_and_typical_requests(self) -> None:
        state = InfrastructureState(nodes(100))
        state.commit(app(2, 4), [0, 0])
        state.commit(app(6, 0), [0, 0])
        assert state.smallest.tolist() == [2.0, 1.0]
        assert state.typical.tolist() == [3.0, 1.0]

    @pytest.mark.parametrize(
        ("names", "score"),
        [
            pytest.param((3,), [0, 0, 0, 1.0], id="one-node"),
            pytest.param((2, 3), [0, 0, 0.5, 0.5], id="spread-over-two"),
            pytest.param(tuple(range(10)), [0, 0, 0, 0], id="too-many-to-be-particular"),
        ],
    )
    def test_nodes_that_selectors_name(self, names: tuple[int, ...], score: list[float]) -> None:
        state = InfrastructureState(nodes(*[10.0] * 20))
        state.commit(app(1, named=only(20, names)), [3])
        assert state.named_score[:4].tolist() == score


class TestThreshold:
    def test_keeps_a_share_of_capacity_and_bandwidth(self) -> None:
        state = InfrastructureState(nodes(10, 10, bandwidth_capacity=[8.0, np.inf], threshold=[0.75, 0.5]))
        assert state.reserve[:, 0].tolist() == [2.5, 5.0]
        assert state.bandwidth_reserve.tolist() == [2.0, 0.0]

    @pytest.mark.parametrize("strategy", ["berth", "greedy", "phare"])
    def test_a_node_above_its_threshold_still_takes_who_names_it(self, strategy: str) -> None:
        state = InfrastructureState(nodes(8, threshold=0.5))
        named = app(1, named=only(1, (0,)), has_selector=[True])
        state.commit(app(4), [0])
        for _ in range(4):
            assert not plan(state, app(1), strategy=strategy).complete
            result = plan(state, named, strategy=strategy)
            assert result.complete
            state.commit(named, result.assignment)
        assert state.free[0, 0] == 0.0
        assert not plan(state, named, strategy=strategy).complete


class TestLinks:
    @pytest.mark.parametrize(
        ("first", "second", "path"),
        [
            pytest.param(0, 0, (), id="same-node"),
            pytest.param(0, 1, (0, 1), id="rack-and-spine"),
            pytest.param(1, 0, (0, 1), id="either-direction"),
            pytest.param(0, 2, (0,), id="same-location"),
            pytest.param(1, 2, (2,), id="pair-replaces-location"),
        ],
    )
    def test_path(self, first: int, second: int, path: tuple[int, ...]) -> None:
        assert LINKS.path(first, second, WHERE) == path

    def test_incidence_says_the_same_as_path(self) -> None:
        order = np.array([2, 0, 1], dtype=np.int32)
        table = LINKS.incidence(order, WHERE)
        for row, first in enumerate(order.tolist()):
            for column, second in enumerate(order.tolist()):
                assert tuple(np.flatnonzero(table[row, column])) == LINKS.path(first, second, WHERE)

    def test_commit_uses_every_link_of_the_path(self) -> None:
        state = InfrastructureState(nodes(9, 9, 9, location=WHERE, location_cost=np.ones((2, 2)), links=LINKS))
        application = app(1, 1, 1, edges=[(0, 1), (1, 2)], bandwidth=[3, 2])
        state.commit(application, [0, 1, 2])
        assert state.link_free.tolist() == [7.0, 17.0, 3.0]
        state.release(application, [0, 1, 2])
        assert state.link_free.tolist() == [10.0, 20.0, 5.0]
