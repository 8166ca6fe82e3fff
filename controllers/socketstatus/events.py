"""Every Event that this controller writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from berth.api.conditions import Condition, ConditionUpdate, find_condition
from berth.api.socketstatus import REASON_UNABLE, Assignment
from berth.api.text import listed
from berth.kube.events import Note, Reference
from berth.scheduling.interference.exchange import Exchange

_FINE: Final = ("Paired", "NothingAssigned", "ObserveOnly", "TopologyUnknown")
"""Reasons that need nobody to do anything, or that the agent tells."""


def socket_changed(node: str, assignment: Assignment, socket: int, exchange: Exchange) -> Note:
    """Normal, about the pod: it moves to another socket; the message says what for."""
    text = (
        f"Moved from socket {assignment.socket} to {socket} of {node}: the pods of both are expected to be slower by "
        f"{exchange.before.excess:.2f} in all before, and by {exchange.after.excess:.2f} after"
    )
    regarding = Reference("v1", "Pod", assignment.namespace, assignment.name, assignment.uid)
    return Note(regarding, "SocketChanged", text, "PairPods")


def assignments_removed(regarding: Reference, gone: Sequence[Assignment], why: str) -> Note:
    """Normal, about the SocketStatus: assignments were taken out; `why` says it of each pod."""
    names = listed([f"{each.namespace}/{each.name} ({each.uid})" for each in gone])
    return Note(regarding, "AssignmentsRemoved", f"Taken out, {why}: {names}", "PairPods")


def condition_changed(regarding: Reference, before: Iterable[Condition], update: ConditionUpdate) -> list[Note]:
    """Return a note if the reason is new; what is fine from the start is no news. A warning where pods disturb.

    Nor is it that agents end, as all do when their DaemonSet is updated.
    """
    past = find_condition(before, update.type)
    if update.reason == REASON_UNABLE:
        return []
    if past is not None and past.reason == REASON_UNABLE:
        past = None
    troubled = update.reason not in _FINE
    if troubled if past is None else past.reason != update.reason:
        return [Note(regarding, update.reason, update.message, "PairPods", warning=troubled)]
    return []
