"""Why a move ended before the old pod had gone, in words for people. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from berth.api.latencypolicy import LatencyPolicyStatus, Move
from berth.scheduling.latency import moves
from berth.scheduling.latency.set_back import as_of
from berth.scheduling.latency.situation import View

SCALED: str = "somebody has set the number of replicas"
"""Where the number is somebody else's by now."""


def why_given_up(status: LatencyPolicyStatus, view: View, now: datetime) -> dict[str, str]:
    """Return why each move that goes on would have been given up, by the pod that it is of.

    Args:
        status: what was remembered when it was decided.
        view: what was there.
        now: the time.
    """
    going = moves.open_moves(as_of(status, now))
    return {move.pod: _why(move, view, going, now) for move in going}


def _why(move: Move, view: View, going: Iterable[Move], now: datetime) -> str:
    there = {pod.name for pod in view.pods}
    if move.pod not in there:
        return f"{move.pod} is gone"
    if move.target_node not in view.nodes:
        return f"node {move.target_node} is gone"
    if moves.in_vain(move, view, going):
        return f"{move.target_node} takes no pod any more, and the new one is elsewhere"
    if not moves.overdue(move, view, now):
        return "by what is measured now it gains too little"
    if view.refused and move.new_pod is None:
        return f"no pod may be created: {view.refused}"
    new = moves.new_pod(move, view)
    if new is None:
        return f"no pod came to {move.target_node} in time"
    return f"{move.pod} was not gone in time" if new.ready else f"{new.name} was not ready in time"
