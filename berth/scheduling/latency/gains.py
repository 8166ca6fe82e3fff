"""What pods are to users of whom each counts: figures of nodes, and what moves gained them."""

from __future__ import annotations

from datetime import datetime
from statistics import median_low

from berth.api.latencypolicy import (
    MAX_MICROSECONDS,
    LatencyPolicySpec,
    LatencyPolicyStatus,
    MeasurementSource,
    Move,
    NodeStatus,
    Outcome,
)
from berth.scheduling.latency import moves
from berth.scheduling.latency.classification import Limits, classify
from berth.scheduling.latency.knowledge import bounded, by_name, reject, whole
from berth.scheduling.latency.situation import Reason, View
from berth.scheduling.latency.user_table import UserTable


def figures(status: LatencyPolicyStatus, spec: LatencyPolicySpec, table: UserTable, view: View) -> LatencyPolicyStatus:
    """Return the status with how far the users are from each node, as if they were one.

    They are for people, and for pods that come without a move. What is decided goes by each user's.
    """
    limits, nodes = Limits.of(spec), by_name(status)
    for node, found in table.figures(view.nodes).items():
        if not found:
            continue
        known = nodes.get(node, NodeStatus(node=node))
        values = sorted(each.p50 for each in found)
        p50 = median_low(values)
        nodes[node] = known.model_copy(
            update={
                "state": classify(known.state, p50, len(values), limits),
                "source": None,
                "p50_microseconds": p50,
                "p90_microseconds": values[-(-9 * len(values) // 10) - 1],
                "samples": len(values),
                "time": whole(max(each.time for each in found)),
            }
        )
    return status.model_copy(update={"nodes": bounded(nodes)})


def judge(status: LatencyPolicyStatus, table: UserTable, now: datetime) -> LatencyPolicyStatus:
    """Return the status with moves judged whose users were served on the new node.

    These are who it was for: the median of what at least half of those have who are served there now, once it is clear
    whatever the others will have, as the first to be served may be the far ones, and others may have gone elsewhere. A
    node that is much farther than it seemed, as where an agent lies, is remembered as bad.
    """
    for move in status.moves:
        if move.outcome is not Outcome.MOVED or move.reason != Reason.MORE_USERS:
            continue
        users = [each.user for each in status.associations if each.node == move.target_node]
        served = [value for user in users if (value := _served(table, user, move)) is not None]
        count = max(len(users), move.users or 0)
        if not served or 2 * len(served) < count:
            continue
        others = count - len(served)
        most = moves.LIE * (move.expected_microseconds or MAX_MICROSECONDS)
        bad = median_low([*served, *[0] * others]) > most
        if not bad and median_low([*served, *[MAX_MICROSECONDS] * others]) > most:
            continue
        after = median_low(served)
        outcome = Outcome.DISAPPOINTED if bad else Outcome.CONFIRMED
        status = moves.replace(status, move, outcome=outcome, after_microseconds=after)
        status = reject(status, move.target_node, now) if bad else status
    return status


def _served(table: UserTable, user: str, move: Move) -> int | None:
    """What a user has had on the new node of a move since its pod was ready, after enough requests."""
    found = table.measured(user, move.target_node)
    since = move.ready_time or move.start_time
    if found is None or found.source is MeasurementSource.PROBE or whole(found.time) < since:
        return None
    return found.p50 if found.samples >= moves.ENOUGH else None
