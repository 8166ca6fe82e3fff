"""Pods with decisions, and Events about them, for tests of what is explained."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from berth.cli.explain.pod import pod_document
from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import GroupKey
from berth.scheduling.annotations import write_decision
from berth.scheduling.cache.socket_choice import Outlook
from berth.scheduling.decision import Alternative, Decision
from berth.scheduling.framework.rejection import Rejection
from tests.support import builders

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
COSTS = NetworkCosts(
    source="net/topo", weight_sets=("Dijkstra",), data_time="2026-05-01T11:55:00Z", zones={("a", "b"): 1}
)


def pod(*, on: str = "", scheduler: str = "berth-scheduler", **arguments: Any) -> Pod:
    found = builders.pod("p", on=on, **arguments)
    found.spec.scheduler_name = scheduler
    return found


def decided(pod: Pod, outlook: Outlook | None = None, **fields: Any) -> Pod:
    arguments: dict[str, Any] = {
        "node": "n1",
        "strategy": "berth",
        "value": 3.0,
        "terms": {"network": 3.0},
        "runner_ups": tuple(Alternative(f"n{n}", 3.0 + n, {"network": 3.0 + n}) for n in (2, 3, 4)),
        "feasible": 4,
        "nodes": 9,
        "rejections": (Rejection("NodeResourcesFit", "Insufficient cpu", 5),),
        "group": GroupKey("default", "shop"),
        "planned_with": 3,
        "edges": 2,
        "edge_cost": 3.0,
        **fields,
    }
    pod.metadata.annotations["berth.dev/decision"] = write_decision(Decision(pod=pod, **arguments), COSTS, outlook)
    return pod


def event(reason: str, note: str, *, minutes: float = 1, reporter: str = "berth.dev/placement", **more: Any) -> Any:
    time = (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    regarding = {"kind": "Pod", "name": "p", "uid": "pod-default-p"}
    return {
        "reason": reason, "note": note, "type": "Warning", "eventTime": time,
        "reportingController": reporter, "regarding": regarding, **more,
    }  # fmt: skip


def explained(pod: Pod, *events: Any, unread: Sequence[str] = ()) -> dict[str, Any]:
    return pod_document(pod, events, schedulers=["berth-scheduler"], now=NOW, unread=unread)
