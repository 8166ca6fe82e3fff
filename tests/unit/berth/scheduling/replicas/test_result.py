"""What is read off a draft: counts by node, terms as the judge has them, and what is not kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.scheduling.replicas.problem import Edge, Rule
from berth.scheduling.replicas.result import result_of, terms_of
from berth.scheduling.replicas.rule import AntiAffinity, Spread
from berth.scheduling.replicas.search.draft import Draft
from tests.support.counts import HOST, ZONE, books_of, is_required, problem, state_of, walk

RULES = {"anti-affinity", "affinity", "spread"}


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000))
def test_terms_are_the_judges_one_by_one(seed: int) -> None:
    asked = small_problem(seed)
    books, judge = books_of(asked), Judge(asked)
    walk(books, np.random.default_rng(seed), 8)
    state, terms = state_of(books), terms_of(books)

    def judged(name: str) -> list[float]:
        return [part.value(state) for part in judge.parts if part.name == name]

    assert terms.network.tolist() == pytest.approx(judged("network"), rel=1e-9, abs=1e-9)
    assert terms.survival.tolist() == pytest.approx(judged("survival"), rel=1e-9, abs=1e-9)
    assert terms.load.sum() == pytest.approx(sum(judged("load")), rel=1e-9, abs=1e-9)
    assert terms.charges.sum() == pytest.approx(sum(judged("charge")), rel=1e-9, abs=1e-9)
    for rule, value in zip(asked.rules, terms.rules.tolist(), strict=True):
        alone = Judge(replace(asked, rules=[rule])).parts
        soft = [] if is_required(rule) else [part.value(state) for part in alone if part.name in RULES]
        assert value == pytest.approx(sum(soft), rel=1e-9, abs=1e-9)
    parts = (terms.network, terms.survival, terms.load, terms.rules, terms.charges)
    assert terms.objective == pytest.approx(sum(part.sum() for part in parts))


def a_draft() -> Draft:
    draft = Draft(books_of(problem(3, 2, edges=[(0, 1)]), [0, 1, 6]))
    draft.put(0, 0, 2)
    draft.put(0, 2)
    draft.put(1, 1)
    return draft


def test_counts_are_by_node_and_not_by_column_in_the_order_that_is_asked_for() -> None:
    answer = result_of(a_draft(), keep=True, cut_short=False, runner_ups={}, lasting=[[2, 0], [1]])
    assert [list(counts.items()) for counts in answer.counts] == [[(6, 1), (0, 2)], [(1, 1)]]
    assert answer.missing == answer.blocked == (0, 1)
    assert not answer.complete
    assert not answer.cut_short
    assert answer.survives_node == answer.survives_zone == (True, True)


def test_what_is_not_kept_places_nothing_and_says_what_was_in_the_way() -> None:
    answer = result_of(a_draft(), keep=False, cut_short=True, runner_ups={}, lasting=[[0, 2], [1]])
    assert answer.counts == ({}, {})
    assert answer.missing == (3, 2)
    assert answer.blocked == (0, 1)
    assert answer.objective == 0
    assert answer.cut_short


@pytest.mark.parametrize(
    ("homes", "node", "zone"),
    [
        pytest.param([0, 0], False, False, id="one node"),
        pytest.param([0, 1], True, False, id="two nodes of a zone"),
        pytest.param([0, 7], True, True, id="two zones"),
        pytest.param([0], True, True, id="a single replica"),
    ],
)
def test_survival_counts_what_is_placed(homes: list[int], node: bool, zone: bool) -> None:
    draft = Draft(books_of(problem(2)))
    for home in homes:
        draft.put(0, home)
    answer = result_of(draft, keep=True, cut_short=False, runner_ups={}, lasting=[range(8)])
    assert (answer.survives_node, answer.survives_zone) == ((node,), (zone,))


def test_a_limit_that_is_broken_is_no_cost_and_rules_keep_their_number() -> None:
    rules: list[Rule] = [
        Spread(domain=ZONE, subjects=[1], selects=[1], max_skew=9, hard=False),
        AntiAffinity(domain=HOST, subjects=[0], selects=[0], weight=40),
    ]
    draft = Draft(books_of(problem(2, 1, edges=[Edge(caller=0, callee=1, max_cost=5.0)], rules=rules)))
    draft.put(0, 0, 2)
    draft.put(1, 7)
    terms = terms_of(draft.books)
    assert terms.network.tolist() == [80.0]
    assert terms.rules.tolist() == [0.0, 2 * 0.4 * 5]
