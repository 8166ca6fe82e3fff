"""Plans in turns: how long one is, what a plan is worth wherever time runs out, and that turns change nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
import pytest

from bench.replicas_core.cases import boutique, cluster, mesh
from berth.scheduling.gang.budget import TURN_SECONDS, Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Problem

CALL = 1e-6
"""Seconds that a call of a function stands for: what large plans need on the average."""


class Work:
    """A clock that shows how many functions have been called: the same on every machine."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def _count(self, _frame: FrameType, event: str, _arg: Any) -> None:
        if event in ("call", "c_call"):
            self.seconds += CALL

    @contextmanager
    def counting(self) -> Iterator[None]:
        before = sys.getprofile()
        sys.setprofile(self._count)
        try:
            yield
        finally:
            sys.setprofile(before)


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
    assert max(turns) <= 2 * TURN_SECONDS


def test_a_partial_plan_of_many_broken_rules_ends_in_time() -> None:
    nodes = cluster(3000, 16)
    nodes = replace(nodes, free=np.where((nodes.location == 3)[:, None], 0, nodes.free))
    turns = turns_of(mesh(600, 11, nodes=nodes, rule="hard"), 0.25, partial=True)
    assert sum(turns) <= 3 * 0.25 + TURN_SECONDS
    assert max(turns) <= 2 * TURN_SECONDS


def test_a_small_plan_is_one_turn() -> None:
    assert len(turns_of(boutique(), 2.0)) == 1


def test_a_plan_that_costs_nothing_ends_the_search() -> None:
    problem = boutique(1)
    assert finish(plan(problem)).objective == 0
    assert sum(turns_of(problem, 2.0)) < 5000 * CALL


def test_turns_change_nothing() -> None:
    problem = mesh(60, 5, nodes=cluster(40, 4))
    work = Work()
    with work.counting():
        planning = plan(problem, budget=Budget(work, 1000.0))
        answer = finish(planning)
    assert work.seconds > 2 * TURN_SECONDS
    assert answer.counts == finish(plan(problem)).counts
