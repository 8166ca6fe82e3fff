"""Budgets of nodes beside the judge's sums over pods."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.cases import cluster
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.problem import Edge, Link, Problem
from berth.scheduling.replicas.terms import bandwidth
from tests.support.budgets import small as tight
from tests.support.counts import books_of, nodes, problem, state_of, walk


def peak_of_add(books: Books, workload: int) -> int:
    """Bytes that are held at most while one more replica is tried everywhere."""
    tracemalloc.start()
    books.bandwidth.add(workload)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def leaving(asked: Problem, rng: np.random.Generator) -> dict[int, int]:
    """Pods of a workload that a rollout takes away, at random."""
    return {int(node): int(rng.integers(1, 3)) for node in np.flatnonzero(rng.random(asked.nodes.size) < 0.3)}


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_budgets_are_overdrawn_exactly_if_the_judge_says_so(routing: Routing, seed: int) -> None:
    asked, rng = small_problem(seed), np.random.default_rng(seed)
    asked = replace(
        asked,
        rules=(),
        workloads=[
            replace(one, routing=routing, leaving=leaving(asked, rng) if seed % 2 else {}) for one in asked.workloads
        ],
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
        workloads = [
            replace(one, routing=routing, leaving=leaving(asked, rng) if seed % 4 else {}) for one in asked.workloads
        ]
        books = books_of(replace(asked, workloads=workloads))
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
    assert peak_of_add(books, 0) < 8 * count * count / 10


def test_links_between_many_locations_make_no_table_of_nodes_by_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 locations with a link for each pair took 713 MiB."""
    locations, count = 100, 1000
    links = [Link([ends], 3.0) for ends in combinations_with_replacement(range(locations), 2)]
    links.append(Link([(one, one) for one in range(0, locations, 3)], 2.0))
    edges = [Edge(caller=0, callee=1, bandwidth=10.0), Edge(caller=1, callee=2, bandwidth=7.0)]
    placed = {workload: dict.fromkeys(range(0, 9, workload + 1), 1) for workload in range(3)}
    where = replace(cluster(count, locations), links=links)
    books = books_of(problem(9, 9, 9, edges=edges, placed=placed, on=where, request=np.array([1, 1, 1])))
    term, before = books.bandwidth, books.bandwidth.value()
    assert peak_of_add(books, 1) < 60 << 20
    change = np.broadcast_to(term.add(1), count)
    for column in range(0, count, 7):
        books.insert(1, column)
        assert term.value() - before == pytest.approx(change[column], rel=1e-9, abs=1e-6)
        books.remove(1, column)
    monkeypatch.setattr(bandwidth, "CHUNK", 1 << 15)
    assert np.array_equal(term.add(1), change), "whatever is looked at together"


@pytest.mark.parametrize("most", [0, 10, bandwidth.KNOWN], ids=["none", "some", "all"])
def test_usage_is_the_same_however_much_of_it_is_kept(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    edges = [Edge(caller=0, callee=1, bandwidth=10.0), Edge(caller=1, callee=2, bandwidth=7.0)]
    asked = problem(2, 2, 2, edges=edges, on=nodes(bandwidth=np.full(8, 9.0), links=[Link([(0, 1), (1, 1)], 5.0)]))
    monkeypatch.setattr(bandwidth, "KNOWN", most)
    books, rng = books_of(asked), np.random.default_rng(1)
    walk(books, rng, 6)
    kept = books.bandwidth.usage()
    assert len(books.bandwidth._known) == min(2, most // len(kept))
    monkeypatch.undo()
    walk(fresh := books_of(asked), np.random.default_rng(1), 6)
    assert kept.tolist() == fresh.bandwidth.usage().tolist()
    assert kept.any()
