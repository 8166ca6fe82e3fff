"""Decisions and rejections as annotations: ``berth.dev/decision`` on pods, ``berth.dev/rejections`` on Events.

Both are compact JSON, versioned by their first field. Version 2 of the decision names its scale (``cost`` or ``score``)
and keeps rejections with their plugin; version 1, written by earlier releases, had ``cost`` for both and rejections by
reason alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec

from berth.api.labels import ANNOTATION_DECISION as DECISION
from berth.network.costs import NetworkCosts
from berth.scheduling.cache.socket_choice import Outlook
from berth.scheduling.decision import ALONE, MAX_RUNNER_UPS, Decision, Failure, Scale
from berth.scheduling.framework.rejection import Rejection

VERSION = 2
"""Version of both annotations as they are written."""
MAX_REASONS = 8
"""Reasons for rejected nodes that are kept, those of most nodes first."""

MAX_BYTES = 256 * 1024
"""Bytes of all keys and values that the annotations of one object may have in Kubernetes."""


class UnreadableAnnotationError(ValueError):
    """An annotation is not what Berth writes; the text says what it is, and what to do."""


def write_decision(decision: Decision, costs: NetworkCosts, outlook: Outlook | None = None) -> str:
    """The decision with the network costs that it was made with, and what a pod with an interference class expects."""
    scale = decision.scale.value
    document: dict[str, Any] = {
        "v": VERSION,
        "node": decision.node,
        "strategy": decision.strategy,
        scale: _short(decision.value),
        "terms": _terms(decision.terms),
    }
    if decision.group is not None:
        document["appGroup"] = decision.group.name
        document["plannedWith"] = decision.planned_with
        document["edges"] = decision.edges
        document["edgeCost"] = _short(decision.edge_cost)
    if outlook is not None:
        document["interferenceClass"] = outlook.interference_class.value
        if outlook.socket is not None:
            document["socket"] = outlook.socket
        document["slowdown"] = {"suffered": round(outlook.suffered, 3), "caused": round(outlook.caused, 3)}
    document["runnerUps"] = [
        {"node": item.node, scale: _short(item.value), "terms": _terms(item.terms)}
        for item in decision.runner_ups[:MAX_RUNNER_UPS]
    ]
    document["feasible"] = decision.feasible
    document["nodes"] = decision.nodes
    if decision.rejections:
        document["rejected"] = _most(decision.rejections)
    if costs.available:
        document["network"] = {"topology": costs.source, "weights": list(costs.weight_sets)}
        if costs.data_time:
            document["network"]["dataTime"] = costs.data_time
    else:
        document["network"] = {"missing": costs.missing}
    return msgspec.json.encode(document).decode()


def fits(text: str, annotations: Mapping[str, str], *, key: str = DECISION) -> bool:
    """Whether a text may be added to a pod's annotations: beyond the limit nobody could change the pod."""
    others = (len(name.encode()) + len(value.encode()) for name, value in annotations.items() if name != key)
    return len(key) + len(text.encode()) + sum(others) <= MAX_BYTES


