"""The conditions of a LatencyPolicy, and the figures beside them: each with what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from berth.api.conditions import ConditionStatus, ConditionUpdate
from berth.api.latencypolicy import (
    CONDITION_MOVING,
    CONDITION_WITHIN_LIMITS,
    CONDITION_WORKING,
    LatencyPolicySpec,
    LatencyPolicyStatus,
    NodeState,
    NodeStatus,
    Objective,
    Outcome,
)
from berth.api.text import counted, listed
from berth.scheduling.latency.classification import RANK
from berth.scheduling.latency.knowledge import by_name
from berth.scheduling.latency.moves import HOUR, may_begin, open_moves
from berth.scheduling.latency.situation import View, Wish, far, told
from controllers.latency.workloads import Obstacle


class Facts(NamedTuple):
    """What conditions are made of."""

    spec: LatencyPolicySpec
    """what is wanted"""
    status: LatencyPolicyStatus
    """what is known"""
    view: View
    """what is there"""
    users: bool
    """whether users were served lately"""
    wish: Wish | None
    """move that should be made"""
    refusals: Mapping[str, str]
    """why pods could not be evicted, by name"""
    now: datetime
    """the time"""


def obstructed(obstacle: Obstacle) -> list[ConditionUpdate]:
    """Return the conditions of a policy that cannot be carried out."""
    unknown = ConditionUpdate(CONDITION_WITHIN_LIMITS, ConditionStatus.UNKNOWN, obstacle.reason, obstacle.message)
    idle = ConditionUpdate(CONDITION_MOVING, False, obstacle.reason, "nothing is moved; see the condition Working")
    return [ConditionUpdate(CONDITION_WORKING, False, obstacle.reason, obstacle.message), unknown, idle]


def conditions(facts: Facts) -> list[ConditionUpdate]:
    """Return the conditions of a policy that is carried out."""
    return [_working(facts), _within_limits(facts), _moving(facts)]


def figures(status: LatencyPolicyStatus, view: View, now: datetime) -> dict[str, object]:
    """Return the fields of a status that are for people: how pods are off, and how much they moved."""
    nodes = _of_pods(status, view)
    states = Counter(known.state for known in nodes)
    texts = [
        f"{state} {states[state]}" if len(nodes) > 1 else str(state) for state in sorted(states, key=RANK.__getitem__)
    ]
    farthest = max((far(known) for known in nodes), default=0)
    return {
        "state": ", ".join(texts) or None,
        "p50": f"{farthest / 1000:.1f} ms" if farthest else None,
        "moves_last_hour": sum(now - move.start_time < HOUR for move in status.moves),
    }


def _of_pods(status: LatencyPolicyStatus, view: View) -> list[NodeStatus]:
    known = by_name(status)
    return [known.get(pod.node) or NodeStatus(node=pod.node) for pod in view.pods if pod.node]


def _working(facts: Facts) -> ConditionUpdate:
    if not any(known.time for known in facts.status.nodes):
        message = "nobody has told yet how far users are; if it stays so, the pods have no latency meter"
        return ConditionUpdate(CONDITION_WORKING, False, "NotMeasured", message)
    if not facts.users:
        message = "no user was heard of lately; nothing is moved"
        return ConditionUpdate(CONDITION_WORKING, True, "NoUsers", message)
    nodes = sum(known.state is not NodeState.UNKNOWN for known in facts.status.nodes)
    message = f"{nodes} of {counted(len(facts.view.nodes), 'node')} are measured"
    return ConditionUpdate(CONDITION_WORKING, True, "Measuring", message)


def _within_limits(facts: Facts) -> ConditionUpdate:
    nodes = _of_pods(facts.status, facts.view)
    worst = min(nodes, key=lambda known: (RANK[known.state], -far(known)), default=None)
    if worst is None or worst.state is NodeState.UNKNOWN:
        message = "not all nodes with pods are measured" if nodes else "no pod has a node"
        return ConditionUpdate(CONDITION_WITHIN_LIMITS, ConditionStatus.UNKNOWN, "NotMeasured", message)
    texts = listed([told(known) for known in sorted(nodes, key=far, reverse=True)])
    if worst.state is NodeState.INVALID:
        return ConditionUpdate(CONDITION_WITHIN_LIMITS, False, "BeyondHardLimit", _and_what_next(facts, texts))
    if worst.state is NodeState.HARD_VALID:
        return ConditionUpdate(CONDITION_WITHIN_LIMITS, False, "BeyondSoftLimit", _and_what_next(facts, texts))
    if facts.spec.objective is Objective.MINIMUM and facts.wish is not None:
        return ConditionUpdate(CONDITION_WITHIN_LIMITS, True, "NearerIsKnown", f"{texts}; {facts.wish.message}")
    return ConditionUpdate(CONDITION_WITHIN_LIMITS, True, "Within", texts)


def _and_what_next(facts: Facts, texts: str) -> str:
    if open_moves(facts.status):
        return f"{texts}; a pod is moving"
    if facts.wish is not None:
        return f"{texts}; {facts.wish.message}"
    return f"{texts}; no better node with room is known"


def _moving(facts: Facts) -> ConditionUpdate:
    going = open_moves(facts.status)
    if going:
        refused = [facts.refusals[move.pod] for move in going if move.pod in facts.refusals]
        text = listed([f"{move.pod} from {move.source_node} to {move.target_node}" for move in going])
        if refused:
            return ConditionUpdate(CONDITION_MOVING, True, "EvictionRefused", f"{text}; {listed(refused)}")
        outcome = min((move.outcome for move in going), key=_ORDER.index)
        return ConditionUpdate(CONDITION_MOVING, True, outcome.value, text)
    if facts.wish is None:
        return ConditionUpdate(CONDITION_MOVING, False, "Idle", "no move is due")
    wish = facts.wish
    text = f"{wish.pod.name} would go from {wish.pod.node} to {wish.node}: {wish.message}"
    if facts.spec.moves.dry_run:
        return ConditionUpdate(CONDITION_MOVING, False, "DryRun", f"{text}; moves.dryRun keeps it")
    may = may_begin(facts.status, facts.spec, facts.now)
    if not facts.spec.moves.max_per_hour or (may is not None and may > facts.now):
        return ConditionUpdate(CONDITION_MOVING, False, "TooManyMoves", f"{text}; moves.maxPerHour are used up")
    return ConditionUpdate(CONDITION_MOVING, False, "Waiting", f"{text}; it waits for the cool-down, or for room")


_ORDER: Sequence[Outcome] = (Outcome.CREATING, Outcome.TRYING, Outcome.EVICTING)
