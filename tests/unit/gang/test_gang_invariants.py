"""What must hold for every strategy and every problem: generated problems with all rules mixed.

Left out: quality of the plans (see test_gang_berth.py and bench/phare).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.placement.gang import (
    STRATEGIES,
    Anchors,
    Application,
    Infrastructure,
    InfrastructureState,
    LinkModel,
    NodeMasks,
    Weights,
    evaluate,
    plan,
)
from controllers.placement.gang.validate import violations

EVERY_STRATEGY = pytest.mark.parametrize("strategy", sorted(STRATEGIES))
FAST = settings(max_examples=80, deadline=None, derandomize=True)


def _links(draw: st.DrawFn, count: int, places: int) -> LinkModel | None:
    if not draw(st.booleans()):
        return None
    size = draw(st.integers(1, 3))
    capacity = np.array(draw(st.lists(st.integers(0, 12), min_size=size, max_size=size)), dtype=float)
    link = st.integers(0, size - 1)
    keys = [(one, other) for one in range(places) for other in range(one, places)]
    return LinkModel(
        names=tuple(f"link-{index}" for index in range(size)),
        capacity=capacity,
        free=capacity,
        by_location={key: (draw(link),) for key in keys if draw(st.booleans())},
        by_node={node: (draw(link),) for node in range(count) if draw(st.integers(0, 4)) == 0},
        by_pair={(0, count - 1): (draw(link),)} if count > 1 and draw(st.booleans()) else {},
    )


@st.composite
def infrastructures(draw: st.DrawFn) -> Infrastructure:
    """Up to seven nodes in up to three locations, any mix of limits."""
    count, places = draw(st.integers(1, 7)), draw(st.integers(1, 3))

    def numbers(low: int, high: int, shape: tuple[int, ...]) -> np.ndarray:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size)), dtype=float).reshape(
            shape
        )

    capacity = numbers(0, 12, (count, 2))
    bandwidth = numbers(0, 15, (count,)) if draw(st.booleans()) else np.full(count, np.inf)
    cost = numbers(0, 20, (places, places))
    if draw(st.booleans()):
        cost = np.minimum(cost, cost.T)
    return Infrastructure.of(
        [f"n{index}" for index in range(count)],
        ("cpu", "memory"),
        capacity,
        free=np.maximum(capacity - numbers(0, 3, (count, 2)), -1.0),
        price=numbers(0, 4, (count, 2)) if draw(st.booleans()) else 0.0,
        bandwidth_capacity=bandwidth,
        bandwidth_price=numbers(0, 3, (count,)) if draw(st.booleans()) else 0.0,
        threshold=draw(st.sampled_from([1.0, 0.75, 0.5])),
        max_unit=numbers(2, 9, (count, 2)) if draw(st.booleans()) else np.inf,
        location=draw(st.lists(st.integers(0, places - 1), min_size=count, max_size=count)),
        location_cost=cost,
        links=_links(draw, count, places),
    )


def _masks(draw: st.DrawFn, components: int, count: int) -> NodeMasks | None:
    if not draw(st.booleans()):
        return None
    rows = draw(st.integers(1, components))
    bits = draw(st.lists(st.booleans(), min_size=rows * count, max_size=rows * count))
    group = draw(st.lists(st.integers(0, rows - 1), min_size=components, max_size=components))
    return NodeMasks(np.array(bits).reshape(rows, count), np.array(group, dtype=np.int32))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Infrastructure, Application]:
    """An infrastructure and an application of up to six components with edges, anchors, masks and pair rules."""
    infrastructure = draw(infrastructures())
    count, components = infrastructure.size, draw(st.integers(1, 6))
    pairs = [(one, other) for one in range(components) for other in range(components) if one != other]

    def some(limit: int) -> list[tuple[int, int]]:
        return draw(st.lists(st.sampled_from(pairs), max_size=limit)) if pairs else []

    def amounts(size: int, low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=size, max_size=size))

    edges = some(7)
    fixed = draw(st.lists(st.tuples(st.integers(0, components - 1), st.integers(0, count - 1)), max_size=3))
    limits: Any = [draw(st.sampled_from([np.inf, np.inf, 3.0, 10.0])) for _ in edges]
    application = Application.of(
        np.array(amounts(2 * components, 0, 6), dtype=float).reshape(components, 2),
        edges=edges,
        bandwidth=amounts(len(edges), 0, 5),
        max_cost=limits,
        weight=amounts(len(edges), 0, 3),
        allowed=_masks(draw, components, count),
        anchors=Anchors.of(
            [one for one, _ in fixed],
            [node for _, node in fixed],
            bandwidth=amounts(len(fixed), 0, 4),
            max_cost=[draw(st.sampled_from([np.inf, 5.0])) for _ in fixed],
            incoming=[draw(st.booleans()) for _ in fixed],
        ),
        separate=some(2),
        together=some(1),
        named=_masks(draw, components, count),
        has_selector=[draw(st.booleans()) for _ in range(components)],
    )
    return infrastructure, application


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
    assert all(entry.reason for entry in result.unplaced)
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


@FAST
@given(problem=problems())
def test_commit_and_release_leave_nothing_behind(problem: tuple[Infrastructure, Application]) -> None:
    infrastructure, application = problem
    state = InfrastructureState(infrastructure)
    result = plan(state, application, partial=True)
    state.commit(application, result.assignment)
    state.release(application, result.assignment)
    assert np.array_equal(state.free, infrastructure.free)
    assert np.allclose(state.bandwidth_free, infrastructure.bandwidth_free)
    if infrastructure.links is not None:
        assert np.allclose(state.link_free, infrastructure.links.free)


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
            state.commit(application, result.assignment)
            accepted.append((application, result.assignment))
    assert violations(infrastructure, accepted) == []


@FAST
@given(problem=problems())
def test_runner_ups_could_take_the_component_and_are_ordered(problem: tuple[Infrastructure, Application]) -> None:
    infrastructure, application = problem
    result = plan(infrastructure, application, explain=True)
    assert set(result.runner_ups) == set(np.flatnonzero(result.assignment >= 0).tolist())
    alone = not application.together.size
    for component, options in result.runner_ups.items():
        assert len(options) <= 3
        costs = [option.cost for option in options]
        assert costs == sorted(costs)
        for option in options:
            assert option.node != result.assignment[component]
            assert option.cost == pytest.approx(sum(option.terms.values()))
            if alone:
                moved = result.assignment.copy()
                moved[component] = option.node
                assert violations(infrastructure, [(application, moved)]) == []
