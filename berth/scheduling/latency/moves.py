"""Moves: how many may begin, how far each is, and what it gained."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from berth.api.latencypolicy import (
    MAX_MOVES,
    LatencyPolicySpec,
    LatencyPolicyStatus,
    MeasurementSource,
    Move,
    NodeState,
    NodeStatus,
    Outcome,
)
from berth.scheduling.latency.classification import LEAST_MARGIN
from berth.scheduling.latency.knowledge import by_name, reject, whole
from berth.scheduling.latency.situation import Pod, Reason, View

HOUR: Final = timedelta(hours=1)
"""Over what the number of moves is bounded."""
PATIENCE: Final = timedelta(minutes=5)
"""How long a new pod may take to become ready, and an old one to go."""
ENOUGH: Final = 3
"""Round trips on the new node after which a move is judged."""
LIE: Final = 1.25
"""By which factor a node may be farther than it seemed before it is remembered as bad."""
TRIAL: Final = timedelta(seconds=15)
"""How long a new pod on a node that nobody had measured has to serve somebody before the old one goes in any case."""
HELD: Final = timedelta(minutes=1)
"""How long an old pod that serves stays where fewer others serve than should: one that was restarted is back by then,
and one that is broken for good keeps none from moving."""
OPEN: Final = frozenset({Outcome.CREATING, Outcome.TRYING, Outcome.EVICTING})
"""Outcomes of moves that go on."""


def open_moves(status: LatencyPolicyStatus) -> tuple[Move, ...]:
    """Return the moves that go on."""
    return tuple(move for move in status.moves if move.outcome in OPEN)


def may_begin(status: LatencyPolicyStatus, spec: LatencyPolicySpec, now: datetime) -> datetime | None:
    """Return from when on another move may begin, as far as its number is bounded; None while others have to end."""
    if len(open_moves(status)) >= spec.moves.max_concurrent or not spec.moves.max_per_hour:
        return None
    begun = sorted((move.start_time for move in counted(status)), reverse=True)[: spec.moves.max_per_hour]
    return begun[-1] + HOUR if len(begun) == spec.moves.max_per_hour and now < begun[-1] + HOUR else now


def counted(status: LatencyPolicyStatus) -> tuple[Move, ...]:
    """Return the moves that count against the number that is allowed: those for which a pod may be created."""
    return tuple(move for move in status.moves if not move.refused)


def cool_at(status: LatencyPolicyStatus, spec: LatencyPolicySpec) -> datetime | None:
    """Return when the cool-down after the last move ends; None: nothing was moved."""
    times = [move.ready_time or move.start_time for move in status.moves]
    return max(times) + timedelta(seconds=spec.moves.cool_down_seconds) if times else None


def begin(status: LatencyPolicyStatus, move: Move) -> LatencyPolicyStatus:
    """Return the status with one more move; it keeps the last 64.

    Of those that were refused none but the last is kept: a quota that stands for hours would push out all others.
    """
    last = next((each for each in reversed(status.moves) if each.refused), None)
    kept = (each for each in status.moves if not each.refused or each is last)
    return status.model_copy(update={"moves": (*kept, move)[-MAX_MOVES:]})


def replace(status: LatencyPolicyStatus, move: Move, **fields: object) -> LatencyPolicyStatus:
    """Return the status with fields of a move changed."""
    changed = move.model_copy(update=fields)
    return status.model_copy(update={"moves": tuple(changed if each is move else each for each in status.moves)})


def judge(status: LatencyPolicyStatus, now: datetime, *, remember: bool = True) -> LatencyPolicyStatus:
    """Return the status with moves judged whose new node is measured: what was no gain is remembered as bad.

    Args:
        status: with the moves.
        now: the time.
        remember: whether such a node is left alone for a while.
    """
    nodes = by_name(status)
    for move in status.moves:
        known = nodes.get(move.target_node)
        if move.outcome is not Outcome.MOVED or known is None or not _is_told(move, known):
            continue
        bad = disappoints(move, known)
        outcome = Outcome.DISAPPOINTED if bad else Outcome.CONFIRMED
        status = replace(status, move, outcome=outcome, after_microseconds=known.p50_microseconds)
        status = reject(status, move.target_node, now) if bad and remember else status
    return status


def new_pod(move: Move, view: View) -> Pod | None:
    """Return the new pod of a move, the one that is known if it is there still; None while there is none."""
    there = [pod for pod in view.pods if pod.node == move.target_node and pod.name != move.pod]
    return min(there, key=lambda pod: pod.name != move.new_pod, default=None)


def is_taken(move: Move, view: View) -> bool:
    """Return whether the new pod that is known is not there, whether or not another has come in its place."""
    found = new_pod(move, view)
    return found is None or move.new_pod not in (None, found.name)


def overdue(move: Move, view: View, now: datetime) -> bool:
    """Return whether a move takes too long: since its new pod was ready if that is there, else since it began."""
    since = None if is_taken(move, view) else move.ready_time
    return whole(now) - (since or move.start_time) >= PATIENCE + view.settles


def in_vain(move: Move, view: View, going: Iterable[Move]) -> bool:
    """Return whether no pod will come to the node of a move: it is gone, or takes none and the new pod is elsewhere.

    While no users are known nodes are not looked at: that there is no candidate says nothing.

    Args:
        move: the move.
        view: what is there.
        going: all moves that go on: those with both pods there have one more each.
    """
    if move.target_node not in view.nodes:
        return True
    asked = bool(view.candidates) or view.active
    if not asked or move.target_node in view.candidates or new_pod(move, view) is not None:
        return False
    names = {pod.name for pod in view.pods}
    both = sum(each.pod in names and new_pod(each, view) is not None for each in going)
    return sum(bool(pod.node) for pod in view.pods) > view.replicas + both


def look_at(status: LatencyPolicyStatus, settles: timedelta) -> list[datetime]:
    """Return when time alone may change something for moves that go on; some of it is over."""
    going = open_moves(status)
    since = [move.ready_time for move in going if move.ready_time is not None]
    return [
        *((move.ready_time or move.start_time) + PATIENCE + settles for move in going),
        *(time + delay for time in since for delay in (TRIAL, settles, settles + HELD)),
    ]


def is_held(ready_time: datetime, now: datetime) -> bool:
    """Return whether the old pod of a move stays where fewer others serve than should; `ready_time` of the new pod."""
    return now - ready_time < HELD


def on_trial(move: Move, known: NodeStatus | None, now: datetime) -> bool:
    """Return whether a node is being tried: nobody knew how far it is, and its new pod has served nobody yet."""
    if move.expected_microseconds is not None or move.reason == Reason.MORE_USERS:
        return False
    if known is not None and known.state is not NodeState.UNKNOWN and served_since(move, known):
        return False
    return move.ready_time is None or whole(now) - move.ready_time < TRIAL


def served_since(move: Move, known: NodeStatus) -> bool:
    """Return whether users were served on the new node since the old pod was to go, or since the move began."""
    if known.source is not MeasurementSource.METER or known.time is None:
        return False
    return known.time >= (move.ready_time or move.start_time)


def _is_told(move: Move, known: NodeStatus) -> bool:
    """Users were served on the new node often enough; once is enough where it is beyond the hard limit."""
    return served_since(move, known) and (known.samples >= ENOUGH or known.state is NodeState.INVALID)


def disappoints(move: Move, known: NodeStatus) -> bool:
    """Return whether a node is farther than it seemed, or no gain."""
    after = known.p50_microseconds or 0
    if move.expected_microseconds is not None and after > LIE * move.expected_microseconds:
        return True
    return move.before_microseconds is not None and after > move.before_microseconds * (1 - LEAST_MARGIN)
