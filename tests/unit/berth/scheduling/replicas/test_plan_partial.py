"""Where not every pod can have a node: no fewer are placed than by placing one pod after another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.cases import boutique, cluster, mesh
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Nodes, Problem
from berth.scheduling.replicas.rule import Spread
from tests.support.counts import state_of

State = list[tuple[int, ...]]


def one_at_a_time(problem: Problem) -> State:
    """The plan in which each pod in turn goes to the cheapest node where it breaks nothing, by plain loops."""
    judge = Judge(problem)
    state: State = [()] * len(problem.pod_sets)
    for row, pod_set in enumerate(problem.pod_sets):
        for _ in range(pod_set.replicas):
            ways = [[*state[:row], (*state[row], node), *state[row + 1 :]] for node in range(problem.nodes.size)]
            cheapest = min(ways, key=judge.objective)
            if judge.objective(cheapest) < math.inf:
                state = cheapest
    return state


def crowded(seed: int) -> Problem:
    """A generated problem with half of the room."""
    problem = small_problem(seed)
    return replace(problem, nodes=replace(problem.nodes, free=problem.nodes.free // 2))


@pytest.mark.parametrize("problem_of", [small_problem, crowded])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1_000_000))
def test_no_fewer_are_placed_than_one_at_a_time(problem_of: Callable[[int], Problem], seed: int) -> None:
    problem = problem_of(seed)
    state = state_of(finish(plan(problem, partial=True)))
    assert Judge(problem).broken(state) == []
    assert sum(map(len, state)) >= sum(map(len, one_at_a_time(problem)))


FOUR = cluster(24, 4)
"""Four zones of six nodes"""


def with_full_zones(nodes: Nodes, *zones: int) -> Nodes:
    free = nodes.free.copy()
    for zone in zones:
        free[nodes.location == zone] = 0
    return replace(nodes, free=free)


@pytest.mark.parametrize(
    ("problem", "most"),
    [
        pytest.param(
            boutique(3, nodes=with_full_zones(cluster(24, 4), 1, 2, 3), limits=False), 1, id="one zone is open"
        ),
        pytest.param(boutique(5, nodes=with_full_zones(cluster(24, 4), 3), limits=False), 3, id="one zone is full"),
        pytest.param(mesh(15, 4, nodes=with_full_zones(FOUR, 0)), 3, id="a larger application"),
    ],
)
def test_a_hard_spread_with_full_zones_takes_one_pod_from_each_open_one(problem: Problem, most: int) -> None:
    rules = [
        Spread(domain=problem.nodes.location, subjects=[row], selects=[row], max_skew=1)
        for row in range(len(problem.pod_sets))
    ]
    answer = finish(plan(replace(problem, rules=rules), partial=True))
    assert [sum(counts.values()) for counts in answer.counts] == [most] * len(rules)
