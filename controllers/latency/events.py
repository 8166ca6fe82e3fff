"""Every Event that this controller writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from berth.api.conditions import Condition, ConditionUpdate, find_condition
from berth.api.latencypolicy import (
    API_VERSION,
    CONDITION_WORKING,
    KIND,
    LatencyPolicy,
    LatencyPolicyStatus,
    Move,
    Outcome,
    Surge,
)
from berth.api.text import counted
from berth.kube.events import Note, Reference
from berth.scheduling.latency.moves import OPEN

NOT_MEASURED: Final = "NotMeasured"
"""Reason of a policy of whose users nobody has told yet, as of every new one."""
_ACTION: Final = "MovePods"


def about(policy: LatencyPolicy) -> Reference:
    """Return what Events about a policy refer to."""
    metadata = policy.metadata
    return Reference(API_VERSION, KIND, metadata.namespace, metadata.name, metadata.uid)


def news(
    policy: LatencyPolicy, status: LatencyPolicyStatus, updates: Iterable[ConditionUpdate], why: Mapping[str, str]
) -> list[Note]:
    """Return what is new in a status.

    Args:
        policy: the policy, with its status before.
        status: its status now.
        updates: its conditions now.
        why: why moves were given up, by the names of their pods.
    """
    reference, before = about(policy), policy.status
    found = [note for each in updates for note in condition_changed(reference, before.conditions, each)]
    return [*found, *move_news(reference, before.moves, status.moves, why)]


def move_news(
    regarding: Reference, before: Sequence[Move], after: Sequence[Move], why: Mapping[str, str]
) -> list[Note]:
    """Return what is new of moves: one has begun, or has ended, with what it gained, or why: by its pod."""
    known = {(move.pod, move.start_time): move for move in before}
    notes: list[Note] = []
    for move in after:
        past = known.get((move.pod, move.start_time))
        way = f"{move.pod} from {move.source_node} to {move.target_node}"
        if past is None:
            notes.append(Note(regarding, "MoveBegun", f"{way}, {move.reason}{_figures(move)}", _ACTION))
        elif past.outcome is not move.outcome and move.outcome not in OPEN:
            warning = move.outcome in (Outcome.DISAPPOINTED, Outcome.CANCELLED)
            because = why.get(move.pod) if move.outcome is Outcome.CANCELLED else None
            text = f"{way}{_figures(move)}" + (f"; {because}" if because else "")
            notes.append(Note(regarding, f"Move{move.outcome}", text, _ACTION, warning))
    return notes


def eviction_refused(regarding: Reference, pod: str, why: str) -> Note:
    """Warning, about the policy: a pod that should go may not be evicted; it is tried again."""
    return Note(regarding, "EvictionRefused", f"{pod} cannot be evicted, it is tried again: {why}", _ACTION, True)


def taken_over(regarding: Reference, wanted: int, found: int) -> Note:
    """Warning, about the policy: somebody else has set the number of replicas while a pod was moving."""
    text = (
        f"The number of replicas was set to {found} while a pod was moving, for which it was {wanted}; the move is "
        "given up, the number stays"
    )
    return Note(regarding, "ReplicasChanged", text, _ACTION, True)


def scaling_refused(regarding: Reference, wanted: int, why: str) -> Note:
    """Warning, about the policy: the number of replicas may not be set; it is tried again while it is wanted."""
    return Note(regarding, "ScalingRefused", f"There should be {counted(wanted, 'replica')}; {why}", _ACTION, True)


def resized(regarding: Reference, surge: Surge, before: int, users: int) -> list[Note]:
    """About the policy: there are to be more pods, or one less, because of the users."""
    after = surge.replicas - (surge.leaving is not None)
    if after == before:
        return []
    text = f"From {before} to {counted(after, 'pod')}, for {counted(users, 'user')}"
    return [Note(regarding, "ReplicasFollowUsers", text, _ACTION)]


def condition_changed(regarding: Reference, before: Iterable[Condition], update: ConditionUpdate) -> list[Note]:
    """Return a note if the reason of the condition Working is new and it is false; no warning of how each begins."""
    past = find_condition(before, update.type)
    if update.type != CONDITION_WORKING or update.status or (past is not None and past.reason == update.reason):
        return []
    return [Note(regarding, update.reason, update.message, _ACTION, warning=update.reason != NOT_MEASURED)]


def _figures(move: Move) -> str:
    named = (
        ("before", move.before_microseconds),
        ("expected", move.expected_microseconds),
        ("after", move.after_microseconds),
    )
    texts = [f"{name} {value / 1000:.1f} ms" for name, value in named if value is not None]
    return f": {', '.join(texts)}" if texts else ""
