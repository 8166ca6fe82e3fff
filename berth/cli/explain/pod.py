"""Why a pod is where it is, or nowhere: from its annotation, its Events and its conditions alone.

Nothing here comes from the memory of a controller, so the answer is the same after a restart. Events live for an
hour in the API server; the annotation lives as long as the pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from berth.api.base import format_timestamp
from berth.api.labels import ANNOTATION_DECISION, ANNOTATION_REJECTIONS, membership
from berth.api.text import counted
from berth.kube.objects import Pod
from berth.scheduling.annotations import UnreadableAnnotationError, read_decision, read_rejections

KIND = "PodExplanation"
VERSION = 2
"""Version of the document; 2 names the plugin of a rejection where 1 had ``filter``."""
REPORTER = "berth.dev/placement"
"""Who writes our Events."""


UNREAD_EVENTS = "what was said of late is left out"
"""What is missing in an explanation made without the right to list Events."""


def pod_document(
    pod: Pod,
    events: Iterable[Mapping[str, Any]],
    *,
    schedulers: Collection[str],
    now: datetime,
    unread: Collection[str] = (),
) -> dict[str, Any]:
    """Explain one pod.

    Args:
        pod: as the API server has it.
        events: Events about it, as the API server has them (events.k8s.io/v1).
        schedulers: scheduler names that are Berth's.
        now: for ages.
        unread: plural names of what may not be listed; Events, if any.
    """
    told = event_rows(events, uid=pod.metadata.uid, now=now)
    decision, problem = read_annotation(pod)
    document: dict[str, Any] = {
        "kind": KIND,
        "version": VERSION,
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "phase": pod.status.phase,
        "schedulerName": pod.spec.scheduler_name,
        "node": pod.spec.node_name,
    }
    place = membership(pod.metadata.labels)
    if place is not None:
        document["appGroup"], document["selector"] = place.appgroup, place.workload
    state, message = _state(pod, decision, problem, told, schedulers=schedulers, silent=not unread)
    document["state"], document["message"] = state, message
    if decision is not None:
        document["decision"] = decision
        document["rejected"] = decision.pop("rejected", [])
        document["network"] = _with_age(decision.get("network", {}), now)
    elif state == "pending":
        document["rejected"] = next((row.get("rejected", []) for row in told if row["reporter"] == REPORTER), [])
    condition = next((item for item in pod.status.conditions if item.type == "PodScheduled"), None)
    if condition is not None:
        document["podScheduled"] = {
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
    document["events"] = told
    document["unread"] = [{"resource": name, "effect": UNREAD_EVENTS} for name in unread]
    return document


def read_annotation(pod: Pod) -> tuple[dict[str, Any] | None, str]:
    """The annotation's content, or None with what is wrong with it (empty when there is none).

    The Binding writes node and annotation at once: one about another node came with a copied manifest.
    """
    text = pod.metadata.annotations.get(ANNOTATION_DECISION)
    if text is None:
        return None, ""
    try:
        decision = read_decision(text)
    except UnreadableAnnotationError as error:
        return None, f"annotation {ANNOTATION_DECISION} {error}"
    return (decision if decision["node"] == pod.spec.node_name else None), ""


def _state(
    pod: Pod,
    decision: Mapping[str, Any] | None,
    problem: str,
    told: list[dict[str, Any]],
    *,
    schedulers: Collection[str],
    silent: bool,
) -> tuple[str, str]:
    """One word and one sentence; without Events Berth is silent, unless they were not read."""
    name, node = pod.spec.scheduler_name, pod.spec.node_name
    if problem:
        return "unexplained", problem
    if decision is not None:
        others = (
            f", planned together with {counted(decision['plannedWith'] - 1, 'other')}" if _together(decision) else ""
        )
        leaving = "; it is being deleted" if pod.metadata.deletion_timestamp is not None else ""
        return "placed", f"placed on node {node}{others}{leaving}"
    if name not in schedulers and not any(row["reporter"] == REPORTER for row in told):
        where = f" on node {node}" if node else ""
        return "foreign", (
            f"the pod belongs to scheduler {name}{where}, not to Berth, which decides about the scheduler names of its "
            f"profiles: {', '.join(sorted(schedulers))}"
        )
    if node:
        return "unexplained", (
            f"bound to node {node} without a decision of Berth: it was created with spec.nodeName, bound by somebody "
            f"else, or its annotation {ANNOTATION_DECISION} was removed or is another pod's"
        )
    if pod.finished:
        return "unexplained", "the pod has ended without ever having had a node"
    if pod.metadata.deletion_timestamp is not None:
        return "unexplained", "the pod is being deleted, and gets no node any more"
    if pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return "pending", f"waits until its scheduling gates are removed: {gates}"
    condition = next((c for c in pod.status.conditions if c.type == "PodScheduled" and c.message), None)
    if condition is not None:
        return "pending", f"{condition.reason}: {condition.message}"
    latest = next((row for row in told if row["reporter"] == REPORTER), None)
    if latest is not None:
        return "pending", f"{latest['reason']}: {latest['message']}"
    if not silent:
        return "pending", "what Berth said about the pod is in its Events, which you may not list"
    return "pending", (
        "Berth has not said anything about the pod in the last hour; check that `berth run placement` is running and "
        f"has a profile for schedulerName {name}"
    )


def _together(decision: Mapping[str, Any]) -> bool:
    return int(decision.get("plannedWith", 1)) > 1


def _with_age(network: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    document = dict(network)
    moment = parse_time(str(document.get("dataTime", "")))
    if moment is not None:
        document["ageSeconds"] = max(0, int((now - moment).total_seconds()))
    return document


def parse_time(text: str) -> datetime | None:
    """RFC 3339 text as a moment, None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def event_rows(events: Iterable[Mapping[str, Any]], *, uid: str, now: datetime) -> list[dict[str, Any]]:
    """Events about one object, the newest first."""
    rows: list[tuple[datetime, dict[str, Any]]] = []
    for event in events:
        regarding = event.get("regarding") or {}
        if uid and regarding.get("uid") not in (None, "", uid):
            continue  # an earlier object of the same name
        series = event.get("series") or {}
        reporter = event.get("reportingController") or _legacy_source(event)
        annotations = (event.get("metadata") or {}).get("annotations") or {}
        rejected = read_rejections(annotations.get(ANNOTATION_REJECTIONS, "")) if reporter == REPORTER else []
        moment = _event_time(event, series) or now
        rows.append(
            (
                moment,
                {
                    "type": event.get("type", ""),
                    "reason": event.get("reason", ""),
                    "message": event.get("note", ""),
                    "reporter": reporter,
                    "time": format_timestamp(moment),
                    "ageSeconds": max(0, int((now - moment).total_seconds())),
                    "count": int(series.get("count") or event.get("deprecatedCount") or 1),
                    **({"rejected": rejected} if rejected else {}),
                },
            )
        )
    rows.sort(key=lambda row: row[0], reverse=True)
    return [row for _, row in rows]


def _event_time(event: Mapping[str, Any], series: Mapping[str, Any]) -> datetime | None:
    metadata = event.get("metadata") or {}
    candidates = (
        series.get("lastObservedTime"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
        metadata.get("creationTimestamp"),
    )
    return next((moment for text in candidates if text and (moment := parse_time(str(text)))), None)


def _legacy_source(event: Mapping[str, Any]) -> str:
    source = event.get("deprecatedSource") or {}
    return str(source.get("component", ""))
