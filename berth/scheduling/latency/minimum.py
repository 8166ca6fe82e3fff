"""The objective Minimum: the nearest node, where it is proven to be nearer than what a pod has.

All nodes are measured before a pod moves, unless that takes moves: by probes, or by requests through them one after
another, and those again that might be the nearest. Where neither is possible, a pod goes to each once.
"""

from __future__ import annotations

from berth.api.latencypolicy import Exploration, NodeState, NodeStatus
from berth.scheduling.latency.classification import margin_between
from berth.scheduling.latency.moves import ENOUGH
from berth.scheduling.latency.situation import Pod, Reason, Situation, Steer, Wish, far, told


def find(situation: Situation) -> Wish | Steer | None:
    """Return the move that should be made next, or what should be measured before it; None if all is well."""
    pods, free = situation.movable(), situation.free()
    if not pods or situation.awaiting:
        return None
    pod, here = pods[0]
    unknown = situation.unmeasured(free)
    known = sorted((there for there in free if there.state is not NodeState.UNKNOWN), key=far)
    if situation.may(Exploration.STEER):
        contenders = unknown or _contenders(here, known, situation)
        if contenders:
            return Steer(min(contenders, key=lambda there: there.samples).node)
    elif unknown and situation.may(Exploration.MIGRATE):
        message = f"{told(here)}; {unknown[0].node} is not measured"
        return Wish(pod, unknown[0].node, Reason.EXPLORING, message, urgent=True)
    return _nearer(pod, here, known[0], situation) if known else None


def _nearer(pod: Pod, here: NodeStatus, best: NodeStatus, situation: Situation) -> Wish | None:
    if not _proven(best, here, situation):
        return None
    return Wish(pod, best.node, Reason.NEARER, f"{told(best)} is nearer than {told(here)}", urgent=False)


def _proven(best: NodeStatus, here: NodeStatus, situation: Situation) -> bool:
    wanted = far(here) * (1 - situation.spec.moves.min_improvement_percent / 100)
    return far(best) * (1 + margin_between(best.samples, here.samples)) <= wanted


def _contenders(here: NodeStatus, known: list[NodeStatus], situation: Situation) -> list[NodeStatus]:
    """Nodes measured once or twice that may be nearer than the best by as much as pays, before a pod goes there."""
    if not known or not _proven(known[0], here, situation):
        return []
    best, wanted = known[0], far(known[0]) * (1 - situation.spec.moves.min_improvement_percent / 100)
    rivals = [each for each in known[1:] if far(each) <= wanted * (1 + margin_between(each.samples, best.samples))]
    return [each for each in (best, *rivals) if each.samples < ENOUGH] if rivals else []
