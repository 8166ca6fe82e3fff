"""Plans under budgets of bandwidth that just suffice: beside brute force, and never beyond a budget."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest

from bench.replicas_core.brute import TooLargeError, best
from bench.replicas_core.judge import Judge
from berth.scheduling.gang.budget import UNLIMITED
from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import Effort, plan
from berth.scheduling.replicas.problem import Problem
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.exact import Exact
from tests.support.budgets import small
from tests.support.counts import books_of, state_of

SEEDS = [seed for seed in range(150) if small(seed) is not None]
SOME = SEEDS[::3]
"""Where no brute force is needed to tell, and each takes a quarter of a second."""


@cache
def optimum(seed: int) -> float:
    """Infinite where no placement exists; not a number where brute force gives up."""
    try:
        return best(problem_of(seed), limit=20_000)[0]
    except TooLargeError:
        return math.nan


def problem_of(seed: int) -> Problem:
    found = small(seed)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_placement_within_budgets_is_found_whenever_one_exists_and_is_the_best(seed: int) -> None:
    asked, lowest = problem_of(seed), optimum(seed)
    if math.isnan(lowest):
        pytest.skip("too large for brute force")
    answer = finish(plan(asked))
    assert answer.complete is (lowest < math.inf)
    if answer.complete:
        assert Judge(asked).objective(state_of(answer)) == pytest.approx(lowest, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("seed", [7, 35, 45, 50, 51])
def test_what_budgets_rule_out_is_not_looked_at(seed: int) -> None:
    """It took up to 20,000 steps without an end, as long as budgets were compared with whole plans alone."""
    search = Exact(Draft(books_of(problem_of(seed))), UNLIMITED, 2500)
    assert finish(search.run())
    assert search.proved


def test_without_exact_search_no_budget_is_exceeded_either() -> None:
    whole = 0
    for seed in SOME:
        asked = problem_of(seed)
        answer = finish(plan(asked, effort=Effort(steps=0)))
        assert Judge(asked).broken(state_of(answer)) == [], f"seed {seed}"
        whole += answer.complete
    assert whole > len(SOME) / 2


@pytest.mark.parametrize("first", range(0, len(SOME), 10))
def test_nor_is_it_where_pods_may_be_left_out(first: int) -> None:
    for seed in SOME[first : first + 10]:
        asked = problem_of(seed)
        answer = finish(plan(asked, partial=True, effort=Effort(steps=0)))
        assert Judge(asked).broken(state_of(answer)) == [], f"seed {seed}"


def test_budgets_matter_to_these_problems() -> None:
    """Without them, plans of one in three would take more."""
    over = 0
    for seed in SEEDS:
        asked = problem_of(seed)
        free = replace(asked, nodes=replace(asked.nodes, links=(), bandwidth=None))
        answer = finish(plan(free))
        over += answer.complete and "bandwidth" in Judge(asked).broken(state_of(answer))
    assert over > len(SEEDS) / 3
