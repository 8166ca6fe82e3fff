"""All ways to place a workload: tables and parts add up to the judge's objective, whatever ways are chosen."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, count
from math import comb

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.gang.budget import UNLIMITED, Budget, finish
from berth.scheduling.replicas.problem import Edge, Problem
from berth.scheduling.replicas.rule import AntiAffinity
from berth.scheduling.replicas.search import options
from berth.scheduling.replicas.search.exact import constant
from berth.scheduling.replicas.search.options import MOST, Options
from tests.support.counts import HOST, ZONE, books_of, nodes, problem

LATER = {"room", "bandwidth", "required affinity"}
"""What is judged while ways are chosen, or for whole plans."""


def options_of(asked: Problem) -> Options:
    books = books_of(asked)
    rows = Options.few(books)
    assert rows is not None
    made = Options(books, rows)
    finish(made.work_out(UNLIMITED))
    return made


def total_of(options: Options, chosen: dict[int, int]) -> float:
    total = sum(float(options.alone[w][number]) for w, number in chosen.items())
    for one, other in combinations(chosen, 2):
        if (one, other) in options.together:
            table = options.together[one, other]
            assert np.array_equal(table, options.together[other, one].T)
            total += float(table[chosen[one], chosen[other]])
    counts = {row: options.counts[row][number] for workload, number in chosen.items() for row in options.rows[workload]}
    return total + sum(float(part(counts)) for _, part in options.parts)


@pytest.mark.parametrize("pinned", [1, 63, 64, 100])
def test_any_number_of_sets_may_have_one_node_alone(pinned: int) -> None:
    """As pods have whose volumes are on a node; one more has a choice of two."""
    at, either = HOST == 0, HOST < 2
    asked = problem(1, on=nodes(200))
    sets = [replace(asked.pod_sets[0], mask=mask) for mask in (either, *([at] * pinned))]
    options = options_of(replace(asked, pod_sets=sets))
    assert options.counts[0].tolist() == np.eye(2, 8).tolist()
    assert options.total[0].tolist() == [[1.0 + pinned, *([0.0] * 7)], [pinned, 1.0, *([0.0] * 6)]]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000))
@example(468)  # a placed caller that is beyond its limit already
def test_ways_add_up_to_the_judges_objective(seed: int) -> None:
    asked, rng = small_problem(seed), np.random.default_rng(seed)
    options = options_of(asked)
    assume(all(len(options.alone[w]) for w in options.workloads))
    chosen = {w: int(rng.integers(len(options.alone[w]))) for w in options.workloads}
    state: list[tuple[int, ...]] = []
    for row, pod_set in enumerate(asked.pod_sets):
        counts = options.counts[row][chosen[pod_set.workload]].astype(int)
        assert counts.sum() == pod_set.replicas
        state.append(tuple(np.repeat(np.arange(asked.nodes.size), counts).tolist()))
    judge = Judge(asked)
    broken = set(judge.broken(state))
    total = constant(books_of(asked)) + total_of(options, chosen)
    if broken - LATER:
        assert math.isinf(total)
    elif "required affinity" not in broken:
        soft = sum(part.value(state) for part in judge.parts if part.name not in LATER)
        assert total == pytest.approx(soft, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("replicas", "few"),
    [pytest.param(3, True, id="120 ways"), pytest.param(4, True, id="330 ways"), pytest.param(5, False, id="792 ways")],
)
def test_few(replicas: int, few: bool) -> None:
    books = books_of(problem(1, replicas, 0))
    rows = Options.few(books)
    assert (comb(8 + replicas - 1, replicas) <= MOST) is few
    assert rows == ({0: [0], 1: [1]} if few else None)


def test_ways_are_those_that_have_room_and_are_told_apart_by_counts() -> None:
    options = options_of(problem(2, mask=np.isin(HOST, [1, 5])))
    assert sorted(map(tuple, options.counts[0][:, [1, 5]].tolist())) == [(0, 2), (1, 1), (2, 0)]
    assert options.usage[0].sum(axis=(1, 2)).tolist() == [2, 2, 2]


def test_placed_replicas_are_part_of_every_way() -> None:
    options = options_of(problem(1, placed={0: {3: 2}}))
    assert (options.total[0][:, 3] >= 2).all()
    assert options.total[0].sum(axis=1).tolist() == [3.0] * 8
    # All on one node die with it, and with its zone.
    assert options.alone[0].tolist() == [1.0 if ZONE[node] == 1 and node != 3 else 6.0 * (node == 3) for node in HOST]


@pytest.mark.parametrize("spare", [0, -1], ids=["few", "too many"])
def test_tables_of_all_pairs_are_bounded(spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls both ways share a table, and workloads without pods to place have none."""
    books = books_of(problem(1, 1, 2, 0, edges=[(0, 1), (1, 0), (1, 2), (2, 3)]))
    monkeypatch.setattr(options, "MOST_FIGURES", 8 * 8 + 8 * 36 + spare)
    assert (Options.few(books) is None) is (spare < 0)


RULES = [AntiAffinity(domain=HOST, subjects=[w % 3], selects=[0, 1, 2], weight=1 + w) for w in range(50)]
"""Among three workloads of 36 ways each, where each has two pods."""


def test_rules_are_tabled_as_long_as_that_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty workloads with three rules each took 16 seconds otherwise."""
    monkeypatch.setattr(options, "MOST_FIGURES", 2 * (3 * 36) ** 2)
    assert len(options_of(problem(2, 2, 2, rules=RULES)).parts) == len(RULES) - 2


def test_others_have_turns_between_rules() -> None:
    clock, books = count(), books_of(problem(2, 2, 2, rules=RULES))
    made = Options(books, {w: [w] for w in range(3)})
    turns = sum(1 for _ in made.work_out(Budget(lambda: float(next(clock)), 1e9)))
    assert turns >= len(RULES)


def test_what_one_workload_has_with_itself_is_no_part() -> None:
    rules = [AntiAffinity(domain=ZONE, subjects=[0], selects=[0])]
    options = options_of(problem(2, 1, rules=rules))
    assert options.parts == []
    apart = [len(set(ZONE[np.repeat(HOST, way.astype(int))])) == 2 for way in options.counts[0]]
    assert np.isfinite(options.alone[0]).tolist() == apart


def test_a_way_beyond_a_limit_is_none() -> None:
    edges = [Edge(caller=0, callee=1, max_cost=5.0)]
    options = options_of(problem(1, 1, edges=edges, routing=Routing.ALL))
    near = ZONE[:, None] // 2 == ZONE // 2
    assert np.array_equal(np.isfinite(options.together[0, 1]), near)


@pytest.mark.parametrize(
    "placed",
    [
        pytest.param({0: 1}, id="none beyond before"),
        pytest.param({4: 1}, id="one beyond before"),
        pytest.param({0: 1, 4: 2}, id="two beyond before"),
    ],
)
def test_a_placed_caller_reaches_no_more_endpoints_beyond_a_limit(placed: dict[int, int]) -> None:
    edges = [Edge(caller=0, callee=1, max_cost=5.0)]
    options = options_of(problem(0, 1, edges=edges, placed={0: {0: 1}, 1: placed}))
    new = (options.counts[1] @ ZONE).astype(int)
    assert np.array_equal(np.isfinite(options.alone[1]), new < 2)
