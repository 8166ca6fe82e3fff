"""Preferred affinity beside the judge's loops over pods, required affinity where not all subjects are selected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.brute import best
from bench.replicas_core.judge import Judge
from berth.scheduling.planning import finish
from berth.scheduling.replicas.order import has_order
from berth.scheduling.replicas.plan import Effort, plan
from berth.scheduling.replicas.rule import Affinity
from tests.support.counts import ZONE, books_of, problem, seeds_of, state_of, walk, with_rules

SOFT = seeds_of(Affinity, required=False)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SOFT))
def test_soft_rules_cost_what_they_cost_pod_by_pod(seed: int) -> None:
    asked = with_rules(seed, Affinity, required=False)
    books = books_of(asked)
    walk(books, np.random.default_rng(seed), 8)
    state = state_of(books)
    expected = sum(part.value(state) for part in Judge(asked).parts if part.name == "affinity")
    assert sum(term.value() for term in books.rules) == pytest.approx(expected, rel=1e-9, abs=1e-9)


SERVED = Affinity(domain=ZONE, subjects=[0, 1], selects=[1])
"""Both go where the second is, so of the second one may be the first."""
ANCHORED = Affinity(domain=ZONE, subjects=[0, 1], selects=[1, 2])
"""A third anchors them as well."""


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([SERVED, ANCHORED]), st.integers(0, 10_000), st.integers(1, 9))
def test_of_subjects_that_are_not_all_selected_one_that_is_may_be_the_first(rule: Affinity, seed: int, n: int) -> None:
    books = books_of(problem(2, 3, 2, rules=[rule]))
    walk(books, np.random.default_rng(seed), n)
    (term,) = books.rules
    assert (term.value() == 0) is has_order(books)
    assert bool(Judge(books.model.problem).broken(state_of(books))) is not has_order(books)
    before = term.value()
    for row in range(3):
        change = np.broadcast_to(term.add(row), books.model.size)
        for column in range(books.model.size):
            term.change(row, column, 1)
            assert term.value() - before == pytest.approx(change[column])
            term.change(row, column, -1)


@pytest.mark.parametrize("steps", [pytest.param(0, id="search"), pytest.param(20_000, id="exact search")])
@pytest.mark.parametrize("rule", [pytest.param(SERVED, id="one follows"), pytest.param(ANCHORED, id="or a third")])
def test_what_goes_where_another_workload_is_together_is_placed(rule: Affinity, steps: int) -> None:
    asked = problem(1, 2, 1, rules=[rule], edges=[(0, 1)])
    answer = finish(plan(asked, effort=Effort(steps=steps)))
    assert answer.complete
    assert Judge(asked).objective(state_of(answer)) == pytest.approx(best(asked)[0])
