"""Conditions: what a controller says about an object, in metav1.Condition's form."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from pydantic import Field

from berth.api.base import ApiModel, Int64, TimestampOrLongAgo
from berth.api.text import on_one_line, shortened

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
    last_transition_time: TimestampOrLongAgo = Field(description="When the status last changed.")
    reason: str = Field(
        description="Cause of the status as one word in CamelCase, for programs.", min_length=1, max_length=MAX_REASON
    )
    message: str = Field(description="Cause of the status in a sentence, for people.", max_length=MAX_MESSAGE)


class ConditionUpdate(NamedTuple):
    """What a controller has to say about one aspect of an object."""

    type: str
    """type of the condition"""
    status: ConditionStatus | bool
    """whether it holds"""
    reason: str
    """one word in CamelCase, for programs"""
    message: str
    """a sentence, for people"""


def find_condition(conditions: Iterable[Condition], condition_type: str) -> Condition | None:
    """Return the condition of the given type, or None."""
    return next((item for item in conditions if item.type == condition_type), None)


def apply(
    conditions: Iterable[Condition], updates: Iterable[ConditionUpdate], *, observed_generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return ``conditions`` with the updates made, each in its place; new types come last.

    ``last_transition_time`` becomes ``now`` only when the status changes, so the same updates again yield an equal
    list and need no API call. What a message quotes stays on its line, and one too long for the API is cut.
    """
    result = {condition.type: condition for condition in conditions}
    for update in updates:
        status = update.status
        if isinstance(status, bool):
            status = ConditionStatus.TRUE if status else ConditionStatus.FALSE
        previous = result.get(update.type)
        kept = previous is not None and previous.status is status
        result[update.type] = Condition(
            type=update.type,
            status=status,
            observed_generation=observed_generation,
            last_transition_time=previous.last_transition_time if previous is not None and kept else now,
            reason=update.reason,
            message=shortened(on_one_line(update.message), MAX_MESSAGE),
        )
    return tuple(result.values())
