"""Topology spread beside the judge's loops over pods."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge
from berth.scheduling.replicas.rule import Spread
from tests.support.counts import books_of, seeds_of, state_of, walk, with_rules

SOFT = seeds_of(Spread, required=False)
HARD = seeds_of(Spread, required=True)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SOFT), st.sampled_from([None, 0.0, 700.0]))
def test_soft_rules_cost_what_they_cost_pod_by_pod(seed: int, price: float | None) -> None:
    asked = with_rules(seed, Spread, required=False)
    asked = replace(asked, rules=[replace(cast(Spread, rule), price=price) for rule in asked.rules])
    books = books_of(asked)
    walk(books, np.random.default_rng(seed), 8)
    state = state_of(books)
    expected = sum(part.value(state) for part in Judge(asked).parts if part.name == "spread")
    assert sum(term.value() for term in books.rules) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(HARD))
def test_a_hard_constraint_is_broken_exactly_if_the_judge_says_so(seed: int) -> None:
    asked = with_rules(seed, Spread, required=True)
    books = books_of(asked)
    walk(books, np.random.default_rng(seed), 8)
    state = state_of(books)
    nowhere = any(rule.domain[node] < 0 for rule in asked.rules for row in rule.subjects for node in state[row])
    assume(not nowhere)  # a mask keeps pods off nodes without the key
    assert any(term.value() > 0 for term in books.rules) is ("spread" in Judge(asked).broken(state))
