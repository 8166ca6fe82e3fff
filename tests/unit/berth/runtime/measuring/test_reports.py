"""Messages to the controller: what is in them, in which order, and that nothing is lost or told twice."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.latency_exchange import MAX_SAMPLES, MAX_USERS, RoundTrips
from berth.runtime.measuring.reports import Reports
from berth.runtime.measuring.users import UserTable


def measured(table: UserTable, name: str, *microseconds: int, now: float = 0.0, address: str = "192.0.2.1") -> None:
    user = table.seen(name, now, address=address)
    for value in microseconds:
        table.record(user, value, now)


def told(message: RoundTrips) -> dict[str, tuple[int, ...]]:
    return {user.user: user.microseconds for user in message.users}


def test_a_message_has_what_was_measured_with_its_age() -> None:
    table = UserTable()
    reports = Reports(table)
    measured(table, "a", 20, 21, now=1.0)
    [user] = reports.message(3.5, telling=True, addresses=False).users
    assert (user.user, user.microseconds, user.age, user.address) == ("a", (20, 21), 2.5, "")


@pytest.mark.parametrize("addresses", [True, False])
def test_addresses_are_told_when_they_are_wanted(addresses: bool) -> None:
    table = UserTable()
    measured(table, "a", 20)
    [user] = Reports(table).message(0.0, telling=True, addresses=addresses).users
    assert user.address == ("192.0.2.1" if addresses else "")


def test_without_a_policy_a_message_is_empty_and_news_stay() -> None:
    table = UserTable()
    reports = Reports(table)
    measured(table, "a", 20)
    assert reports.message(0.0, telling=False, addresses=True).users == ()
    reports.arrived()
    assert reports.waiting
    assert told(reports.message(0.0, telling=True, addresses=True)) == {"a": (20,)}


def test_a_message_that_got_no_answer_is_repeated_as_it_was() -> None:
    table = UserTable()
    reports = Reports(table)
    measured(table, "a", 20)
    first = reports.message(1.0, telling=True, addresses=False)
    measured(table, "a", 30, now=2.0)
    measured(table, "b", 40, now=2.0)
    again = reports.message(5.0, telling=True, addresses=False)
    assert (again.sequence, told(again)) == (first.sequence, told(first))
    assert (first.users[0].age, again.users[0].age) == (1.0, 5.0)
    reports.arrived()
    following = reports.message(5.0, telling=True, addresses=False)
    assert (following.sequence, told(following)) == (first.sequence + 1, {"a": (30,), "b": (40,)})


def test_what_is_too_old_is_not_repeated() -> None:
    table = UserTable()
    reports = Reports(table, age=300.0)
    measured(table, "a", 20, now=0.0)
    measured(table, "b", 20, now=200.0)
    first = reports.message(200.0, telling=True, addresses=False)
    again = reports.message(400.0, telling=True, addresses=False)
    assert set(told(first)) == {"a", "b"}
    assert (set(told(again)), again.sequence) == ({"b"}, first.sequence)


def test_no_message_has_too_many_users_and_known_ones_come_first() -> None:
    table = UserTable()
    reports = Reports(table)
    for number in range(MAX_USERS + 200):
        measured(table, f"new-{number}", 20, now=10.0)
    table.seen("known", 0.0)
    measured(table, "known", 30, now=10.0)
    first = reports.message(10.0, telling=True, addresses=False)
    assert (len(first.users), first.users[0].user) == (MAX_USERS, "known")
    reports.arrived()
    assert len(reports.message(10.0, telling=True, addresses=False).users) == 201
    reports.arrived()
    assert not reports.waiting


def test_after_a_change_of_names_the_number_is_another() -> None:
    table = UserTable()
    reports = Reports(table)
    measured(table, "old", 20)
    before = reports.message(0.0, telling=True, addresses=False).sequence
    table.clear()
    reports.start_anew()
    following = reports.message(0.0, telling=True, addresses=False)
    assert (following.sequence, following.users) == (before + 1, ())


@pytest.mark.parametrize("policy", ["", "near"])
def test_a_router_says_in_each_message_which_policy_it_routes_for(policy: str) -> None:
    reports = Reports(UserTable(), policy=policy)
    assert reports.message(0.0, telling=False, addresses=False).policy == policy


@pytest.mark.parametrize("steers", [False, True])
def test_a_router_says_whether_it_can_send_users_elsewhere(steers: bool) -> None:
    reports = Reports(UserTable(), policy="near", steers=steers)
    assert reports.message(0.0, telling=False, addresses=False).steers is steers


def test_instances_are_told_from_each_other() -> None:
    assert Reports(UserTable()).instance != Reports(UserTable()).instance


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abc"), st.integers(1, 6)), st.sampled_from(["lost", "answer lost", "arrived"])
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_the_controller_gets_each_of_the_newest_once_and_in_order(steps: list[tuple[str, int] | str]) -> None:
    """A controller that counts each number once has, in the end, what was measured, as far as it was kept."""
    table = UserTable()
    reports = Reports(table)
    value, seen = 0, set[int]()
    made, got = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)

    def send(outcome: str) -> None:
        message = reports.message(0.0, telling=True, addresses=False)
        if outcome != "lost" and message.sequence not in seen:
            seen.add(message.sequence)
            for user in message.users:
                got[user.user] += user.microseconds
        if outcome == "arrived":
            reports.arrived()

    for step in steps:
        if isinstance(step, str):
            send(step)
            continue
        for _ in range(step[1]):
            value += 1
            made[step[0]].append(value)
            measured(table, step[0], value)
    while reports.waiting:
        send("arrived")
    for name, values in made.items():
        assert got[name] == sorted(set(got[name]))
        assert set(got[name]) <= set(values)
        assert got[name][-MAX_SAMPLES:] == values[-MAX_SAMPLES:]
