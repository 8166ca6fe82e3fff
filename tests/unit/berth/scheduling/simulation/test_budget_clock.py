"""Time budgets of a plan: nothing passes until one is used up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.gang.budget import Budget
from berth.scheduling.simulation.budget_clock import BudgetClock


class Work:
    """Seconds of work, as told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_without_a_budget_it_stands_still() -> None:
    work = Work()
    clock = BudgetClock(spent=work)
    work.seconds = 1e9
    assert clock() == 0.0
    clock.begin()
    assert clock() == 0.0


@given(parts=st.lists(st.floats(0, 1.9), max_size=50))
def test_plans_made_in_time_see_no_time_pass(parts: list[float]) -> None:
    work = Work()
    clock = BudgetClock(2.0, spent=work)
    for part in parts:
        clock.begin()
        budget = Budget(clock, 2.0)
        work.seconds += part
        assert (clock(), budget.over, budget.exhausted) == (0.0, False, False)
        assert list(budget.pause()) == []


@given(before=st.lists(st.floats(0, 20), max_size=5), spent=st.floats(0, 30))
def test_a_plan_is_over_after_its_budget_and_ends_after_three(before: list[float], spent: float) -> None:
    work, times = Work(), []
    clock = BudgetClock(2.0, spent=work)
    for part in before:
        clock.begin()
        work.seconds += part
        times.append(clock())
    assert times == sorted(times)
    clock.begin()
    start = work.seconds
    budget = Budget(clock, 2.0)
    work.seconds += spent
    whole = (work.seconds - start) // 2.0
    assert (budget.over, budget.exhausted) == (whole >= 1, whole >= 3)


def test_a_plan_that_others_had_a_turn_of_goes_on_where_it_was() -> None:
    work = Work()
    clock = BudgetClock(2.0, spent=work)
    clock.begin()
    budget = Budget(clock, 2.0)
    work.seconds = 2.5
    pause = budget.pause()
    next(pause)
    clock.begin()
    work.seconds += 100.0
    clock.begin()
    list(pause)
    assert (budget.over, budget.exhausted) == (True, False)
    work.seconds += 4.0
    assert budget.exhausted
