"""The table of users: who stays, who gives way, what is remembered. Times are stated."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.latency_exchange import MAX_SAMPLES
from berth.api.latencypolicy import MAX_MICROSECONDS
from berth.runtime.measuring.users import KEPT_SECONDS, User, UserTable


def names(table: UserTable) -> list[str]:
    return [user.name for user in table]


def known(table: UserTable, *users: str, now: float = 0.0) -> None:
    """Have users come, and come back."""
    for user in users:
        table.seen(user, now)
        table.seen(user, now + 1.0)


def test_a_request_is_noted() -> None:
    table = UserTable()
    user = table.seen("a", 1.0, address="192.0.2.1")
    assert table.seen("a", 2.5, address="192.0.2.2") is user
    assert (user.first, user.last, user.address, len(table)) == (1.0, 2.5, "192.0.2.2", 1)


@pytest.mark.parametrize(
    ("microseconds", "taken"),
    [
        pytest.param(1, True, id="least"),
        pytest.param(MAX_MICROSECONDS, True, id="greatest"),
        pytest.param(0, False, id="nothing"),
        pytest.param(-5, False, id="negative"),
        pytest.param(MAX_MICROSECONDS + 1, False, id="absurd"),
    ],
)
def test_what_can_be_a_round_trip(microseconds: int, taken: bool) -> None:
    table = UserTable()
    user = table.seen("a", 1.0)
    assert table.record(user, microseconds, 1.0) is taken
    assert user.untold == ((microseconds,) if taken else ())
    assert table.changes == user.change == int(taken)


@given(counts=st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=8))
def test_nothing_is_told_twice_and_no_more_is_kept_than_the_newest(counts: list[tuple[int, bool]]) -> None:
    table, made, unknown = UserTable(), 0, 0
    user = table.seen("a", 0.0)
    for count, tell in counts:
        for _ in range(count):
            made += 1
            assert table.record(user, made, 0.0)
        unknown += count
        assert user.untold == tuple(range(made - min(unknown, MAX_SAMPLES) + 1, made + 1))
        assert len(user.microseconds) == min(made, MAX_SAMPLES)
        if tell:
            user.told, unknown = user.count, 0


def test_a_flood_of_newcomers_pushes_out_newcomers_alone() -> None:
    table = UserTable(10)
    known(table, *"abcdefgh")
    for number in range(1000):
        table.seen(f"forged-{number}", 2.0)
    assert names(table) == [*"abcdefgh", "forged-998", "forged-999"]
    assert table.pushed_out == 998


def test_newcomers_have_the_places_that_nobody_else_needs() -> None:
    table = UserTable(10)
    for time in (0.0, 5.0):  # those who are answered for long come back in the same order each time
        for number in range(8):
            table.seen(str(number), time)
    table.seen("new", 5.0)
    assert (names(table), table.pushed_out) == ([*"01234567", "new"], 0)


def test_who_becomes_known_takes_a_place_from_the_newcomers() -> None:
    table = UserTable(10)
    for number in range(10):
        table.seen(str(number), 0.0)
    table.seen("9", 1.0)
    table.seen("new", 1.0)
    assert names(table) == ["9", *"12345678", "new"]


def test_a_newcomer_who_repeats_at_once_is_not_known() -> None:
    table = UserTable(5)
    for user in "abc":
        table.seen(user, 0.0)
        table.seen(user, 0.9)
    for user in "defgh":
        table.seen(user, 0.9)
    assert names(table) == [*"defgh"]


@pytest.mark.parametrize(
    ("silent", "stays"),
    [
        pytest.param(KEPT_SECONDS - 0.1, True, id="who was there lately"),
        pytest.param(KEPT_SECONDS, False, id="who has been silent"),
    ],
)
def test_a_known_user_gives_way_only_after_a_silence(silent: float, stays: bool) -> None:
    table = UserTable(5)
    known(table, *"abcd")
    table.seen("x", silent)
    table.seen("x", silent + 1.0)
    assert ("a" in names(table)) is stays
    assert names(table)[-1] == "x"
    assert len(table) == (5 if stays else 4)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), rate=st.integers(1, 60))
def test_who_comes_once_in_a_while_is_never_pushed_out(seed: int, rate: int) -> None:
    draw, table = random.Random(seed), UserTable(20)
    known(table, "regular")
    user = table.seen("regular", 2.0)
    for step in range(3, 200):
        if step % 50 == 0:
            assert table.seen("regular", step) is user
        for _ in range(rate):
            table.seen(f"forged-{draw.randrange(60)}", step)
        assert len(table) <= 20


def test_there_are_no_more_users_than_places() -> None:
    table = UserTable(100)
    for number in range(200):
        known(table, f"known-{number}")
        table.seen(f"new-{number}", 1.0)
    assert len(table) == 100
    assert names(table)[:80] == [f"known-{number}" for number in range(80)]


def test_users_are_forgotten_after_their_age() -> None:
    table = UserTable(age=300.0)
    known(table, "a")
    table.seen("b", 200.0)
    table.forget_old(300.0)
    assert names(table) == ["a", "b"]
    table.forget_old(301.0)
    assert names(table) == ["b"]
    table.seen("c", 500.0)  # whoever comes makes room first
    assert names(table) == ["c"]


def test_known_users_come_first() -> None:
    table = UserTable()
    table.seen("new", 0.0)
    known(table, "known", now=5.0)
    assert names(table) == ["known", "new"]


def test_everybody_is_forgotten_when_told_so() -> None:
    table = UserTable()
    known(table, "a")
    table.seen("b", 1.0)
    table.clear()
    assert names(table) == []
    assert table.seen("a", 2.0).first == 2.0


def test_users_are_told_from_each_other_by_being_not_by_worth() -> None:
    assert User("a", 0.0, 0.0) != User("a", 0.0, 0.0)
