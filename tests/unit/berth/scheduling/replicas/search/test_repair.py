"""Plans that break a rule: pods are left out until it holds, as few as possible, and come back where they may."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.problem import Edge, Problem
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.repair import TRIES, repair
from tests.support.counts import HOST, ZONE, books_of, filled, nodes, problem, state_of

EXHAUSTED = Budget(lambda: 0.0, 0.0)


def tidy(draft: Draft, budget: Budget, rounds: int = 0) -> None:
    finish(repair(draft, budget, np.random.default_rng(0), rounds))


def with_pods(asked: Problem, *homes: list[int]) -> Draft:
    draft = Draft(books_of(asked))
    for row, columns in enumerate(homes):
        for column in columns:
            draft.put(row, column)
    return draft


@pytest.mark.parametrize(
    ("asked", "homes", "missing"),
    [
        pytest.param(problem(2), [[0, 1]], [0], id="nothing is broken"),
        pytest.param(
            problem(4, rules=[Spread(domain=ZONE % 2, subjects=[0], selects=[0], max_skew=1)]),
            [[0, 0, 0, 0]],
            [0],
            id="spread: one at a time, then back to the other domain",
        ),
        pytest.param(
            problem(4, rules=[Spread(domain=ZONE, subjects=[0], selects=[0], max_skew=1, min_domains=9)]),
            [[0, 0, 2, 4]],
            [0],
            id="minDomains: one a domain",
        ),
        pytest.param(
            problem(4, on=nodes([4, 4, 0, 0, 0, 0, 0, 0]), rules=[Affinity(domain=HOST, subjects=[0], selects=[0])]),
            [[0, 0, 0, 1]],
            [0],
            id="affinity: the one apart joins the others",
        ),
        pytest.param(
            problem(2, 1, rules=[Affinity(domain=HOST, subjects=[0], selects=[1])], on=nodes([2, 9, 9, 9, 9, 9, 9, 9])),
            [[3, 0], [0]],
            [1, 0],
            id="affinity: no room beside the other",
        ),
        pytest.param(
            problem(1, 1, edges=[Edge(caller=0, callee=1, max_cost=5.0)], on=nodes([1, 0, 0, 0, 0, 0, 0, 1])),
            [[0], [7]],
            [1, 0],
            id="a limit: one of the two goes",
        ),
    ],
)
def test_as_few_as_possible_are_left_out(asked: Problem, homes: list[list[int]], missing: list[int]) -> None:
    draft = with_pods(asked, *homes)
    tidy(draft, UNLIMITED)
    assert sum(draft.missing) == sum(missing)
    assert Judge(asked).broken(state_of(draft.books)) == []


@pytest.mark.parametrize("rounds", [0, 20])
def test_what_can_be_placed_is_placed_where_most_domains_are_full(rounds: int) -> None:
    rules = [Spread(domain=ZONE, subjects=[row], selects=[row], max_skew=1) for row in range(3)]
    draft = with_pods(problem(3, 3, 2, rules=rules, on=nodes([0, 0, 0, 0, 0, 0, 9, 9])), [6, 6, 7], [6, 7, 7], [6, 6])
    tidy(draft, UNLIMITED, rounds)
    assert draft.missing == [2, 2, 1]


@pytest.mark.parametrize(
    ("asked", "homes", "placed"),
    [
        pytest.param(problem(3, 1, on=nodes([3, *[0] * 7])), [[0, 0, 0], []], [2, 1], id="of three, one makes way"),
        pytest.param(problem(1, 1, on=nodes([1, *[0] * 7])), [[0], []], [1, 0], id="an only replica stays"),
        pytest.param(
            problem(1, 1, on=nodes([1, *[0] * 7]), placed={0: {7: 1}}),
            [[0], []],
            [0, 1],
            id="one of two that are there",
        ),
        pytest.param(
            problem(2, 2, 1, on=nodes([4, *[0] * 7])), [[0, 0], [0, 0], []], [1, 2, 1], id="of several the first"
        ),
        pytest.param(
            problem(2, 1, on=nodes([2, *[0] * 7]), rules=[AntiAffinity(domain=HOST, subjects=[0], selects=[1])]),
            [[0, 0], []],
            [2, 0],
            id="who may not be beside the rest",
        ),
        pytest.param(
            problem(2, 1, on=nodes([2, *[0] * 7]), rules=[Affinity(domain=HOST, subjects=[1], selects=[0])]),
            [[0, 0], []],
            [1, 1],
            id="who must be near the rest",
        ),
    ],
)
def test_who_has_several_replicas_makes_way_for_who_has_none(
    asked: Problem, homes: list[list[int]], placed: list[int]
) -> None:
    draft = with_pods(asked, *homes)
    tidy(draft, UNLIMITED)
    assert draft.books.planned.sum(axis=1).tolist() == placed


def test_many_soft_rules_are_no_broken_one() -> None:
    soft = [AntiAffinity(domain=ZONE % 2, subjects=[0], selects=[0], weight=100) for _ in range(400)]
    hard = Spread(domain=HOST, subjects=[1], selects=[1], max_skew=1, min_domains=9)
    draft = with_pods(problem(8, 3, rules=[*soft, hard]), [], [0, 0, 1])
    tidy(draft, UNLIMITED)
    assert draft.missing == [0, 0]


class Counting(Draft):
    """Counts the pods that are put on columns."""

    tried = 0

    def put(self, row: int, column: int, count: int = 1) -> None:
        self.tried += max(0, count)
        super().put(row, column, count)


def test_a_pod_that_breaks_a_rule_everywhere_is_tried_on_few_columns() -> None:
    asked = problem(1, 1, rules=[Affinity(domain=HOST, subjects=[0], selects=[1])])
    draft = Counting(books_of(replace(asked, pod_sets=[asked.pod_sets[0], replace(asked.pod_sets[1], mask=ZONE < 0)])))
    tidy(draft, UNLIMITED)
    assert draft.missing == [1, 1]
    assert draft.tried == 2 * TRIES, "once, and once from nothing"


@pytest.mark.parametrize("seed", range(20))
def test_kicks_leave_out_no_more(seed: int) -> None:
    asked = small_problem(seed)
    asked = replace(asked, nodes=replace(asked.nodes, free=asked.nodes.free // 2))
    draft = filled(asked, np.random.default_rng(seed))
    tidy(draft, UNLIMITED)
    without = draft.standing(range(len(draft.missing)))
    tidy(draft, UNLIMITED, 5)
    assert draft.standing(range(len(draft.missing))) <= without
    assert Judge(asked).broken(state_of(draft.books)) == []


def test_without_time_all_that_have_a_broken_rule_go_and_nobody_else() -> None:
    rules = [Spread(domain=ZONE, subjects=[0], selects=[0], max_skew=1)]
    draft = with_pods(problem(4, 2, rules=rules), [0, 0, 0, 2], [0, 0])
    tidy(draft, EXHAUSTED)
    assert draft.missing == [4, 0]
    assert draft.books.planned[1, 0] == 2


@pytest.mark.parametrize("budget", [UNLIMITED, EXHAUSTED], ids=["time", "no time"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_whatever_is_planned_every_rule_holds_afterwards(budget: Budget, seed: int) -> None:
    asked = small_problem(seed)
    draft = filled(asked, np.random.default_rng(seed))
    tidy(draft, budget)
    assert keeps_rules(draft.books)
    assert Judge(asked).broken(state_of(draft.books)) == []
    placed = [len(homes) for homes in state_of(draft.books)]
    assert [n + m for n, m in zip(placed, draft.missing, strict=True)] == [p.replicas for p in asked.pod_sets]
