"""Books against themselves (changes are exact, removals undo) and against the judge's plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.scheduling.replicas.problem import Nodes, PodSet, Problem, Workload
from berth.scheduling.replicas.rule import Spread
from tests.support.counts import books_of, check_changes, nodes, state_of, walk


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_a_change_is_the_difference_of_whole_objectives(seed: int) -> None:
    books = books_of(small_problem(seed))
    rng = np.random.default_rng(seed)
    walk(books, rng, 8)
    check_changes(books)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_a_move_is_the_difference_of_whole_objectives(seed: int) -> None:
    books = books_of(small_problem(seed))
    walk(books, np.random.default_rng(seed), 10)
    scale = 1e-9 * books.model.penalty
    for row, column in np.argwhere(books.planned).tolist():
        before, (change, able) = books.value(), books.wishes(row, column)
        assert np.array_equal(able, books.takers(row, column))
        for target in np.flatnonzero(able).tolist():
            books.move(row, column, target)
            assert books.value() - before == pytest.approx(change[target], abs=scale, rel=1e-9)
            books.move(row, target, column)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_books_after_many_changes_are_those_made_anew(seed: int) -> None:
    problem = small_problem(seed)
    books, fresh = books_of(problem), books_of(problem)
    walk(books, np.random.default_rng(seed), 30)
    for row, column in np.argwhere(books.planned).tolist():
        fresh.insert(row, column, int(books.planned[row, column]))
    for name in ("planned", "x", "by_location", "by_zone", "free"):
        assert np.array_equal(getattr(books, name), getattr(fresh, name)), name
    assert books.total == fresh.total
    assert books.value() == pytest.approx(fresh.value(), rel=1e-9, abs=1e-9)
    for row in range(len(books.model.workload)):
        assert np.array_equal(books.can(row), fresh.can(row))
        assert books.costs(row) == pytest.approx(fresh.costs(row), rel=1e-9, abs=1e-9 * books.model.penalty)


@settings(max_examples=150, deadline=None)
@example(4441)  # all pods have room on each of the columns, and not on the node that is none
@given(st.integers(0, 10_000))
def test_books_of_some_nodes_are_those_of_all_nodes(seed: int) -> None:
    """What is left out of the columns is as if nobody went there."""
    problem, rng = small_problem(seed), np.random.default_rng(seed)
    # Penalties grow with what plugins charge on the columns.
    problem = replace(problem, pod_sets=[replace(pod_set, cost=None) for pod_set in problem.pod_sets])
    placed = {node for workload in problem.workloads for node in workload.placed}
    columns = sorted({*placed, *rng.permutation(problem.nodes.size)[:3].tolist()})
    everywhere, some = books_of(problem), books_of(problem, columns)
    walk(everywhere, rng, 8, columns)
    for row, column in np.argwhere(everywhere.planned).tolist():
        some.insert(row, columns.index(column), int(everywhere.planned[row, column]))
    scale = 1e-9 * some.model.penalty
    assert some.value() == pytest.approx(everywhere.value(), rel=1e-9, abs=scale)
    for row in range(len(some.model.workload)):
        if some.planned[row].sum() < some.model.replicas[row]:  # who is not missing is not asked for room
            assert np.array_equal(some.can(row), everywhere.can(row)[columns])
        assert some.costs(row) == pytest.approx(everywhere.costs(row)[columns], rel=1e-9, abs=scale)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_many_changes_at_once_are_those_changes(seed: int) -> None:
    problem, rng = small_problem(seed), np.random.default_rng(seed)
    one, other = books_of(problem), books_of(problem)
    walk(one, rng, 6)
    other.change([(row, column, int(one.planned[row, column])) for row, column in np.argwhere(one.planned).tolist()])
    assert np.array_equal(one.planned, other.planned)
    assert np.array_equal(one.free, other.free)
    assert one.value() == pytest.approx(other.value(), rel=1e-9, abs=1e-9)


def on_nodes_without_the_key(problem: Problem, state: list[tuple[int, ...]]) -> bool:
    """Whether pods with a hard spread are where its topology key is missing."""
    spreads = [rule for rule in problem.rules if isinstance(rule, Spread) and rule.hard]
    return any(rule.domain[node] < 0 for rule in spreads for row in rule.subjects for node in state[row])


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000))
def test_the_value_is_the_judges_where_no_rule_is_broken(seed: int) -> None:
    problem = small_problem(seed)
    books, judge = books_of(problem), Judge(problem)
    # What placed pods break among themselves has its penalty, but is no fault of a plan.
    assume(not (books.model.placed.any() and (books.model.limited or books.bandwidth.active)))
    walk(books, np.random.default_rng(seed), 6)
    state = state_of(books)
    soft = [part for part in judge.parts if part.value(state) < np.inf]
    broken = set(judge.broken(state))
    if "required affinity" in broken:
        return  # two that wait for each other are no matter of counts: keeps_rules looks for an order
    if on_nodes_without_the_key(problem, state):
        return  # those are closed by a mask, which the value knows nothing of
    if broken & {"limit", "bandwidth", "spread"}:
        assert books.value() > sum(part.value(state) for part in soft) + 0.5
    else:
        assert books.value() == pytest.approx(sum(part.value(state) for part in soft), rel=1e-9, abs=1e-9)


def test_an_over_committed_node_takes_what_asks_for_nothing_short() -> None:
    node = Nodes(
        free=np.array([[-1, 5]]), location=np.zeros(1, int), location_cost=np.ones((1, 1)), zone=np.zeros(1, int)
    )
    sets = [
        PodSet(workload=0, replicas=2, request=np.array([0, 5])),
        PodSet(workload=0, replicas=1, request=np.array([1, 0])),
    ]
    books = books_of(Problem(nodes=node, workloads=[Workload(name="a")], pod_sets=sets))
    assert [bool(books.can(row)[0]) for row in (0, 1)] == [True, False]
    books.insert(0, 0)
    assert not books.can(0)[0]


@pytest.mark.parametrize("first", ["naming", "other"])
def test_what_is_kept_is_for_pods_that_name_the_node_whoever_comes_first(first: str) -> None:
    sets = [PodSet(workload=0, replicas=9, request=np.array([1]), names_nodes=name) for name in (True, False)]
    asked = Problem(nodes=nodes(4, reserve=np.full((8, 1), 3)), workloads=[Workload(name="a")], pod_sets=sets)
    books = books_of(asked)
    naming, other = 0, 1
    if first == "naming":
        books.insert(naming, 0, 3)
        assert books.can(other)[0]
        books.insert(other, 0)
    else:
        books.insert(other, 0)
        assert not books.can(other)[0]
        assert books.can(naming)[0]
        books.insert(naming, 0, 3)
    assert not books.can(naming)[0]
    assert Judge(asked).broken(state_of(books)) == []
