"""When agents are asked to measure their round trips to the users."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from berth.api.latencypolicy import Exploration, LatencyPolicySpec, LatencyPolicyStatus, NodeState
from berth.scheduling.latency.knowledge import by_name, whole
from berth.scheduling.latency.situation import Probe, View

REFRESH: Final = timedelta(seconds=15)
"""How often they are asked while users are there."""
ANSWERED_WITHIN: Final = timedelta(seconds=5)
"""How long their answers are awaited before nodes are explored otherwise."""
ASK_AGAIN: Final = timedelta(minutes=10)
"""How long users that did not answer are left alone."""


def unreachable(status: LatencyPolicyStatus, now: datetime) -> LatencyPolicyStatus:
    """Return the status after agents have found that users do not answer them."""
    return status.model_copy(update={"unreachable_time": whole(now)})


def reachable(status: LatencyPolicyStatus) -> LatencyPolicyStatus:
    """Return the status after agents have come, of which none was there to find that users do not answer."""
    return status.model_copy(update={"unreachable_time": None})


def answers(status: LatencyPolicyStatus, spec: LatencyPolicySpec, now: datetime) -> bool:
    """Return whether agents may be asked: users answer them, as far as is known."""
    silent = status.unreachable_time is not None and now - status.unreachable_time < ASK_AGAIN
    return Exploration.REVERSE_PROBE in spec.exploration and not silent


def due_at(status: LatencyPolicyStatus, now: datetime) -> datetime:
    """Return when agents are to be asked next."""
    return now if status.probed_time is None else status.probed_time + REFRESH


def is_due(status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View, now: datetime) -> bool:
    """Return whether agents are to be asked now."""
    return bool(view.active and _nodes(view)) and answers(status, spec, now) and due_at(status, now) <= now


def probe(
    status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View, now: datetime
) -> tuple[LatencyPolicyStatus, Probe | None]:
    """Return what agents should be asked now, and the status that remembers it."""
    if not is_due(status, spec, view, now):
        return status, None
    nodes = _nodes(view)
    return status.model_copy(update={"probed_time": whole(now), "unreachable_time": None}), Probe(nodes)


def awaiting(status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View, now: datetime) -> bool:
    """Return whether answers may still come that tell of nodes nobody knows."""
    if status.probed_time is None or not answers(status, spec, now) or now - status.probed_time >= ANSWERED_WITHIN:
        return False
    return knows_too_few(status, view)


def knows_too_few(status: LatencyPolicyStatus, view: View) -> bool:
    """Return whether nodes that a pod could go to are not measured."""
    nodes = by_name(status)
    return any(name not in nodes or nodes[name].state is NodeState.UNKNOWN for name in view.candidates)


def _nodes(view: View) -> tuple[str, ...]:
    """Nodes whose agents are asked: those that a pod could go to, and those with pods."""
    return tuple(dict.fromkeys((*view.candidates, *(pod.node for pod in view.pods if pod.node))))
