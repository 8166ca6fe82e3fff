"""Where not every pod can have a node: no fewer are placed than by placing one pod after another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.brute import best
from bench.replicas_core.cases import boutique, cluster, mesh
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Nodes, Problem
from berth.scheduling.replicas.rule import Spread
from tests.support.counts import nodes, problem, state_of

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


Lack = tuple[int, int]
"""workloads without a replica, and dependencies that lack an end"""


def lack(problem: Problem, counts: Sequence[int]) -> Lack:
    """What so many pods of each set leave out; every workload is one set."""
    there = [bool(one.placed) or count > 0 for one, count in zip(problem.workloads, counts, strict=True)]
    return there.count(False), sum(not (there[edge.caller] and there[edge.callee]) for edge in problem.edges)


def most(problem: Problem) -> tuple[int, Lack]:
    """The most pods that can be placed, and the least that is left out then, by trying all."""
    every = sorted(product(*(range(one.replicas + 1) for one in problem.pod_sets)), key=sum, reverse=True)
    for count, group in groupby(every, key=sum):
        for counts in sorted(group, key=lambda counts: lack(problem, counts)):
            sets = [replace(one, replicas=pods) for one, pods in zip(problem.pod_sets, counts, strict=True)]
            if best(replace(problem, pod_sets=sets))[1] is not None:
                return count, lack(problem, counts)
    raise AssertionError("nothing breaks no rule")


def test_of_the_most_pods_those_are_placed_that_leave_out_the_least() -> None:
    looked_at = missed = 0
    for asked in map(crowded, range(100)):
        if [one.workload for one in asked.pod_sets] != list(range(len(asked.workloads))) or asked.pods > 7:
            continue
        counts = [len(homes) for homes in state_of(finish(plan(asked, partial=True)))]
        if sum(counts) < asked.pods:
            looked_at += 1
            missed += (sum(counts), lack(asked, counts)) != most(asked)
    assert looked_at > 20
    assert missed == 0


@pytest.mark.parametrize(
    ("replicas", "room", "expected"),
    [
        pytest.param((3, 3, 3), 4, [2, 1, 1], id="one of each before a second"),
        pytest.param((1, 1, 1), 2, [1, 1, 0], id="a dependency with both ends"),
        pytest.param((3, 3, 3), 1, [1, 0, 0], id="room for one"),
    ],
)
def test_a_chain_without_room_for_all(replicas: tuple[int, ...], room: int, expected: list[int]) -> None:
    asked = problem(*replicas, edges=[(0, 1), (1, 2)], on=nodes([room - room // 2, *[0] * 6, room // 2]))
    counts = [sum(counts.values()) for counts in finish(plan(asked, partial=True)).counts]
    assert sorted(counts, reverse=True) == sorted(expected, reverse=True)
    assert lack(asked, counts) == lack(asked, expected)


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
