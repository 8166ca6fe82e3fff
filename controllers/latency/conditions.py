"""The conditions of a LatencyPolicy, and the figures beside them: each with what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median_low
from typing import NamedTuple

from berth.api.base import format_timestamp
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
from berth.scheduling.latency.classification import LEAST_MARGIN, RANK, Limits
from berth.scheduling.latency.decision import has_room
from berth.scheduling.latency.knowledge import by_name
from berth.scheduling.latency.moves import HOUR, cool_at, may_begin, open_moves
from berth.scheduling.latency.moves import counted as counted_moves
from berth.scheduling.latency.published.rounds import round_at
from berth.scheduling.latency.published.rules import who_decides
from berth.scheduling.latency.situation import View, Wish, far, told
from controllers.latency.events import NOT_MEASURED
from controllers.latency.workloads import Obstacle


class EachUser(NamedTuple):
    """What is known of users who count apart."""

    users: int
    """users who were heard of lately"""
    served: tuple[int, ...]
    """round trip of each to the pod that serves him, in microseconds, of those who are measured"""
    held: Obstacle | None
    """who else scales the workload, so that nothing moves; None: nobody"""


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
    each: EachUser | None = None
    """what is known where each user counts; None: all count as one"""


def obstructed(obstacle: Obstacle) -> list[ConditionUpdate]:
    """Return the conditions of a policy that cannot be carried out."""
    unknown = ConditionUpdate(CONDITION_WITHIN_LIMITS, ConditionStatus.UNKNOWN, obstacle.reason, obstacle.message)
    idle = ConditionUpdate(CONDITION_MOVING, False, obstacle.reason, "nothing is moved; see the condition Working")
    return [ConditionUpdate(CONDITION_WORKING, False, obstacle.reason, obstacle.message), unknown, idle]


def conditions(facts: Facts) -> list[ConditionUpdate]:
    """Return the conditions of a policy that is carried out."""
    within = _within_limits(facts) if facts.each is None else users_within_limits(facts, facts.each)
    return [_working(facts), within, _moving(facts)]


def figures(facts: Facts) -> dict[str, object]:
    """Return the fields of a status that are for people: how pods or users are off, and how much moved."""
    status, nodes, limits = facts.status, _of_pods(facts.status, facts.view), Limits.of(facts.spec)
    if facts.each is None:
        states, p50 = Counter(known.state for known in nodes), max((far(known) for known in nodes), default=0)
    else:
        served = facts.each.served
        states, p50 = Counter(map(limits.state, served)), median_low(sorted(served)) if served else 0
    texts = [
        f"{state} {states[state]}" if states.total() > 1 else str(state)
        for state in sorted(states, key=RANK.__getitem__)
    ]
    return {
        "state": ", ".join(texts) or None,
        "p50": f"{p50 / 1000:.1f} ms" if p50 else None,
        "moves_last_hour": sum(facts.now - move.start_time < HOUR for move in counted_moves(status)),
    }


def _of_pods(status: LatencyPolicyStatus, view: View) -> list[NodeStatus]:
    known = by_name(status)
    return [known.get(pod.node) or NodeStatus(node=pod.node) for pod in view.pods if pod.node]


def _working(facts: Facts) -> ConditionUpdate:
    if not any(known.time for known in facts.status.nodes):
        message = "nobody has told yet how far users are; if it stays so, the pods have no latency meter"
        return ConditionUpdate(CONDITION_WORKING, False, NOT_MEASURED, message)
    if not facts.users:
        message = "no user was heard of lately; nothing is moved"
        return ConditionUpdate(CONDITION_WORKING, True, "NoUsers", message)
    nodes = sum(known.state is not NodeState.UNKNOWN for known in facts.status.nodes)
    message = f"{nodes} of {counted(len(facts.view.nodes), 'node')} are measured"
    if facts.each is not None:
        message = f"{counted(facts.each.users, 'user')}; {message}"
    if facts.status.search is not None:
        message = f"{message}; {who_decides(facts.status.search, facts.spec)}"
    return ConditionUpdate(CONDITION_WORKING, True, "Measuring", message)


def _within_limits(facts: Facts) -> ConditionUpdate:
    nodes = _of_pods(facts.status, facts.view)
    worst = min(nodes, key=lambda known: (RANK[known.state], -far(known)), default=None)
    if worst is None or worst.state is NodeState.UNKNOWN:
        message = "not all nodes with pods are measured" if nodes else "no pod has a node"
        return ConditionUpdate(CONDITION_WITHIN_LIMITS, ConditionStatus.UNKNOWN, "NotMeasured", message)
    if worst.state is NodeState.INVALID:
        return ConditionUpdate(CONDITION_WITHIN_LIMITS, False, "BeyondHardLimit", _nodes_and_what_next(facts, nodes))
    if worst.state is NodeState.HARD_VALID:
        return ConditionUpdate(CONDITION_WITHIN_LIMITS, False, "BeyondSoftLimit", _nodes_and_what_next(facts, nodes))
    if facts.spec.objective is Objective.MINIMUM and facts.wish is not None:
        return ConditionUpdate(CONDITION_WITHIN_LIMITS, True, "NearerIsKnown", _nodes_and_what_next(facts, nodes))
    return ConditionUpdate(CONDITION_WITHIN_LIMITS, True, "Within", _told(nodes))


def users_within_limits(facts: Facts, each: EachUser) -> ConditionUpdate:
    """How many users are within the limits at the pods that serve them."""
    if not each.served:
        message = "no user is measured at the pod that serves him"
        return ConditionUpdate(CONDITION_WITHIN_LIMITS, ConditionStatus.UNKNOWN, "NotMeasured", message)
    limits, served = Limits.of(facts.spec), each.served
    texts = [f"{median_low(sorted(served)) / 1000:.1f} ms is the median of {counted(len(served), 'user')}"]
    reason = "Within"
    for name, limit, beyond in (
        ("soft", limits.soft, "BeyondSoftLimit"),
        ("hard", limits.hard, "BeyondHardLimit"),
    ):
        far = sum(value > limit * (1 + LEAST_MARGIN) for value in served)
        if far:
            reason = beyond
            texts.append(f"{far} beyond the {name} limit of {limit / 1000:.0f} ms")
    text = ", ".join(texts)
    if reason == "Within":
        return ConditionUpdate(CONDITION_WITHIN_LIMITS, True, reason, text)
    return ConditionUpdate(CONDITION_WITHIN_LIMITS, False, reason, _and_what_next(facts, text))


def _nodes_and_what_next(facts: Facts, nodes: Sequence[NodeStatus]) -> str:
    if facts.wish is None or open_moves(facts.status):
        return _and_what_next(facts, _told(nodes))
    # What is wished for says how far the node is that the pod should leave.
    others = [known for known in nodes if known.node != facts.wish.pod.node]
    return "; ".join([*([_told(others)] if others else []), facts.wish.message])


def _told(nodes: Sequence[NodeStatus]) -> str:
    """Nodes with their round trips, the farthest first; each once, however many pods are on it."""
    return listed(list(dict.fromkeys(told(known) for known in sorted(nodes, key=far, reverse=True))))


def _and_what_next(facts: Facts, texts: str) -> str:
    if open_moves(facts.status):
        return f"{texts}; a pod is moving"
    if facts.wish is not None:
        return f"{texts}; {facts.wish.message}"
    if facts.status.search is not None:
        return f"{texts}; the published rule leaves no node"
    return f"{texts}; no better node with room is known"


def _moving(facts: Facts) -> ConditionUpdate:
    going = open_moves(facts.status)
    if going:
        refused = [facts.refusals[move.pod] for move in going if move.pod in facts.refusals]
        text = listed([f"{move.pod} from {move.source_node} to {move.target_node}" for move in going])
        if refused:
            return ConditionUpdate(CONDITION_MOVING, True, "EvictionRefused", f"{text}; {listed(refused)}")
        if facts.view.refused and any(move.new_pod is None for move in going):
            return ConditionUpdate(CONDITION_MOVING, True, "CreationRefused", f"{text}; {facts.view.refused}")
        outcome = min((move.outcome for move in going), key=_ORDER.index)
        return ConditionUpdate(CONDITION_MOVING, True, outcome.value, text)
    if facts.each is not None and facts.each.held is not None:
        return ConditionUpdate(CONDITION_MOVING, False, facts.each.held.reason, facts.each.held.message)
    surge = facts.status.surge
    if surge is not None and surge.leaving is not None:
        why = facts.refusals.get(surge.leaving)
        text = f"{surge.leaving} goes, {counted(surge.replicas - 1, 'pod')} are enough"
        if why is not None:
            return ConditionUpdate(CONDITION_MOVING, True, "EvictionRefused", f"{text}; {why}")
        return ConditionUpdate(CONDITION_MOVING, True, "Leaving", text)
    view = facts.view
    if facts.spec.users.max_replicas is not None and view.refused and len(view.pods) < view.replicas:
        text = f"{len(view.pods)} of {counted(view.replicas, 'pod')} are there; {view.refused}"
        return ConditionUpdate(CONDITION_MOVING, False, "CreationRefused", text)
    if facts.wish is None:
        return ConditionUpdate(CONDITION_MOVING, False, "Idle", "no move is due")
    wish = facts.wish
    text = f"{wish.pod.name} would go from {wish.pod.node} to {wish.node}: {wish.message}"
    if facts.spec.moves.dry_run:
        return ConditionUpdate(CONDITION_MOVING, False, "DryRun", f"{text}; moves.dryRun keeps it where it is")
    may = may_begin(facts.status, facts.spec, facts.now)
    if not facts.spec.moves.max_per_hour or (may is not None and may > facts.now):
        return ConditionUpdate(CONDITION_MOVING, False, "TooManyMoves", f"{text}; moves.maxPerHour are used up")
    return ConditionUpdate(CONDITION_MOVING, False, "Waiting", f"{text}; {_what_for(facts)}")


def _what_for(facts: Facts) -> str:
    """What a move waits for that may begin as far as their number goes."""
    view = facts.view
    cool = cool_at(facts.status, facts.spec) if facts.status.search is None else None  # rounds know none
    if not has_room(facts.status, view):
        many = max(len(view.pods), view.asked)
        return f"it waits while there are {counted(many, 'pod')}, or to come, where {view.replicas} should be"
    if cool is not None and cool > facts.now:
        return f"it waits for moves.coolDownSeconds, until {format_timestamp(cool)}"
    if facts.status.search is not None:
        return f"it waits for the next round, at {format_timestamp(round_at(facts.status.search))}"
    return "it is about to begin"


_ORDER: Sequence[Outcome] = (Outcome.CREATING, Outcome.TRYING, Outcome.EVICTING)
