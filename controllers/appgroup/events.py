"""Every Event that the appgroup controller can emit, as constructors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from berth.api.appgroup import API_VERSION, CONDITION_ORDERED, KIND, AppGroupStatus
from berth.api.conditions import find_condition
from berth.kube.events import Note, Reference
from controllers.appgroup.plan import SpecPlan
from controllers.appgroup.words import describe_cycles

ACTION: Final = "Ordering"
"""What the controller was doing, in every one of its Events."""


def reference(document: Mapping[str, Any]) -> Reference:
    """Return the reference to a raw AppGroup."""
    metadata = document["metadata"]
    return Reference(API_VERSION, KIND, metadata.get("namespace", ""), metadata["name"], metadata.get("uid", ""))


def ordered(regarding: Reference, status: AppGroupStatus) -> Note:
    """A new order was written."""
    message = f"{len(status.topology_order)} workloads ordered by {status.algorithm}: {status.order_summary or 'none'}"
    return Note(regarding, "Ordered", message, ACTION)


def cycle_detected(regarding: Reference, plan: SpecPlan) -> Note:
    """The dependencies have cycles; the order inside them is the declaration's."""
    message = (
        f"{describe_cycles(plan.cycles)}; workloads that depend on each other are ordered as declared; remove a "
        "dependency of each cycle if their order matters"
    )
    return Note(regarding, "CycleDetected", message, ACTION, warning=True)


def not_ordered(regarding: Reference, plan: SpecPlan, message: str) -> Note:
    """There is no order for the spec: InvalidSpec or OrderTooLarge."""
    return Note(regarding, plan.reason, message, ACTION, warning=True)


def notes(regarding: Reference, plan: SpecPlan, *, before: AppGroupStatus, after: AppGroupStatus) -> list[Note]:
    """Return what the step from one status to the next is worth telling: the order and trouble with the spec."""
    was = find_condition(before.conditions, CONDITION_ORDERED)
    now = find_condition(after.conditions, CONDITION_ORDERED)
    said_before = was is not None and now is not None and (was.reason, was.message) == (now.reason, now.message)
    if not plan.valid:
        return [] if said_before or now is None else [not_ordered(regarding, plan, now.message)]
    result = []
    if before.topology_order != after.topology_order or before.algorithm != after.algorithm:
        result.append(ordered(regarding, after))
    if plan.cycles and not said_before:
        result.append(cycle_detected(regarding, plan))
    return result
