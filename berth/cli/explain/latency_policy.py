"""What is known of each node for the users of a LatencyPolicy, what was moved and what it gained. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from berth.api.base import format_timestamp
from berth.api.latencypolicy import (
    API_VERSION,
    KIND,
    LatencyPolicy,
    LatencyPolicySpec,
    Move,
    NodeState,
    NodeStatus,
    Search,
    UserMode,
)
from berth.api.text import counted
from berth.kube.objects import CustomObject, Node, Pod
from berth.kube.owners import owner_key, owner_of
from berth.scheduling.latency.classification import RANK, Limits
from berth.scheduling.latency.knowledge import by_name, is_rejected
from berth.scheduling.latency.published.rounds import round_at
from berth.scheduling.latency.published.rules import who_decides
from berth.scheduling.latency.stated_limits import with_limits

EXPLANATION = "LatencyPolicyExplanation"
VERSION = 1


def policy_document(
    obj: CustomObject, *, pods: Sequence[Pod], nodes: Sequence[Node], unread: Sequence[str], now: datetime
) -> dict[str, Any]:
    """Explain one LatencyPolicy.

    Args:
        obj: the policy.
        pods: pods of its namespace.
        nodes: all nodes; none where they may not be listed.
        unread: plural names of what may not be listed.
        now: for ages.

    Raises:
        berth.api.errors.InvalidObjectError: the policy cannot be read.
    """
    policy = LatencyPolicy.parse(obj.document(api_version=API_VERSION, kind=KIND))
    status, reference = policy.status, policy.spec.target_ref
    spec = with_limits(policy.spec, status.annotated_limits)
    target = owner_key(policy.metadata.namespace, reference.kind, reference.name)
    here: dict[str, list[str]] = {}
    for pod in pods:
        staying = not pod.finished and pod.metadata.deletion_timestamp is None
        if owner_of(pod) == target and pod.spec.node_name and staying:
            here.setdefault(pod.spec.node_name, []).append(pod.metadata.name)
    known = by_name(status)
    names = {*known, *here, *(node.metadata.name for node in nodes)}
    rows = [_node(known.get(name) or NodeStatus(node=name), sorted(here.get(name, ())), spec, now) for name in names]
    for visited in status.search.visited if status.search is not None else ():
        row = next((row for row in rows if row["name"] == visited.node), None)
        if row is not None:
            row |= {"visits": visited.visits, "left": visited.left}
            row["why"] += f"; visited {counted(visited.visits, 'time')}" + (", left" if visited.left else "")
    users = Counter(each.node for each in status.associations)
    for row in rows if spec.users.mode is UserMode.PER_USER else ():
        row["users"] = users[row["name"]]
    rows.sort(key=lambda row: (-RANK[NodeState(row["state"])], row.get("p50Milliseconds", 0), row["name"]))
    return {
        "kind": EXPLANATION,
        "version": VERSION,
        "namespace": policy.metadata.namespace,
        "name": policy.metadata.name,
        "target": f"{reference.kind} {reference.name}",
        "objective": spec.objective.value,
        "decisions": spec.decisions.value,
        "search": _search(status.search, spec) if status.search is not None else None,
        "hardMaxLatency": spec.hard_max_latency,
        "softMaxLatency": spec.soft_max_latency,
        "dryRun": spec.moves.dry_run,
        "users": spec.users.mode.value,
        "nodes": rows,
        "moves": [_move(move, now) for move in reversed(status.moves)],
        "conditions": [
            {"type": each.type, "status": each.status.value, "reason": each.reason, "message": each.message}
            for each in status.conditions
        ],
        "unread": [{"resource": name, "effect": "nodes that nobody has measured are left out"} for name in unread],
    }


def _search(search: Search, spec: LatencyPolicySpec) -> dict[str, Any]:
    return {
        "rule": search.rule.value,
        "why": who_decides(search, spec),
        "nextRound": format_timestamp(round_at(search)),
    }


def _node(known: NodeStatus, pods: list[str], spec: LatencyPolicySpec, now: datetime) -> dict[str, Any]:
    row: dict[str, Any] = {"name": known.node, "state": known.state.value, "pods": pods}
    if known.p50_microseconds is not None:
        row["p50Milliseconds"] = known.p50_microseconds / 1000
    if known.p90_microseconds is not None:
        row["p90Milliseconds"] = known.p90_microseconds / 1000
    if known.time is not None:
        row |= {"samples": known.samples, "ageSeconds": (now - known.time).total_seconds()}
        row |= {"source": known.source.value} if known.source is not None else {}
    return row | {"why": "; ".join(_reasons(known, spec, now))}


def _reasons(known: NodeStatus, spec: LatencyPolicySpec, now: datetime) -> list[str]:
    reasons = [_about_limits(known, spec)]
    if is_rejected(known, now) and known.rejected_until is not None:
        reasons.append(
            f"left alone until {format_timestamp(known.rejected_until)}: {known.rejections} of the moves there did not "
            "give what was expected"
        )
    return reasons


def _about_limits(known: NodeStatus, spec: LatencyPolicySpec) -> str:
    far, limits = known.p50_microseconds, Limits.of(spec)
    if far is None:
        return "nobody has measured it"
    if known.state is NodeState.UNKNOWN:
        return f"measured {known.samples} of {spec.min_samples} times"
    if limits.hard == limits.soft == float("inf"):
        return "there is no limit"
    named = [("hard", limits.hard)] if limits.hard < float("inf") else []
    named += [("soft", limits.soft)] if limits.soft < limits.hard else []
    texts = [f"{_side(far, limit)} the {name} limit of {limit / 1000:.0f} ms" for name, limit in named]
    kept = limits.state(far) is not known.state
    return ", ".join(texts) + (", by less than measurements may be wrong: its state is as it was" if kept else "")


def _side(far: float, limit: float) -> str:
    return "beyond" if far > limit else "within"


def _move(move: Move, now: datetime) -> dict[str, Any]:
    row: dict[str, Any] = {
        "pod": move.pod,
        "sourceNode": move.source_node,
        "targetNode": move.target_node,
        "reason": move.reason,
        "outcome": move.outcome.value,
        "ageSeconds": (now - move.start_time).total_seconds(),
    }
    for name, value in (
        ("beforeMilliseconds", move.before_microseconds),
        ("expectedMilliseconds", move.expected_microseconds),
        ("afterMilliseconds", move.after_microseconds),
    ):
        if value is not None:
            row[name] = value / 1000
    if move.users is not None:
        row["users"] = move.users
    if move.refused:
        row["refused"] = True
    if move.before_microseconds is not None and move.after_microseconds is not None:
        row["gainMilliseconds"] = (move.before_microseconds - move.after_microseconds) / 1000
    return row
