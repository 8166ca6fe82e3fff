"""What changes while the cluster lives: what is learned from applications, and what thresholds keep back."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.gang import InfrastructureState, plan
from hack.harness.gang import commit
from tests.support.gang import app, nodes, only


def test_plans_leave_the_state_alone() -> None:
    state = InfrastructureState(nodes(10, 10, bandwidth_capacity=8.0))
    plan(state, app(6, 6, edges=[(0, 1)], bandwidth=1.0), explain=True)
    assert state.free[:, 0].tolist() == [10.0, 10.0]
    assert state.bandwidth_free.tolist() == [8.0, 8.0]


class TestLearning:
    def test_smallest_and_typical_requests(self) -> None:
        state = InfrastructureState(nodes(100))
        state.observe(app(2, 4))
        state.observe(app(6, 0))
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
        state.observe(app(1, named=only(20, names)))
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
        commit(state, app(4), [0])
        for _ in range(4):
            assert not plan(state, app(1), strategy=strategy).complete
            result = plan(state, named, strategy=strategy)
            assert result.complete
            commit(state, named, result.assignment)
        assert state.free[0, 0] == 0.0
        assert not plan(state, named, strategy=strategy).complete
