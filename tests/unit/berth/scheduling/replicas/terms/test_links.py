"""Budgets of links in plans in counts beside sums over pairs of pods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge, State
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.problem import Edge, Link, Problem
from tests.support.counts import books_of, nodes, problem, state_of, walk

RNG_LINKS = [[(0, 1)], [(0, 0)], [(0, 1), (0, 2), (1, 2)]]


def loads(asked: Problem, state: State) -> list[float]:
    """bit/s on every link, pair of pods by pair of pods."""
    return Judge(asked).usage(state, asked.edges)[asked.nodes.size :]


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_links_are_overdrawn_exactly_by_what_runs_through_them(routing: Routing, seed: int) -> None:
    asked, rng = small_problem(seed), np.random.default_rng(seed)
    known = range(len(asked.nodes.location_cost))
    between = [[pair for pair in pairs if set(pair) <= set(known)] for pairs in RNG_LINKS]
    asked = replace(
        asked,
        rules=(),
        workloads=[replace(workload, routing=routing) for workload in asked.workloads],
        edges=[replace(edge, bandwidth=float(rng.integers(0, 10)), max_cost=np.inf) for edge in asked.edges],
        nodes=replace(
            asked.nodes,
            bandwidth=None,
            links=[Link(pairs, float(rng.integers(-3, 20))) for pairs in between],
        ),
    )
    books = books_of(asked)
    before = loads(asked, state_of(books))
    walk(books, rng, 8)
    free = [max(0.0, link.free, was) for link, was in zip(asked.nodes.links, before, strict=True)]
    over = [max(0.0, load - left) for load, left in zip(loads(asked, state_of(books)), free, strict=True)]
    assert books.bandwidth.broken() == sum(over)


@pytest.mark.parametrize(
    ("between", "free", "active"),
    [
        pytest.param([(0, 2)], 20.0, True, id="tight"),
        pytest.param([(0, 2)], 1e6, False, id="carries-everything"),
        pytest.param([], 0.0, False, id="between-nobody"),
    ],
)
def test_links_that_carry_everything_are_not_looked_at(
    between: list[tuple[int, int]], free: float, active: bool
) -> None:
    edges = [Edge(caller=0, callee=1, bandwidth=10.0)]
    books = books_of(problem(2, 2, edges=edges, on=nodes(links=[Link(between, free)])))
    assert books.bandwidth.active is active
