"""Branch and bound beside the judge's objective of every placement there is."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, product

import pytest

from bench.replicas_core.brute import TooLargeError, best
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.scheduling.replicas.problem import Problem

MOST = 3000


def placements(problem: Problem) -> list[list[tuple[int, ...]]]:
    nodes = range(problem.nodes.size)
    ways = [list(combinations_with_replacement(nodes, pod_set.replicas)) for pod_set in problem.pod_sets]
    return [] if math.prod(map(len, ways)) > MOST else [list(state) for state in product(*ways)]


FEW = [seed for seed in range(60) if placements(small_problem(seed))]


@pytest.mark.parametrize("seed", FEW)
def test_the_best_is_the_least_of_all(seed: int) -> None:
    problem = small_problem(seed)
    judge = Judge(problem)
    least = min(judge.objective(state) for state in placements(problem))
    found, state = best(problem)
    assert found == pytest.approx(least, rel=1e-12, abs=1e-9)
    if state is None:
        assert math.isinf(least)
    else:
        assert judge.objective(state) == pytest.approx(found, rel=1e-12, abs=1e-9)


def test_there_are_problems_with_and_without_a_placement() -> None:
    assert {best(small_problem(seed))[1] is None for seed in FEW} == {True, False}


def test_nothing_is_better_than_the_best() -> None:
    problem = small_problem(FEW[0])
    lowest, _ = best(problem)
    assert best(problem, below=lowest) == (math.inf, None)
    assert best(problem, below=lowest + 1e-6)[0] == lowest


def test_a_limit_ends_the_search() -> None:
    with pytest.raises(TooLargeError):
        best(small_problem(FEW[0]), limit=1)
