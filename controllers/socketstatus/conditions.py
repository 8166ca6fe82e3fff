"""The condition Paired: its status, reasons and messages, each with what to do about it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from berth.api.base import format_timestamp
from berth.api.conditions import ConditionStatus, ConditionUpdate
from berth.api.socketstatus import CONDITION_PAIRED, REASON_UNABLE
from berth.api.text import counted, listed
from controllers.socketstatus.seats import Seats

_NOT_PINNED: Final = {
    "TopologyUnknown": "the sockets of the node are not known; see the condition TopologyUnknown. Nobody is moved",
    "ObserveOnly": "nobody pins on the node; see the condition ObserveOnly. Nobody is moved",
    REASON_UNABLE: "nobody pins on the node; see the condition Pinned. Nobody is moved",
}


def paired(seats: Seats, waits_until: datetime | None) -> ConditionUpdate:
    """Return the condition.

    Args:
        seats: who sits where.
        waits_until: when pods may change places that are to; None where none are.
    """
    problems = f"; {listed(seats.problems, separator='; ')}" if seats.problems else ""
    if seats.why_not:
        text = _NOT_PINNED[seats.why_not]
        return ConditionUpdate(CONDITION_PAIRED, ConditionStatus.UNKNOWN, seats.why_not, f"{text}{problems}")
    pairs = seats.pairs()
    if pairs:
        texts = [f"{one} and {other} disturb each other on socket {socket}" for socket, (one, other) in pairs]
        text = listed(texts, separator="; ")
        if waits_until is not None:
            text += f"; pods have moved or come a moment ago, and change places from {format_timestamp(waits_until)} on"
            return ConditionUpdate(CONDITION_PAIRED, False, "Waiting", f"{text}{problems}")
        text += "; no exchange of pods between sockets is worth its price"
        if held := seats.held():
            text += (
                f", and {listed(held)} stay where somebody has assigned them: take their assignments out to free them"
            )
        return ConditionUpdate(CONDITION_PAIRED, False, "Disturbed", f"{text}{problems}")
    if not seats.pods and not seats.problems:
        return ConditionUpdate(CONDITION_PAIRED, True, "NothingAssigned", "no pod with a class is assigned to a socket")
    text = f"of {counted(len(seats.pods), 'assigned pod')} no two on one socket disturb each other"
    return ConditionUpdate(CONDITION_PAIRED, True, "BadInput" if seats.problems else "Paired", f"{text}{problems}")
