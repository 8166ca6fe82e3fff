"""Every Event that the appgroup controller can emit, as constructors."""

from __future__ import annotations

from typing import Final

from berth.api.appgroup import CONDITION_ORDERED, AppGroupStatus
from berth.api.conditions import find_condition
from berth.api.text import counted
from berth.kube.events import Note, Reference
from controllers.appgroup.plan import SpecPlan

ACTION: Final = "Ordering"
"""What the controller was doing, in every one of its Events."""


def ordered(regarding: Reference, status: AppGroupStatus) -> Note:
    """A new order was written."""
    count = counted(len(status.topology_order), "workload")
    message = f"{count} ordered by {status.algorithm}: {status.order_summary or 'none'}"
    return Note(regarding, "Ordered", message, ACTION)


def cycle_detected(regarding: Reference, message: str) -> Note:
    """The dependencies have cycles; the order inside them is the declaration's."""
    return Note(regarding, "CycleDetected", message, ACTION, warning=True)


def spec_problems(regarding: Reference, message: str) -> Note:
    """The spec has an order, but something in it makes no sense; the message says how that is read."""
    return Note(regarding, "SpecProblems", message, ACTION, warning=True)


def not_ordered(regarding: Reference, reason: str, message: str) -> Note:
    """There is no order for the spec: InvalidSpec or OrderTooLarge."""
    return Note(regarding, reason, message, ACTION, warning=True)


def notes(regarding: Reference, plan: SpecPlan, *, before: AppGroupStatus, after: AppGroupStatus) -> list[Note]:
    """Return what the step from one status to the next is worth telling: the order and trouble with the spec."""
    result = []
    if plan.valid and (before.topology_order, before.algorithm) != (after.topology_order, after.algorithm):
        result.append(ordered(regarding, after))
    was = find_condition(before.conditions, CONDITION_ORDERED)
    now = find_condition(after.conditions, CONDITION_ORDERED)
    if now is None or (was is not None and (was.reason, was.message) == (now.reason, now.message)):
        return result
    if not plan.valid:
        result.append(not_ordered(regarding, now.reason, now.message))
    elif plan.remarks:
        result.append(spec_problems(regarding, now.message))
    elif plan.cycles:
        result.append(cycle_detected(regarding, now.message))
    return result
