"""How often somebody may speak, and that a message counts once."""

from __future__ import annotations

import pytest

from berth.api.latency_exchange import PROBES_WAIT, UserRoundTrips
from controllers.latency.callers import Caller
from controllers.latency.intake import (
    INTERVAL,
    LEAST_USERS,
    LONGEST_INTERVAL,
    NAMESPACE_BURST,
    POD_BURST,
    USERS_BURST,
    USERS_RATE,
    Intake,
    Rate,
    Sequences,
)
from tests.support.placement import Clock


def test_so_many_at_once_then_so_many_a_second_for_each() -> None:
    clock = Clock()
    rate = Rate(2.0, 3.0, clock)
    assert [rate.allows("a") for _ in range(5)] == [True, True, True, False, False]
    assert rate.allows("b")
    clock.advance(1.0)
    assert [rate.allows("a") for _ in range(3)] == [True, True, False]
    clock.advance(3600.0)
    assert [rate.allows("a") for _ in range(4)] == [True, True, True, False]


def of(number: int, namespace: str = "shop") -> Caller:
    return Caller(namespace, "default", f"p{number}", f"u{number}", "a")


def test_agents_of_five_thousand_nodes_are_heard_whenever_they_ask() -> None:
    clock = Clock()
    intake = Intake(clock)
    for _ in range(3):
        assert all(intake.allows(of(node, "berth-system"), agent=True) for node in range(5000))
        clock.advance(PROBES_WAIT)


@pytest.mark.parametrize(
    ("pods", "agent", "heard"),
    [
        pytest.param(1, False, POD_BURST, id="one pod"),
        pytest.param(1, True, POD_BURST, id="one agent"),
        pytest.param(100, False, NAMESPACE_BURST, id="the pods of a namespace together"),
    ],
)
def test_who_says_too_much_is_not_heard(pods: int, agent: bool, heard: float) -> None:
    intake = Intake(Clock())
    assert sum(intake.allows(of(number % pods), agent=agent) for number in range(100 * pods)) == heard
    assert intake.allows(of(0, "elsewhere")._replace(uid="other"), agent=False), "others are"


@pytest.mark.parametrize(
    ("pods", "seconds"),
    [
        pytest.param(1, 5.0, id="one"),
        pytest.param(250, 5.0, id="as many as leave half of the rate to those in a hurry"),
        pytest.param(1000, 20.0, id="four times as many"),
        pytest.param(3000, 30.0, id="no more than so seldom"),
    ],
)
def test_many_pods_of_a_namespace_are_asked_to_tell_less_often(pods: int, seconds: float) -> None:
    clock = Clock()
    intake = Intake(clock)

    def heard() -> int:
        """How many are, of all that tell once within the interval that they were told."""
        found, pause = 0, intake.interval("shop") / pods
        for number in range(pods):
            found += intake.allows(of(number), agent=False)
            clock.advance(pause)
        return found

    heard()
    clock.advance(1.0)
    assert intake.interval("shop") == pytest.approx(seconds)
    assert intake.interval("elsewhere") == INTERVAL
    assert [heard(), heard()] == [pods, pods]


@pytest.mark.parametrize(
    ("pods", "seconds"),
    [
        pytest.param(0, 1.0, id="nobody else"),
        pytest.param(50, 1.0, id="few"),
        pytest.param(200, 4.0, id="more than can tell so often"),
    ],
)
def test_who_is_to_tell_more_often_does_where_there_are_few(pods: int, seconds: float) -> None:
    intake = Intake(Clock())
    for number in range(pods):
        intake.allows(of(number), agent=False)
    assert intake.interval("shop", 1.0) == pytest.approx(seconds)


def test_pods_that_are_gone_do_not_count() -> None:
    clock = Clock()
    intake = Intake(clock)
    for number in range(2000):
        intake.allows(of(number), agent=False)
    assert intake.interval("shop") > INTERVAL
    clock.advance(2 * LONGEST_INTERVAL + 1)
    assert intake.interval("shop") == INTERVAL
    assert len(intake._speakers) == 0, "a namespace without any is not remembered"


def test_node_agents_do_not_count() -> None:
    intake = Intake(Clock())
    assert all(intake.allows(of(number), agent=True) for number in range(2000))
    assert intake.interval("shop") == INTERVAL


@pytest.mark.parametrize(
    ("messages", "new"),
    [
        pytest.param([("i", 1), ("i", 2)], [True, True], id="one after the other"),
        pytest.param([("i", 1), ("i", 1)], [True, False], id="again"),
        pytest.param([("i", 2), ("i", 1)], [True, False], id="an older one"),
        pytest.param([("i", 9), ("j", 1)], [True, True], id="another process"),
    ],
)
def test_what_is_new(messages: list[tuple[str, int]], new: list[bool]) -> None:
    sequences = Sequences()
    assert [sequences.is_new("uid", *message) for message in messages] == new
    assert sequences.is_new("other", *messages[0])


def test_of_a_flood_of_users_those_who_were_served_last_are_heard() -> None:
    """A hundred messages a second of a thousand users each took the event loop more than three seconds."""
    clock = Clock()
    intake = Intake(clock)
    users = [UserRoundTrips(f"u{at}", (20_000,), float(at * 7 % 1000)) for at in range(1000)]
    assert len(intake.heard("shop", users)) == len(users)
    heard = [len(intake.heard("shop", users)) for _ in range(100)]
    assert sum(heard) <= USERS_BURST + 100 * LEAST_USERS
    assert sorted(user.age for user in intake.heard("shop", users)) == [float(at) for at in range(LEAST_USERS)]
    assert len(intake.heard("other", users)) == len(users), "another namespace"
    clock.advance(0.1)
    assert len(intake.heard("shop", users)) == USERS_RATE / 10
    assert len(intake.heard("shop", users[:3])) == 3
