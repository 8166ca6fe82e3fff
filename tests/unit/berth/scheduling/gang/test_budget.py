"""Planning time: over, exhausted, and whether anybody was told."""

from __future__ import annotations

import pytest

from berth.scheduling.gang.budget import BEFORE_LONG, STRETCH_SECONDS, TURN_SECONDS, UNLIMITED, Budget
from tests.support.placement import Clock


@pytest.mark.parametrize(
    ("passed", "over", "exhausted"),
    [
        pytest.param(0.0, False, False, id="at-the-start"),
        pytest.param(1.5, False, False, id="in-time"),
        pytest.param(2.0, True, False, id="over"),
        pytest.param(5.0, True, False, id="a-first-plan-may-take-longer"),
        pytest.param(6.0, True, True, id="exhausted"),
    ],
)
def test_by_time(passed: float, over: bool, exhausted: bool) -> None:
    clock = Clock()
    budget = Budget(clock, 2.0)
    clock.advance(passed)
    assert not budget.cut_short
    assert (budget.over, budget.exhausted) == (over, exhausted)
    assert budget.cut_short is over


def test_time_that_is_held_back_is_there_afterwards() -> None:
    clock = Clock()
    budget = Budget(clock, 2.0)
    with budget.holding_back():
        clock.advance(3.5)
        assert not budget.exhausted
        clock.advance(0.5)
        assert budget.exhausted
    assert not budget.exhausted
    clock.advance(2.0)
    assert budget.exhausted


def test_a_budget_that_begins_anew_has_all_of_its_time() -> None:
    clock = Clock()
    budget = Budget(clock, 2.0)
    clock.advance(TURN_SECONDS)
    assert len(list(budget.pause())) == 1
    clock.advance(6.0)
    assert budget.exhausted
    budget.restart()
    assert not budget.cut_short
    clock.advance(1.5)
    assert not budget.over
    clock.advance(0.5)
    assert budget.over
    assert budget.pauses == 1


def test_at_a_stretch_others_have_no_turn_until_it_has_taken_long() -> None:
    clock = Clock()
    budget = Budget(clock, 2.0)
    with budget.at_a_stretch():
        clock.advance(0.9 * STRETCH_SECONDS)
        assert list(budget.pause()) == []
        clock.advance(0.2 * STRETCH_SECONDS)
        assert len(list(budget.pause())) == 1
    with budget.at_a_stretch():
        clock.advance(2 * TURN_SECONDS)
        assert list(budget.pause()) == []
    assert len(list(budget.pause())) == 1


def test_nobody_asked_nothing_cut_short() -> None:
    clock = Clock()
    budget = Budget(clock, 2.0)
    clock.advance(100.0)
    assert not budget.cut_short


def test_unlimited() -> None:
    assert [UNLIMITED.over, UNLIMITED.exhausted, UNLIMITED.cut_short] == [False, False, False]


def test_a_turn_ends_after_a_while() -> None:
    clock = Clock()
    budget = Budget(clock, 2.0)
    assert list(budget.pause()) == []
    clock.advance(TURN_SECONDS)
    assert len(list(budget.pause())) == 1
    assert list(budget.pause()) == []
    assert budget.pauses == 1


def test_before_what_takes_long_a_turn_ends_sooner() -> None:
    clock = Clock()
    budget = Budget(clock, 2.0)
    clock.advance(TURN_SECONDS / 2)
    assert list(budget.pause()) == []
    assert len(list(budget.pause(BEFORE_LONG))) == 1
    assert list(budget.pause(BEFORE_LONG)) == []


def test_pauses_do_not_count() -> None:
    clock = Clock()
    budget = Budget(clock, 2.0)
    clock.advance(1.5)
    for _ in budget.pause():
        clock.advance(100.0)
    assert not budget.over
    clock.advance(0.5)
    assert budget.over


def test_without_a_limit_nobody_is_waiting() -> None:
    clock = Clock()
    budget = Budget(clock, float("inf"))
    clock.advance(100.0)
    assert list(budget.pause()) == []
