"""Wherever time runs out, a plan keeps its rules, counts every pod, and ends soon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.cases import boutique, cluster, mesh
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.gang.budget import Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import Effort, plan
from berth.scheduling.replicas.problem import Problem, Rule
from berth.scheduling.replicas.result import Plan
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from tests.support.counts import state_of


def ticking(seconds: float) -> Budget:
    """A budget whose clock goes on by a second with every look at it."""
    clock = count()
    return Budget(lambda: float(next(clock)), seconds)


def check(problem: Problem, answer: Plan, *, partial: bool) -> None:
    placed = [sum(counts.values()) for counts in answer.counts]
    wanted = [pod_set.replicas for pod_set in problem.pod_sets]
    assert [n + m for n, m in zip(placed, answer.missing, strict=True)] == wanted
    assert answer.complete or partial or not any(placed)
    if answer.complete or partial:
        assert Judge(problem).broken(state_of(answer)) == []


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000), st.integers(1, 600), st.booleans())
def test_cut_anywhere_a_plan_keeps_its_rules(seed: int, seconds: int, partial: bool) -> None:
    problem = small_problem(seed)
    check(problem, finish(plan(problem, partial=partial, budget=ticking(seconds))), partial=partial)


@pytest.mark.parametrize("seconds", [1, 3, 10, 30, 100, 300, 1000])
@pytest.mark.parametrize("routing", [Routing.ALL, Routing.SAME_ZONE], ids=["all endpoints", "PreferSameZone"])
def test_cut_anywhere_an_application_is_whole_or_partial(seconds: int, routing: Routing) -> None:
    problem = boutique(3, routing=routing, rule="hard")
    answer = finish(plan(problem, partial=True, budget=ticking(seconds)))
    check(problem, answer, partial=True)
    assert answer.cut_short or answer.complete


@pytest.mark.parametrize("workloads", [20, 30, 40])
def test_a_proof_out_of_reach_takes_no_time_from_kicks(workloads: int) -> None:
    """Exact search took all of it, and without kicks forty workloads cost 863 where 710 is possible."""
    asked = mesh(workloads, 1, nodes=cluster(24, 4, cpu=500))
    kicked = finish(plan(asked, effort=Effort(steps=0)))
    assert finish(plan(asked, budget=ticking(3000))).objective <= kicked.objective


def test_of_many_workloads_no_proof_is_tried_to_the_end_of_the_time() -> None:
    assert not finish(plan(mesh(40, 1, nodes=cluster(24, 4, cpu=500)), budget=ticking(6000))).cut_short


def test_exhausted_at_once_nothing_is_placed_and_nothing_breaks() -> None:
    answer = finish(plan(boutique(), partial=True, budget=Budget(lambda: 0.0, 0.0)))
    assert sum(answer.missing) >= 22
    assert answer.cut_short


HOST, ZONE = np.arange(60), np.arange(60) % 4
EVERYBODY = range(40)


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([Affinity(domain=HOST, subjects=EVERYBODY, selects=EVERYBODY)], id="all on one node"),
        pytest.param(
            [Affinity(domain=ZONE, subjects=[row], selects=[row]) for row in EVERYBODY], id="each in one zone"
        ),
        pytest.param(
            [Affinity(domain=HOST, subjects=[row], selects=[row - 1]) for row in EVERYBODY[1:]], id="a chain of nodes"
        ),
        pytest.param([AntiAffinity(domain=ZONE, subjects=EVERYBODY, selects=EVERYBODY)], id="one a zone"),
        pytest.param(
            [Spread(domain=ZONE, subjects=EVERYBODY, selects=EVERYBODY, max_skew=1)],
            id="even, one zone is full",
        ),
        pytest.param(
            [Spread(domain=HOST, subjects=[row], selects=[row], max_skew=1, min_domains=99) for row in EVERYBODY],
            id="too few nodes",
        ),
    ],
)
def test_rules_that_cannot_be_kept_are_given_up_in_time(rules: list[Rule]) -> None:
    nodes = cluster(60, 4)
    nodes = replace(nodes, free=np.where((ZONE == 3)[:, None], 0, nodes.free))
    problem = replace(mesh(40, 5, nodes=nodes), rules=rules)
    looks = [0]

    def clock() -> float:
        looks[0] += 1
        return float(looks[0])

    answer = finish(plan(problem, partial=True, budget=Budget(clock, 2000.0)))
    check(problem, answer, partial=True)
    assert looks[0] < 15_000  # three budgets, and the looks with which others have their turns


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(lambda size: [Affinity(domain=HOST, subjects=range(size), selects=range(size))], id="one rule"),
        pytest.param(
            lambda size: [Affinity(domain=ZONE, subjects=[row], selects=[row]) for row in range(size)], id="one each"
        ),
    ],
)
def test_orders_of_many_pods_are_found(rules: Callable[[int], list[Rule]]) -> None:
    nodes = cluster(60, 4, cpu=10**9)
    nodes = replace(nodes, free=nodes.free * 10**6)
    problem = replace(mesh(300, 3, nodes=nodes), rules=rules(300))
    answer = finish(plan(problem, budget=ticking(30000)))
    assert answer.complete
