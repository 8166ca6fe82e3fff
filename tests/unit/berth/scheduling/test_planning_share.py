"""Planning time is shared between namespaces by what they have used."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.planning_share import FORGET_BEYOND, PlanningShare


def test_who_has_used_more_counts_more() -> None:
    share = PlanningShare()
    share.charge("a", 2.0)
    assert (share.of("a"), share.of("b")) == (2.0, 0.0)


def test_idle_time_is_no_credit() -> None:
    share = PlanningShare()
    share.charge("a", 5.0)
    share.take_turn(["a"])
    share.enter("b")
    assert share.of("b") == share.of("a")


def test_an_urgent_turn_of_a_busy_namespace_moves_nobody_back() -> None:
    share = PlanningShare()
    share.charge("hostile", 1000.0)
    share.take_turn(["hostile", "a"])
    share.enter("b")
    assert share.of("b") <= share.of("a") + 1e-9


def test_who_comes_back_keeps_what_it_has_used_beyond_the_others() -> None:
    share = PlanningShare()
    share.charge("a", 5.0)
    share.enter("a")
    assert share.of("a") == 5.0


def test_namespaces_without_a_balance_are_forgotten() -> None:
    share = PlanningShare()
    share.charge("busy", 1.0)
    for number in range(FORGET_BEYOND + 1):
        share.enter(f"n{number}")
    assert len(share._used) < FORGET_BEYOND
    assert share.of("busy") == 1.0


def test_namespaces_that_came_once_are_bounded_though_all_have_used_more_than_the_least() -> None:
    share = PlanningShare()
    for number in range(3 * FORGET_BEYOND):
        name = f"n{number}"
        share.enter(name)
        share.take_turn([name, "idle"])
        share.charge(name, 1.0 + number % 7)
        assert len(share._used) <= FORGET_BEYOND + 1
    assert max(share._used.values()) == 7.0


@given(st.lists(st.floats(0.01, 1.0), min_size=30, max_size=60))
def test_two_busy_namespaces_get_equal_time(seconds: list[float]) -> None:
    share, used = PlanningShare(), {"a": 0.0, "b": 0.0}
    for amount in seconds:
        namespace = min(used, key=lambda name: (share.of(name), name))
        share.take_turn(used)
        share.charge(namespace, amount)
        used[namespace] += amount
    assert abs(used["a"] - used["b"]) <= 1.0 + 1e-9
