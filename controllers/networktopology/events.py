"""Every Event that this controller writes about a NetworkTopology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from berth.api.conditions import Condition, ConditionUpdate
from berth.api.networktopology import (
    CONDITION_COMPLETE,
    CONDITION_SOURCE_AVAILABLE,
    CONDITION_WEIGHTS_COMPUTED,
)
from berth.kube.events import Note, Reference
from controllers.networktopology.sources.base import REASON_CLOCKS_DIFFER, REASON_PARTLY_USABLE

_ACTIONS: Final[Mapping[str, str]] = {
    CONDITION_SOURCE_AVAILABLE: "ReadSource",
    CONDITION_WEIGHTS_COMPUTED: "ComputeWeights",
    CONDITION_COMPLETE: "CheckCosts",
}


def weights_updated(regarding: Reference, computed: ConditionUpdate) -> Note:
    """Normal: computed weight sets were written; the message says which and from what."""
    return Note(regarding, "WeightsUpdated", computed.message, "ComputeWeights")


def weights_removed(regarding: Reference, names: Iterable[str]) -> Note:
    """Warning: computed weight sets were taken out because nothing is left to compute them from."""
    text = f"Removed {', '.join(sorted(names))}: there is nothing left to compute from"
    return Note(regarding, "WeightsRemoved", text, "ComputeWeights", warning=True)


def write_refused(regarding: Reference, problem: str) -> Note:
    """Warning: the API server refused the computed weight sets."""
    return Note(regarding, "WeightsRefused", problem, "ComputeWeights", warning=True)


def condition_changes(
    regarding: Reference, before: Iterable[Condition], updates: Iterable[ConditionUpdate]
) -> list[Note]:
    """Return a note for every condition whose status or reason is new; one that is fine from the start is no news.

    A warning where something is missing or unusable, Normal where it is fine again.
    """
    known = {condition.type: condition for condition in before}
    notes = []
    for update in updates:
        past = known.get(update.type)
        troubled = update.status is not True or update.reason in (REASON_CLOCKS_DIFFER, REASON_PARTLY_USABLE)
        if troubled if past is None else past.reason != update.reason:
            notes.append(Note(regarding, update.reason, update.message, _ACTIONS[update.type], warning=troubled))
    return notes
