"""Limits on the cost of calls from and to pods that go later, beside what finished plans are checked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.problem import Edge, Problem
from tests.support.counts import books_of, check_changes, problem, walk


def rollout(seed: int, routing: Routing) -> Problem:
    """A generated problem some pods of which go later, with a limit on every call and no other rule."""
    asked, rng = small_problem(seed), np.random.default_rng(seed)
    nodes = range(asked.nodes.size)
    return replace(
        asked,
        rules=(),
        nodes=replace(asked.nodes, bandwidth=None),
        workloads=[
            replace(one, routing=routing, leaving={k: int(rng.integers(1, 3)) for k in nodes if rng.random() < 0.3})
            for one in asked.workloads
        ],
        edges=[replace(edge, bandwidth=0.0, max_cost=float(rng.choice([5.0, 20.0, 80.0]))) for edge in asked.edges],
    )


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_a_change_is_the_difference_of_whole_objectives(routing: Routing, seed: int) -> None:
    books = books_of(rollout(seed, routing))
    walk(books, np.random.default_rng(seed), 8)
    check_changes(books)


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_nothing_changes_by_looking(routing: Routing, seed: int) -> None:
    """What a pod saves by going is found out without it, and it comes back: moves went in circles."""
    looked_at, untouched = (books_of(rollout(seed, routing)) for _ in range(2))
    for books in (looked_at, untouched):
        walk(books, np.random.default_rng(seed), 8)
    for row, column in np.argwhere(looked_at.planned).tolist():
        looked_at.relief(row, column)
    assert looked_at.value() == pytest.approx(untouched.value(), abs=1e-9 * untouched.model.penalty)


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_a_plan_is_punished_if_it_breaks_a_limit(routing: Routing, seed: int) -> None:
    """What is there may break some before, which no plan is to be blamed for; some would break once all have gone."""
    books = books_of(rollout(seed, routing))
    if beyond_limits(books) or going_beyond_limits(books):
        return
    walk(books, np.random.default_rng(seed), 8)
    broken = not keeps_rules(books)
    if broken:
        assert beyond_limits(books) or going_beyond_limits(books)
    if going_beyond_limits(books):
        assert broken


def beyond_limits(books: Books) -> bool:
    """Whether calls are punished, without those that go later."""
    numbers = range(len(books.model.targets))
    plain = sum(float(books.network.callers(k) @ books.network.reached(books.model.plain(k))) for k in numbers)
    return books.network.value(numbers) > plain + 1


def going_beyond_limits(books: Books) -> bool:
    """Whether calls are punished, with those that go later."""
    return books.limits.active and books.limits.value(range(len(books.total))) > 0


@pytest.mark.parametrize(
    ("limit", "leaving", "active"),
    [
        pytest.param(5.0, {0: {0: 1}}, True, id="a caller goes"),
        pytest.param(5.0, {1: {0: 1}}, True, id="an endpoint goes"),
        pytest.param(5.0, {2: {0: 1}}, False, id="somebody else goes"),
        pytest.param(5.0, {}, False, id="nobody goes"),
        pytest.param(100.0, {0: {0: 1}}, False, id="no place is beyond"),
    ],
)
def test_limits_are_looked_at_where_somebody_goes(
    limit: float, leaving: dict[int, dict[int, int]], active: bool
) -> None:
    asked = problem(2, 2, 2, edges=[Edge(caller=0, callee=1, max_cost=limit), Edge(caller=1, callee=2)])
    workloads = [replace(one, leaving=leaving.get(number, {})) for number, one in enumerate(asked.workloads)]
    assert books_of(replace(asked, workloads=workloads)).limits.active is active