def read_decision(text: str) -> dict[str, Any]:
    """The content of an annotation of any version that was ever written, in the shape of the newest.

    Raises:
        UnreadableAnnotationError: it is none of them.
    """
    try:
        document = msgspec.json.decode(text, type=dict[str, Any])
        version = document.get("v")
        if version == 1:
            document = _upgrade(msgspec.convert(document, _Version1))
        elif version != VERSION:
            what = f"has version {version!r}, this command reads 1 to {VERSION}"
            raise UnreadableAnnotationError(f"{what}; install the kubectl-berth of the controller's release")
        known = _plain(msgspec.convert(document, _Version2))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnreadableAnnotationError(f"is not a decision of Berth ({error}); somebody changed it") from error
    scale = Scale.SCORE if known["strategy"] == ALONE else Scale.COST
    if any(item.get(scale.value) is None for item in (known, *known["runnerUps"])):
        raise UnreadableAnnotationError(
            f"is not a decision of Berth (a node without {scale.value}); somebody changed it"
        )
    other = Scale.COST if scale is Scale.SCORE else Scale.SCORE
    for item in (known, *known["runnerUps"]):
        item.pop(other.value, None)
    return {key: known[key] for key in document if key in known} | known


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A number of pods, edges or nodes; what is beyond a float is none, and cannot be divided by."""


class _Row(msgspec.Struct):
    plugin: str
    reason: str
    nodes: _Count


class _RejectionsDocument(msgspec.Struct):
    v: int
    rejected: list[_Row]


class _Network(msgspec.Struct, rename="camel"):
    topology: str | msgspec.UnsetType = msgspec.UNSET
    weights: list[str] | msgspec.UnsetType = msgspec.UNSET
    data_time: str | msgspec.UnsetType = msgspec.UNSET
    missing: str | msgspec.UnsetType = msgspec.UNSET


class _Option(msgspec.Struct, kw_only=True, rename="camel"):
    node: str
    cost: float | msgspec.UnsetType | None = msgspec.UNSET
    score: float | msgspec.UnsetType | None = msgspec.UNSET
    terms: dict[str, float | None] = {}


class _Slowdown(msgspec.Struct):
    suffered: float = 1.0
    caused: float = 0.0


class _AnyVersion(_Option, kw_only=True, rename="camel"):
    v: int
    strategy: str
    app_group: str | msgspec.UnsetType = msgspec.UNSET
    planned_with: _Count | msgspec.UnsetType = msgspec.UNSET
    edges: _Count | msgspec.UnsetType = msgspec.UNSET
    edge_cost: float = 0.0
    interference_class: str | msgspec.UnsetType = msgspec.UNSET
    socket: _Count | msgspec.UnsetType = msgspec.UNSET
    slowdown: _Slowdown | msgspec.UnsetType = msgspec.UNSET
    runner_ups: list[_Option] = []
    feasible: _Count = 0
    nodes: _Count = 0
    network: _Network = msgspec.field(default_factory=_Network)


class _Version1(_AnyVersion, kw_only=True, rename="camel"):
    rejected: dict[str, int] = {}


class _Version2(_AnyVersion, kw_only=True, rename="camel"):
    rejected: list[_Row] = []


def _plain(document: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(document)
    return plain


def _upgrade(old: _Version1) -> dict[str, Any]:
    document = _plain(old)
    if old.strategy == ALONE:
        for item in (document, *document["runnerUps"]):
            item["score"] = item.pop("cost", 0.0)
    rows = [{"plugin": "", "reason": reason, "nodes": count} for reason, count in old.rejected.items()]
    return {**document, "v": VERSION, "rejected": rows}


def write_rejections(failure: Failure) -> str:
    """Why no node takes a pod, for the annotation of its Event; empty where nodes did not decide."""
    if not failure.rejections or failure.waits_for is not None:
        return ""
    document = {"v": VERSION, "nodes": failure.nodes, "rejected": _most(failure.rejections)}
    return msgspec.json.encode(document).decode()


def read_rejections(text: str) -> list[dict[str, Any]]:
    """The rows of such an annotation; none where it is missing or unreadable, since the Event says it in words too."""
    try:
        document = msgspec.json.decode(text, type=_RejectionsDocument)
    except (msgspec.MsgspecError, RecursionError):
        return []
    return [msgspec.to_builtins(row) for row in document.rejected] if document.v == VERSION else []


def _most(rejections: Iterable[Rejection]) -> list[dict[str, Any]]:
    """Rows of the rejections of most nodes."""
    rows = sorted(rejections, key=lambda item: (-item.count, item.reason))
    return [{"plugin": row.plugin, "reason": row.reason, "nodes": row.count} for row in rows[:MAX_REASONS]]


def _terms(terms: Mapping[str, float]) -> dict[str, float]:
    return {name: _short(value) for name, value in terms.items()}


def _short(value: float) -> float:
    return float(f"{value:.6g}")
