"""What edges between decided workloads take of budgets, beside the judge's sums over pods."""

from __future__ import annotations

import numpy as np
import pytest

from bench.replicas_core.judge import Judge
from berth.scheduling.gang.budget import UNLIMITED, finish
from berth.scheduling.replicas.problem import Edge, Link, Problem
from berth.scheduling.replicas.search.loads import Loads
from berth.scheduling.replicas.search.options import Options
from tests.support.budgets import small
from tests.support.counts import books_of, nodes, problem

SEEDS = range(40)


def loads_of(asked: Problem) -> tuple[Loads, Options]:
    books = books_of(asked)
    rows = Options.few(books)
    assert rows is not None
    options = Options(books, rows)
    finish(options.work_out(UNLIMITED))
    return Loads(books, options), options


def test_workload_by_workload_what_is_taken_adds_up_to_what_the_judge_counts() -> None:
    looked_at = 0
    for seed in SEEDS:
        asked, rng = small(seed), np.random.default_rng(seed)
        if asked is None or not asked.nodes.links or not books_of(asked).bandwidth.active:
            continue
        loads, options = loads_of(asked)
        chosen: dict[int, int] = {}
        taken = loads.settled
        for workload in rng.permutation(options.workloads).tolist():
            if not len(options.total[workload]):
                break
            way = int(rng.integers(len(options.total[workload])))
            taken = taken + loads.more(workload, chosen)[way]
            chosen[workload] = way
        if len(chosen) < len(options.workloads):
            continue
        counts = {row: options.counts[row][chosen[w]] for w in chosen for row in options.rows[w]}
        state = [
            tuple(
                np.repeat(np.arange(asked.nodes.size), counts.get(row, np.zeros(asked.nodes.size)).astype(int)).tolist()
            )
            for row in range(len(asked.pod_sets))
        ]
        expected = Judge(asked).usage(state, asked.edges)
        # Links that carry all calls anyway are left out of what is taken.
        assert taken[: asked.nodes.size].tolist() == expected[: asked.nodes.size]
        assert set(taken[asked.nodes.size :].tolist()) <= set(expected[asked.nodes.size :])
        assert bool(loads.fits(taken)) is ("bandwidth" not in Judge(asked).broken(state))
        looked_at += 1
    assert looked_at > 10


@pytest.mark.parametrize(
    ("chosen", "most"),
    [pytest.param({}, 0.0, id="the other end is open"), pytest.param({1: 0}, 20.0, id="the other end is decided")],
)
def test_an_edge_counts_once_both_its_ends_are_decided(chosen: dict[int, int], most: float) -> None:
    edges = [Edge(caller=0, callee=1, bandwidth=10.0)]
    loads, _ = loads_of(problem(2, 1, edges=edges, on=nodes(links=[Link([(0, 1), (0, 2), (0, 3)], 5.0)])))
    assert loads.more(0, chosen)[:, -1].max() == most


def test_workloads_with_nothing_to_place_are_decided_from_the_start() -> None:
    edges = [Edge(caller=0, callee=1, bandwidth=10.0), Edge(caller=1, callee=2, bandwidth=4.0)]
    links = [Link([(0, 3)], 15.0)]
    loads, _ = loads_of(problem(0, 0, 1, edges=edges, placed={0: {0: 1}, 1: {7: 1}}, on=nodes(links=links)))
    assert loads.settled[-1] == 10
    # On node 0 the new one is called across the link as well.
    assert loads.more(2, {})[:, -1].tolist() == [4, 4, 0, 0, 0, 0, 0, 0]
    assert loads.fits(loads.settled + loads.more(2, {})).tolist() == [True] * 8
