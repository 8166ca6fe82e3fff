"""Conditions: what a controller says about an object, in metav1.Condition's form."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import Field

from berth.api.base import ApiModel, Int64, Timestamp

MAX_MESSAGE: Final = 32768
"""Longest message of a condition, in characters (metav1.Condition)."""
MAX_REASON: Final = 1024
"""Longest reason of a condition, in characters (metav1.Condition)."""
MAX_TYPE: Final = 316
"""Longest type of a condition, in characters (metav1.Condition)."""


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(ApiModel):
    """One aspect of an object's state."""

    type: str = Field(description="Aspect that the condition is about, in CamelCase.", max_length=MAX_TYPE)
    status: ConditionStatus = Field(description="Whether the condition holds: True, False or Unknown.")
    observed_generation: Int64 = Field(
        default=0, ge=0, description="Generation of the object's spec that the condition was computed from."
    )
    last_transition_time: Timestamp = Field(description="When the status last changed.")
    reason: str = Field(
        description="Cause of the status as one word in CamelCase, for programs.", min_length=1, max_length=MAX_REASON
    )
    message: str = Field(description="Cause of the status in a sentence, for people.", max_length=MAX_MESSAGE)


def find_condition(conditions: Iterable[Condition], condition_type: str) -> Condition | None:
    """Return the condition of the given type, or None."""
    return next((item for item in conditions if item.type == condition_type), None)


def is_true(conditions: Iterable[Condition], condition_type: str) -> bool:
    """Return whether the condition of the given type is present and True."""
    found = find_condition(conditions, condition_type)
    return found is not None and found.status is ConditionStatus.TRUE


def set_condition(
    conditions: Iterable[Condition],
    *,
    condition_type: str,
    status: ConditionStatus | bool,
    reason: str,
    message: str,
    observed_generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """Return ``conditions`` with one condition set, its place in the order kept.

    ``last_transition_time`` becomes ``now`` only when the status changes, so writing the same
    state again yields an equal list and needs no API call. A message too long for the API is cut.
    """
    if isinstance(status, bool):
        status = ConditionStatus.TRUE if status else ConditionStatus.FALSE
    current = list(conditions)
    previous = find_condition(current, condition_type)
    kept = previous is not None and previous.status is status
    updated = Condition(
        type=condition_type,
        status=status,
        observed_generation=observed_generation,
        last_transition_time=previous.last_transition_time if previous is not None and kept else now,
        reason=reason,
        message=message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…",
    )
    if previous is None:
        return (*current, updated)
    return tuple(updated if item.type == condition_type else item for item in current)
