"""Columns that are alike: what tells nodes apart, and that one of the ways is left which permutations make of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.replicas_core.brute import TooLargeError, best
from bench.replicas_core.small import small_problem
from berth.scheduling.gang.budget import UNLIMITED
from berth.scheduling.planning import finish
from berth.scheduling.replicas.problem import Problem, Workload
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from berth.scheduling.replicas.search.alike import kinds, one_of_each, told_apart
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.exact import Exact
from tests.support.counts import HOST, ZONE, books_of, nodes, problem

FIRST = np.eye(1, 8, dtype=np.int64)[0]
"""Something of the first node alone"""


def with_workload(**fields: Any) -> Problem:
    return replace(problem(1), workloads=[Workload(name="w0", **fields)])


@pytest.mark.parametrize(
    ("asked", "others"),
    [
        pytest.param(problem(1), [1], id="nothing"),
        pytest.param(problem(1, rules=[AntiAffinity(domain=HOST, subjects=[0], selects=[0])]), [1], id="by-host"),
        pytest.param(problem(1, rules=[Affinity(domain=HOST, subjects=[0], selects=[], placed=FIRST)]), [], id="there"),
        pytest.param(
            problem(1, rules=[AntiAffinity(domain=HOST, subjects=[0], selects=[0], placed_subjects=FIRST)]),
            [],
            id="minded",
        ),
        pytest.param(
            problem(1, rules=[Spread(domain=ZONE, subjects=[0], selects=[0], max_skew=1, eligible=FIRST == 0)]),
            [],
            id="not-counted",
        ),
        pytest.param(
            problem(1, rules=[Affinity(domain=np.where(FIRST, -1, HOST), subjects=[0], selects=[0])]),
            [],
            id="without-the-key",
        ),
        pytest.param(problem(1, on=nodes(10 - FIRST)), [], id="room"),
        pytest.param(problem(1, on=nodes(bandwidth=10.0 - FIRST)), [], id="bandwidth"),
        pytest.param(problem(1, mask=FIRST == 0), [], id="not-allowed"),
        pytest.param(problem(1, cost=FIRST.astype(np.float64)), [], id="charge"),
        pytest.param(with_workload(placed={0: 1}), [], id="a-replica"),
        pytest.param(with_workload(leaving={0: 1}), [], id="a-replica-that-leaves"),
        pytest.param(with_workload(placed={0: 1, 1: 1}), [], id="a-replica-on-each"),
    ],
)
def test_who_is_like_the_first_node(asked: Problem, others: list[int]) -> None:
    """Two nodes are in each zone."""
    kind = kinds(books_of(asked).model)
    assert np.flatnonzero(kind == kind[0]).tolist() == [0, *others]
    assert sorted({*kind.tolist()}) == list(range(kind.max() + 1))


def test_pods_tell_columns_apart_and_columns_stay_so() -> None:
    kind = told_apart(np.array([0, 0, 0, 1, 1]), np.array([[1.0, 0, 1, 0, 0], [0, 0, 2, 0, 0]]))
    assert [[k == other for other in kind.tolist()] for k in kind.tolist()] == np.eye(5, dtype=bool).tolist()[:3] + [
        [False, False, False, True, True]
    ] * 2


def permuted(way: tuple[tuple[int, ...], ...], kind: list[int]) -> Iterable[tuple[tuple[int, ...], ...]]:
    """What becomes of counts, by set and column, as columns of a kind change places."""
    for order in permutations(range(len(kind))):
        if [kind[k] for k in order] == kind:
            yield tuple(tuple(counts[k] for k in order) for counts in way)


@given(kind=st.lists(st.integers(0, 2), min_size=3, max_size=4), pods=st.tuples(st.integers(0, 3), st.integers(1, 2)))
def test_one_of_the_ways_is_left_that_permutations_make_of_each(kind: list[int], pods: tuple[int, int]) -> None:
    size = len(kind)
    every = [
        tuple(tuple(homes.count(k) for k in range(size)) for homes in (one, other))
        for one in combinations_with_replacement(range(size), pods[0])
        for other in combinations_with_replacement(range(size), pods[1])
    ]
    tables = np.array(every, dtype=np.float64).transpose(1, 0, 2)
    numbered = np.unique(kind, return_inverse=True)[1]
    left = [every[number] for number in one_of_each(numbered, [*tables], range(len(every)))]
    first = {min(every.index(each) for each in permuted(way, kind)) for way in every}
    assert left == [every[number] for number in sorted(first)]


@pytest.mark.parametrize("others", [1, 62, 63, 64, 200])
def test_ways_differ_however_many_other_sets_have_one_way_alone(others: int) -> None:
    """A pod is on one of three columns, of which the first two are alike; all others are on the third."""
    tables = [np.eye(3), *([np.tile([0.0, 0.0, 1.0], (3, 1))] * others)]
    assert list(one_of_each(np.array([0, 0, 1]), tables, range(3))) == [0, 2]


def even(seed: int) -> Problem:
    """A generated problem whose nodes are as large, and which pods of all sets may use at the same charge."""
    asked = small_problem(seed)
    free = np.broadcast_to(asked.nodes.free[0], asked.nodes.free.shape).copy()
    sets = [replace(one, mask=None, cost=None) for one in asked.pod_sets]
    return replace(asked, nodes=replace(asked.nodes, free=free, reserve=None), pod_sets=sets)


@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_is_among_those_that_are_left(seed: int) -> None:
    asked = even(seed)
    try:
        lowest, state = best(asked, limit=20_000)
    except TooLargeError:
        pytest.skip("too large for brute force")
    search = Exact(Draft(books_of(asked)), UNLIMITED, 20_000)
    assert finish(search.run())
    assert search.proved
    assert (search.best is None) == (state is None)
    assert search.lowest == pytest.approx(lowest, rel=1e-9, abs=1e-6)
