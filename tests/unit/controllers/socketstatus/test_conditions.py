"""The condition Paired: what it says, and what to do about it; and when that is an Event."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from berth.api.conditions import ConditionStatus, ConditionUpdate, apply
from berth.api.socketstatus import CONDITION_PAIRED
from berth.kube.events import Reference
from controllers.socketstatus.conditions import paired
from controllers.socketstatus.events import condition_changed
from controllers.socketstatus.seats import Seats
from tests.support.seats import node, pod, seats, status

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NO_EXCHANGE = "no exchange of pods between sockets is worth its price"
HELD = "default/d stay where somebody has assigned them: take their assignments out to free them"
DISTURB = "default/d (D) and default/e (D) disturb each other on socket 0"


def two(first: str, second: str, *movable: str, **fields: Any) -> Seats:
    return seats(status({"d": 0, "e": 0}, **fields), node(pod("d", first), pod("e", second)), *movable)


@pytest.mark.parametrize(
    ("found", "waits", "expected"),
    [
        pytest.param(
            two("A", "D"), None, (True, "Paired", "of 2 assigned pods no two on one socket disturb each other"), id="ok"
        ),
        pytest.param(
            seats(status({}), node()),
            None,
            (True, "NothingAssigned", "no pod with a class is assigned to a socket"),
            id="none",
        ),
        pytest.param(
            two("D", "D", "d", "e"),
            None,
            (False, "Disturbed", f"{DISTURB}; {NO_EXCHANGE}"),
            id="nothing to do",
        ),
        pytest.param(
            two("D", "D", "e"),
            None,
            (
                False,
                "Disturbed",
                f"{DISTURB}; {NO_EXCHANGE}, and {HELD}",
            ),
            id="held",
        ),
        pytest.param(
            two("D", "D", "d", "e"),
            NOW,
            (
                False,
                "Waiting",
                f"{DISTURB}; pods have moved or come a moment ago, and change places from 2026-01-31T12:00:00Z on",
            ),
            id="too early",
        ),
        pytest.param(
            two("D", "D", true=["ObserveOnly"]),
            None,
            (
                ConditionStatus.UNKNOWN,
                "ObserveOnly",
                "nobody pins on the node; see the condition ObserveOnly. Nobody is moved",
            ),
            id="nobody pins",
        ),
        pytest.param(
            two("D", "D", unpinned="Unable"),
            None,
            (
                ConditionStatus.UNKNOWN,
                "Unable",
                "nobody pins on the node; see the condition Pinned. Nobody is moved",
            ),
            id="the agent has ended",
        ),
    ],
)
def test_what_it_says(found: Seats, waits: datetime | None, expected: tuple[Any, ...]) -> None:
    assert paired(found, waits) == (CONDITION_PAIRED, *expected)


def test_what_makes_no_sense_is_always_told() -> None:
    assert paired(two("A", "E"), None).reason == "BadInput"
    odd = seats(status({"d": 0, "e": 0, "x": 0}), node(pod("d", "D"), pod("e", "D"), pod("x", "E")))
    update = paired(odd, None)
    assert (update.reason, '"E" is no interference class' in update.message) == ("Disturbed", True)


def update(reason: str, status: bool = True) -> ConditionUpdate:
    return ConditionUpdate(CONDITION_PAIRED, status, reason, "text")


@pytest.mark.parametrize(
    ("before", "now", "warning"),
    [
        pytest.param(None, update("Paired"), None, id="fine from the start"),
        pytest.param(None, update("Disturbed", False), True, id="disturbed from the start"),
        pytest.param(update("Paired"), update("Disturbed", False), True, id="disturbed"),
        pytest.param(update("Disturbed", False), update("Paired"), False, id="fine again"),
        pytest.param(update("Disturbed", False), update("Disturbed", False), None, id="as before"),
        pytest.param(update("Disturbed", False), update("Unable"), None, id="the agent ends"),
        pytest.param(update("Unable"), update("Paired"), None, id="it is there again"),
        pytest.param(update("Unable"), update("Disturbed", False), True, id="it is there again, and they disturb"),
    ],
)
def test_when_it_is_an_event(before: ConditionUpdate | None, now: ConditionUpdate, warning: bool | None) -> None:
    conditions = apply((), [before] if before else [], observed_generation=1, now=NOW)
    notes = condition_changed(Reference("v1", "SocketStatus", "", "n1", "u"), conditions, now)
    assert [note.warning for note in notes] == ([] if warning is None else [warning])
