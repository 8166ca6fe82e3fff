"""Planning time is shared between namespaces by what they have used."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.heaps import STALE
from berth.scheduling.planning_share import FORGET_BEYOND, PlanningShare


def having(**used: float) -> PlanningShare:
    """Namespaces with something to plan, and what they have used."""
    share = PlanningShare()
    for namespace, seconds in used.items():
        share.enter(namespace)
        share.charge(namespace, seconds)
    return share


def test_who_has_used_more_counts_more() -> None:
    share = having(a=2.0)
    assert (share.of("a"), share.of("b")) == (2.0, 0.0)


def test_idle_time_is_no_credit() -> None:
    share = having(a=5.0)
    share.take_turn()
    share.enter("b")
    assert share.of("b") == share.of("a")


def test_an_urgent_turn_of_a_busy_namespace_moves_nobody_back() -> None:
    share = having(hostile=1000.0, a=0.0)
    share.take_turn()
    share.enter("b")
    assert share.of("b") <= share.of("a") + 1e-9


def test_one_that_has_nothing_to_plan_keeps_nobody_back() -> None:
    share = having(idle=0.0, busy=7.0)
    share.leave("idle")
    share.take_turn()
    share.enter("new")
    assert share.of("new") == 7.0


def test_who_comes_back_keeps_what_it_has_used_beyond_the_others() -> None:
    share = having(a=5.0)
    share.leave("a")
    share.enter("a")
    assert share.of("a") == 5.0


def test_idle_namespaces_are_forgotten_the_busiest_last() -> None:
    share = having(busy=1.0, **{f"n{number}": 0.0 for number in range(FORGET_BEYOND + 1)})
    for namespace in [*share._active]:
        share.leave(namespace)
    assert len(share._used) < FORGET_BEYOND
    assert share.of("busy") == 1.0


def test_namespaces_with_something_to_plan_are_not_forgotten() -> None:
    share = having(**{f"n{number}": 0.5 for number in range(3 * FORGET_BEYOND)})
    for number in range(FORGET_BEYOND + 1, 3 * FORGET_BEYOND):
        share.leave(f"n{number}")
    assert {share.of(f"n{number}") for number in range(FORGET_BEYOND + 1)} == {0.5}


def test_namespaces_that_came_once_are_bounded_though_all_have_used_more_than_the_least() -> None:
    share = having(idle=0.0)
    for number in range(3 * FORGET_BEYOND):
        name = f"n{number}"
        share.enter(name)
        share.take_turn()
        share.charge(name, 1.0 + number % 7)
        share.leave(name)
        assert len(share._used) <= FORGET_BEYOND + 1
        assert len(share._least._items) <= 2 * 2 + STALE
    assert max(share._used.values()) == 7.0


@given(st.lists(st.floats(0.01, 1.0), min_size=30, max_size=60))
def test_two_busy_namespaces_get_equal_time(seconds: list[float]) -> None:
    share, used = having(a=0.0, b=0.0), {"a": 0.0, "b": 0.0}
    for amount in seconds:
        namespace = min(used, key=lambda name: (share.of(name), name))
        share.take_turn()
        share.charge(namespace, amount)
        used[namespace] += amount
    assert abs(used["a"] - used["b"]) <= 1.0 + 1e-9
