"""Plans in turns: how long one is, what a plan is worth wherever time runs out, and that turns change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.replicas_core.cases import boutique, cluster, mesh
from berth.scheduling.gang.budget import TURN_SECONDS, Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Problem
from tests.support.work import CALL, Work

LONGEST = 0.32
"""A turn, and what is made in one go."""


def turns_of(problem: Problem, seconds: float, *, partial: bool = False) -> list[float]:
    """Length of each turn of a plan."""
    work = Work()
    turns = []
    with work.counting():
        planning = plan(problem, partial=partial, budget=Budget(work, seconds))
        while True:
            start = work.seconds
            ended = next(planning, planning) is planning
            turns.append(work.seconds - start)
            if ended:
                return turns


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(mesh(3333, 3, nodes=cluster(5000, 16)), id="many workloads"),
        pytest.param(boutique(copies=303, nodes=cluster(5000, 16)), id="many applications"),
    ],
)
def test_a_large_plan_gives_others_their_turns(problem: Problem) -> None:
    turns = turns_of(problem, 0.5)
    assert len(turns) > 3
    assert max(turns) <= LONGEST


def test_a_partial_plan_of_many_broken_rules_ends_in_time() -> None:
    nodes = cluster(3000, 16)
    nodes = replace(nodes, free=np.where((nodes.location == 3)[:, None], 0, nodes.free))
    turns = turns_of(mesh(600, 11, nodes=nodes, rule="hard"), 0.25, partial=True)
    assert sum(turns) <= 3 * 0.25 + LONGEST
    assert max(turns) <= LONGEST


def test_a_small_plan_is_one_turn() -> None:
    assert len(turns_of(boutique(), 2.0)) == 1


def test_a_plan_that_costs_nothing_ends_the_search() -> None:
    problem = boutique(1)
    assert finish(plan(problem)).objective == 0
    assert sum(turns_of(problem, 2.0)) < 5000 * CALL


def test_turns_change_nothing() -> None:
    problem = mesh(75, 5, nodes=cluster(40, 4))
    work = Work()
    with work.counting():
        planning = plan(problem, budget=Budget(work, 1000.0))
        answer = finish(planning)
    assert work.seconds > 2 * TURN_SECONDS
    assert answer.counts == finish(plan(problem)).counts
