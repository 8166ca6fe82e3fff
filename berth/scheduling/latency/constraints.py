"""The objective Constraints: a pod that is within the limits stays; one that is not goes where it is, if that is known.

Where no such node is known, those nobody has measured are tried one after another; a node that was tried is known, and
so none is tried twice.
"""

from __future__ import annotations

from berth.api.latencypolicy import Exploration, NodeState, NodeStatus
from berth.scheduling.latency.classification import LEAST_MARGIN, RANK, Limits, margin_between
from berth.scheduling.latency.situation import Pod, Reason, Situation, Wish, far, told


def find(situation: Situation) -> Wish | None:
    """Return the move that should be made next; None if all is well, or as well as is known."""
    free = situation.free()
    for pod, here in situation.movable():
        if here.state is not NodeState.SOFT_VALID:
            found = _within(pod, here, free, situation) or _unknown(pod, here, free, situation)
            found = found or _nearer(pod, here, free, situation)
            if found is not None:
                return found
    return None


def _within(pod: Pod, here: NodeStatus, free: list[NodeStatus], situation: Situation) -> Wish | None:
    """A node of a better state, the nearest of these."""
    better = [there for there in free if RANK[there.state] > RANK[here.state]]
    best = min(better, key=far, default=None)
    if best is None or far(best) > far(here) * (1 - LEAST_MARGIN):
        return None
    return Wish(pod, best.node, _reason(here), f"{_complaint(here, situation)}; {told(best)} is nearer", urgent=True)


def _unknown(pod: Pod, here: NodeStatus, free: list[NodeStatus], situation: Situation) -> Wish | None:
    """A node that nobody has measured, unless agents are just about to."""
    unknown = next(iter(situation.unmeasured(free)), None)
    if unknown is None or situation.awaiting or not situation.may(Exploration.MIGRATE):
        return None
    message = f"{_complaint(here, situation)}; no better node is known, and {unknown.node} is not measured"
    return Wish(pod, unknown.node, _reason(here), message, urgent=True)


def _nearer(pod: Pod, here: NodeStatus, free: list[NodeStatus], situation: Situation) -> Wish | None:
    """A node that is beyond the hard limit as well, and nearer."""
    known = [there for there in free if there.state is NodeState.INVALID]
    best = min(known, key=far, default=None)
    # One that becomes known in a moment may be within it, and a pod would go twice.
    if here.state is not NodeState.INVALID or best is None or situation.awaiting:
        return None
    improvement = situation.spec.moves.min_improvement_percent / 100
    if far(best) * (1 + margin_between(best.samples, here.samples)) > far(here) * (1 - improvement):
        return None
    message = f"{_complaint(here, situation)}; no node is known to be within it, and {told(best)} is nearer"
    return Wish(pod, best.node, Reason.NEARER, message, urgent=False)


def _reason(here: NodeStatus) -> Reason:
    return Reason.BEYOND_HARD_LIMIT if here.state is NodeState.INVALID else Reason.BEYOND_SOFT_LIMIT


def _complaint(here: NodeStatus, situation: Situation) -> str:
    limits = Limits.of(situation.spec)
    name, limit = ("hard", limits.hard) if here.state is NodeState.INVALID else ("soft", limits.soft)
    return f"{told(here)} is beyond the {name} limit of {limit / 1000:.0f} ms"
