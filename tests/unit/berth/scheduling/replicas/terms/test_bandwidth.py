"""Budgets of nodes beside the judge's sums over pods."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.cases import cluster
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.problem import Edge, Link
from tests.support.budgets import small as tight
from tests.support.counts import books_of, nodes, problem, state_of, walk


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_budgets_are_overdrawn_exactly_if_the_judge_says_so(routing: Routing, seed: int) -> None:
    asked, rng = small_problem(seed), np.random.default_rng(seed)
    asked = replace(
        asked,
        rules=(),
        workloads=[replace(workload, routing=routing) for workload in asked.workloads],
        edges=[replace(edge, bandwidth=float(rng.integers(0, 10)), max_cost=np.inf) for edge in asked.edges],
        nodes=replace(asked.nodes, bandwidth=rng.integers(0, 30, asked.nodes.size).astype(np.float64)),
    )
    books = books_of(asked)
    walk(books, rng, 8)
    assert (books.bandwidth.broken() > 0) is ("bandwidth" in Judge(asked).broken(state_of(books)))


def test_budgets_that_carry_everything_are_not_looked_at() -> None:
    edges = [Edge(caller=0, callee=1, bandwidth=10.0)]
    small, large = (
        books_of(problem(2, 2, edges=edges, on=nodes(bandwidth=np.full(8, budget)))) for budget in (30.0, 1e6)
    )
    assert (small.bandwidth.active, large.bandwidth.active) == (True, False)


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
def test_what_one_more_replica_changes_is_what_the_penalty_changes_by(routing: Routing) -> None:
    looked_at = 0
    for seed in range(0, 60, 2):
        asked, rng = tight(seed), np.random.default_rng(seed)
        if asked is None:
            continue
        books = books_of(replace(asked, workloads=[replace(one, routing=routing) for one in asked.workloads]))
        walk(books, rng, 6)
        term, before = books.bandwidth, books.bandwidth.value()
        for row, workload in enumerate(books.model.workload if term.active else ()):
            change = np.broadcast_to(term.add(workload), books.model.size)
            for column in range(books.model.size):
                books.insert(row, column)
                assert term.value() - before == pytest.approx(change[column], rel=1e-9, abs=1e-6)
                books.remove(row, column)
                looked_at += 1
    assert looked_at > 100


def test_where_calls_go_to_all_endpoints_no_table_of_nodes_by_nodes_is_made() -> None:
    """It took a table for each of 3000 pods, and time was over before all had a node."""
    count = 600
    edges = [Edge(caller=0, callee=1, bandwidth=10.0)]
    where = replace(cluster(count, 4), links=[Link([(0, 1)], 5.0)], bandwidth=np.full(count, 50.0))
    asked = problem(9, 9, edges=edges, on=where, request=np.array([1, 1, 1]))
    books = books_of(asked)
    books.bandwidth.add(0)
    tracemalloc.start()
    books.bandwidth.add(0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * count * count / 10
