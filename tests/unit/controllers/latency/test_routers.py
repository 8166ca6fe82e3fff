"""Which users are steered to which node, and until when."""

from __future__ import annotations

from datetime import datetime

import pytest

from berth.api.latencypolicy import MAX_HASH
from controllers.latency.intake import LONGEST_INTERVAL
from controllers.latency.routers import HEARD, PATIENCE, RESUMED, STEERED_USERS, TRY_AGAIN, Routers
from tests.support.latency import NOW, later


def routers(*nodes: str, users: int = 1) -> Routers:
    made = Routers()
    for node in nodes:
        made.heard(node, (f"u{number}" for number in range(users)), NOW)
    return made


@pytest.mark.parametrize(
    ("there", "nodes", "at", "can"),
    [
        pytest.param("ab", "ab", 0, True, id="all have one"),
        pytest.param("abc", "ab", 0, True, id="and another"),
        pytest.param("a", "ab", 0, False, id="one has none"),
        pytest.param("ab", "ab", 2 * LONGEST_INTERVAL, True, id="they tell as seldom as they may, and one was late"),
        pytest.param("ab", "ab", HEARD.total_seconds() + 1, False, id="none was heard of lately"),
        pytest.param("ab", "ab", -1, False, id="heard of in the time to come"),
        pytest.param("ab", "", 0, False, id="no node has room"),
    ],
)
def test_users_are_steered_where_all_nodes_have_routers(there: str, nodes: str, at: float, can: bool) -> None:
    assert routers(*there).steer_to(nodes, later(at)) is can


@pytest.mark.parametrize(
    ("there", "nodes", "known", "awaited"),
    [
        pytest.param("ab", "abc", False, True, id="one node has none yet"),
        pytest.param("", "abc", True, True, id="none yet, and there were some"),
        pytest.param("abc", "abc", True, False, id="all have one"),
        pytest.param("", "abc", False, False, id="there never was one"),
        pytest.param("ab", "", True, False, id="no node has room"),
    ],
)
def test_routers_are_awaited_for_a_while_where_there_are_some(
    there: str, nodes: str, known: bool, awaited: bool
) -> None:
    made, until = routers(*there), NOW + HEARD
    assert made.awaited(nodes, NOW, known=known) == (until if awaited else None)
    for node in there:
        made.heard(node, (), later(60))
    assert made.awaited(nodes, later(60), known=known) == (until if awaited else None)
    assert made.awaited(nodes, until, known=known) is None


def test_none_is_awaited_that_was_not_heard_of_where_there_are_such_that_do_not_steer() -> None:
    made = routers()
    made.heard_without()
    assert made.awaited("abc", NOW, known=True) is None
    made.heard("a", (), NOW)
    assert made.awaited("abc", NOW, known=True) == NOW + HEARD


def test_a_router_is_awaited_again_that_was_there_and_is_not_where_nothing_came_of_steering() -> None:
    made = routers("a", "b")
    made.awaited("abc", NOW, known=False)
    assert made.awaited("abc", NOW + HEARD, known=True) is None
    made.heard("c", (), NOW + HEARD)
    assert made.awaited("c", NOW + HEARD, known=False) is None
    assert made.awaited("cd", NOW + HEARD, known=False) == NOW + 2 * HEARD
    made.ask("c", NOW)
    made.ask("c", NOW + PATIENCE)
    assert made.awaited("cd", NOW + PATIENCE, known=True) is None


def test_a_node_that_gets_no_router_is_awaited_once_however_often_users_go_and_come() -> None:
    made = routers("a", "b")

    def awaited(nodes: str, seconds: float) -> datetime | None:
        for node in "ab":
            made.heard(node, (), later(seconds))
        return made.awaited(nodes, later(seconds), known=True)

    assert awaited("abc", 0) == NOW + HEARD
    assert awaited("", 10) is None  # nobody is there, and nobody asks where there is room
    assert awaited("abc", 20) == NOW + HEARD
    for seconds in (600, 7200, 200_000):
        assert awaited("", seconds - 100) is None
        assert awaited("abc", seconds) is None
    assert awaited("ab", 200_001) is None
    assert awaited("abc", 200_002) is None
    assert awaited("abcd", 200_010) == later(200_010) + HEARD
    made.heard("c", (), later(200_020))
    assert awaited("abc", 200_020) is None
    assert awaited("abc", 201_000) == later(201_000) + HEARD  # it had one, which may be about to come back


def test_routers_that_come_when_there_was_none_are_awaited() -> None:
    made = routers("a", "b")
    assert made.awaited("abc", NOW, known=False) == NOW + HEARD
    assert made.awaited("abc", later(1000), known=False) is None
    made.heard("a", (), later(2000))
    assert made.awaited("abc", later(2000), known=False) == later(2000) + HEARD


def test_a_clock_that_is_set_back_does_not_make_it_longer() -> None:
    made = routers("a", "b")
    made.awaited("abc", NOW, known=True)
    assert made.awaited("abc", later(-3600), known=True) == later(-3600) + HEARD


def test_nodes_that_come_and_go_are_not_remembered_for_ever() -> None:
    made = routers("a")
    for day in range(100):
        made.heard("a", (), later(day * 86_400.0))
        made.awaited(["a", f"n{day}"], later(day * 86_400.0), known=True)
    assert len(made._lacking) <= 2


def test_the_last_few_users_are_steered_by_the_routers_of_other_nodes() -> None:
    made = routers("a", "b", users=STEERED_USERS + 2)
    assert made.steered("a") == {}
    made.ask("b", NOW)
    assert made.steered("b") == {}
    assert made.steered("a") == dict.fromkeys([f"u{number}" for number in range(2, STEERED_USERS + 2)], "b")
    made.ask(None, NOW)
    assert made.steered("a") == {}


def test_where_nothing_comes_of_it_nobody_is_steered_for_a_while() -> None:
    made = routers("a", "b")
    made.ask("b", NOW)
    late = NOW + PATIENCE
    made.ask("b", late)
    assert made.steered("a") == {}
    for when, can in ((late, False), (late + TRY_AGAIN, True)):
        for node in ("a", "b"):
            made.heard(node, (), when)
        assert made.steer_to("ab", when) is can


def test_each_node_has_its_time() -> None:
    made = routers("a", "b", "c")
    made.ask("b", NOW)
    made.ask("c", NOW + PATIENCE)
    assert made.steered("a") == {"u0": "c"}
    made.ask("c", NOW + PATIENCE + PATIENCE / 2)
    assert made.steered("a") == {"u0": "c"}


@pytest.mark.parametrize(
    ("pause", "steered"),
    [
        pytest.param(5.0, False, id="while agents answer"),
        pytest.param(RESUMED.total_seconds() + 1, True, id="for long, as where it became known meanwhile"),
    ],
)
def test_a_pause_does_not_make_a_node_that_nobody_reaches_new(pause: float, steered: bool) -> None:
    made, at = routers("a", "b"), 0.0
    while at < PATIENCE.total_seconds() + 10 + pause:
        made.ask("b", later(at))
        made.ask("b", later(at + 10))
        made.ask(None, later(at + 10))
        at += 10 + pause
    made.ask("b", later(at))
    made.heard("a", (), later(at))
    made.heard("b", (), later(at))
    assert made.steer_to("ab", later(at)) is steered


def test_who_has_a_name_that_no_status_can_hold_is_not_steered() -> None:
    made = routers("a", "b")
    made.heard("a", ["", "u" * (MAX_HASH + 1)], NOW)
    made.ask("b", NOW)
    assert made.steered("a") == {"u0": "b"}
