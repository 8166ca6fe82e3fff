"""What must hold for every strategy and every problem: generated problems with all rules mixed.

Left out: quality of the plans (see strategies/test_berth.py and bench/phare).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.gang import (
    STRATEGIES,
    Application,
    Infrastructure,
    InfrastructureState,
    Weights,
    evaluate,
    plan,
)
from berth.scheduling.gang.outcome import Cause
from hack.harness.gang import commit, violations
from tests.support.gang_problems import infrastructures, problems

EVERY_STRATEGY = pytest.mark.parametrize("strategy", sorted(STRATEGIES))
FAST = settings(max_examples=60, deadline=None, derandomize=True)


@EVERY_STRATEGY
@FAST
@given(problem=problems())
def test_whole_plans(strategy: str, problem: tuple[Infrastructure, Application]) -> None:
    infrastructure, application = problem
    result = plan(infrastructure, application, strategy=strategy)
    assert violations(infrastructure, [(application, result.assignment)]) == []
    assert (result.assignment >= 0).all() or (result.assignment == -1).all()
    missing = np.flatnonzero(result.assignment < 0).tolist()
    assert [entry.component for entry in result.unplaced] == missing
    for entry in result.unplaced:
        counted = sum(item.count for item in entry.rejections)
        assert (counted == infrastructure.size) == (entry.cause is Cause.NO_NODE_FITS) or not infrastructure.size
    assert result.complete == (not missing)
    again = plan(InfrastructureState(infrastructure), application, strategy=strategy)
    assert (again.assignment.tolist(), again.cost) == (result.assignment.tolist(), result.cost)


@EVERY_STRATEGY
@FAST
@given(problem=problems())
def test_partial_plans(strategy: str, problem: tuple[Infrastructure, Application]) -> None:
    infrastructure, application = problem
    whole = plan(infrastructure, application, strategy=strategy)
    part = plan(infrastructure, application, strategy=strategy, partial=True)
    assert violations(infrastructure, [(application, part.assignment)], complete=False) == []
    assert (part.assignment >= 0).sum() >= (whole.assignment >= 0).sum()
    assert [entry.component for entry in part.unplaced] == np.flatnonzero(part.assignment < 0).tolist()
    again = evaluate(infrastructure, application, part.assignment, Weights())
    assert part.cost == again.cost
    assert part.cost == pytest.approx(sum(float(term.sum()) for term in part.terms.values()))


@EVERY_STRATEGY
@settings(max_examples=20, deadline=None, derandomize=True)
@given(infrastructure=infrastructures(), data=st.data())
def test_one_after_another_they_stay_within_budgets(
    strategy: str, infrastructure: Infrastructure, data: st.DataObject
) -> None:
    state = InfrastructureState(infrastructure)
    accepted = []
    for _ in range(4):
        size = data.draw(st.integers(1, 4))
        application = Application.of(
            np.array(data.draw(st.lists(st.integers(0, 4), min_size=2 * size, max_size=2 * size)), float).reshape(
                size, 2
            ),
            edges=[(index, index + 1) for index in range(size - 1)],
            bandwidth=1.0,
        )
        result = plan(state, application, strategy=strategy)
        if result.complete:
            commit(state, application, result.assignment)
            accepted.append((application, result.assignment))
    assert violations(infrastructure, accepted) == []


@FAST
@given(problem=problems())
def test_runner_ups_could_take_the_component_and_are_ordered(problem: tuple[Infrastructure, Application]) -> None:
    infrastructure, application = problem
    result = plan(infrastructure, application, explain=True)
    assert set(result.runner_ups) == set(np.flatnonzero(result.assignment >= 0).tolist())
    for component, options in result.runner_ups.items():
        assert len(options) <= 3
        costs = [option.cost for option in options]
        assert costs == sorted(costs)
        for option in options:
            assert option.node != result.assignment[component]
            assert option.cost == pytest.approx(sum(option.terms.values()))
            moved = result.assignment.copy()
            moved[component] = option.node
            assert violations(infrastructure, [(application, moved)]) == []
