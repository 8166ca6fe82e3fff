"""What plugins share: normalisation, weights, and what of a score takes part in a joint plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.plugin import (
    Bools,
    CostPlugin,
    FilterPlugin,
    Floats,
    ScorePlugin,
    cheapest_first,
    scaled_to_greatest,
)
from tests.support.builders import node, pod
from tests.support.filtering import cluster, cycle_of

ALL = np.ones(3, dtype=np.bool_)


def cycle() -> CycleState:
    return cycle_of(pod("p"), cluster([node("a"), node("b"), node("c")]))


class Half(ScorePlugin):
    name = "Half"

    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        return np.array([100.0, 50.0, 0.0])

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        return np.where(feasible, raw, 0.0)


class Fee(CostPlugin):
    name = "Fee"

    def cost(self, cycle: CycleState) -> Floats | None:
        return np.array([1.0, 2.0, 5.0])


class Nowhere(FilterPlugin):
    name = "Nowhere"

    def pre_filter(self, cycle: CycleState) -> str | None:
        return "never"


class TestJointCost:
    def test_a_score_takes_no_part_by_default(self) -> None:
        assert Half().joint_cost(cycle(), ALL) is None

    def test_a_score_with_a_cost_weight_is_turned_around(self) -> None:
        plugin = Half()
        plugin.cost_weight = 8.0
        cost = plugin.joint_cost(cycle(), ALL)
        assert cost is not None
        assert cost.tolist() == [0.0, 4.0, 8.0]

    @pytest.mark.parametrize(
        ("weight", "own", "expected"),
        [
            pytest.param(2.0, False, [2.0, 4.0, 10.0], id="weighted"),
            pytest.param(0.0, False, None, id="switched-off"),
            pytest.param(2.0, True, None, id="computed-by-the-engine"),
        ],
    )
    def test_a_cost_counts_by_its_weight(self, weight: float, own: bool, expected: list[float] | None) -> None:
        class Own(Fee):
            in_objective = own

        plugin = Own()
        plugin.cost_weight = weight
        cost = plugin.joint_cost(cycle(), ALL)
        assert (cost.tolist() if cost is not None else None) == expected


def test_the_score_of_a_cost_is_best_where_it_is_cheapest() -> None:
    scores = Fee().normalized(cycle(), np.array([False, True, True]))
    assert scores is not None
    assert scores.tolist() == [0.0, 100.0, 0.0]


def test_no_feasible_node_has_no_score() -> None:
    assert Fee().normalized(cycle(), np.zeros(3, dtype=np.bool_)) is None


def test_a_plugin_that_blocks_admits_no_node() -> None:
    assert not Nowhere().mask(cycle()).any()
    assert list(Nowhere().filter(cycle())) == []


@pytest.mark.parametrize(
    ("raw", "reverse", "scores"),
    [
        pytest.param([3.0, 6.0, 1.0], False, [50.0, 100.0, 16.0], id="in-proportion"),
        pytest.param([3.0, 6.0, 1.0], True, [50.0, 0.0, 84.0], id="reversed"),
        pytest.param([0.0, 0.0, 0.0], False, [0.0, 0.0, 0.0], id="all-zero"),
        pytest.param([0.0, 0.0, 0.0], True, [100.0, 100.0, 100.0], id="all-zero-reversed"),
    ],
)
def test_scaled_to_greatest(raw: list[float], reverse: bool, scores: list[float]) -> None:
    assert scaled_to_greatest(np.array(raw), ALL, reverse=reverse).tolist() == scores


class TestCheapestFirst:
    @pytest.mark.parametrize(
        ("costs", "scores"),
        [
            pytest.param([], [], id="no-node"),
            pytest.param([0, 0], [0, 0], id="all-zero-stays"),
            pytest.param([7, 7, 7], [100, 100, 100], id="all-equal"),
            pytest.param([5], [100], id="one-node"),
            pytest.param([0, 1, 3], [100, 67, 0], id="fractions-are-cut-before-subtracting"),
        ],
    )
    def test_cases(self, costs: list[float], scores: list[float]) -> None:
        assert cheapest_first(np.array(costs, dtype=np.float64)).tolist() == scores

    @given(st.lists(st.integers(0, 10_000), min_size=1, max_size=30))
    def test_lower_cost_never_scores_lower(self, costs: list[int]) -> None:
        scores = cheapest_first(np.array(costs, dtype=np.float64))
        assert ((scores >= 0) & (scores <= 100)).all()
        order = np.argsort(costs, kind="stable")
        if max(costs):
            assert (np.diff(scores[order]) <= 0).all()
