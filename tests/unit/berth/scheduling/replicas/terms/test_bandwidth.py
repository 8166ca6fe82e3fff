"""Budgets of nodes beside the judge's sums over pods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.problem import Edge
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
