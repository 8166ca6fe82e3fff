"""The explanation of a node as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from berth.api.labels import RESOURCE_BANDWIDTH
from berth.api.text import counted, listed
from berth.cli.explain.tables import age_text, unread_fields
from berth.cli.plan.tables import Page, amount, number, short, terms_text, without_constant

MAX_ROWS = 60


def node_page(document: Mapping[str, Any], *, width: int | None, color: bool = False) -> str:
    """A NodeExplanation as text."""
    page = Page(width=width, color=color)
    pods, others, waiting = document["pods"], document["others"], document["waiting"]
    page.heading(f"Node {document['name']}: {counted(len(pods), 'pod')} placed by Berth, {others['pods']} by others")
    page.fields(_fields(document))
    page.heading("ROOM")
    rows = [
        (name, *(_amount(name, found[field]) for field in ("allocatable", "used", "free")))
        for name, found in document["resources"].items()
    ]
    columns = ("RESOURCE", "ALLOCATABLE", "TAKEN", "FREE")
    page.table(columns, rows, right=columns[1:])
    if pods:
        page.heading("PLACED BY BERTH")
        _placed(page, pods)
    page.heading(f"WOULD IT TAKE {document.get('stated') or 'THE WAITING PODS OF BERTH'}?")
    if waiting:
        _waiting(page, waiting)
    else:
        page.line("none waits")
    return page.text()


def _fields(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    place = ", ".join(f"{name} {document[name]}" for name in ("region", "zone", "segment") if document.get(name))
    state = {"True": "ready", "False": "not ready"}.get(document["ready"], "readiness not known")
    if document["unschedulable"]:
        state += ", cordoned: it takes no new pod"
    rows = [("Place", place or "no region or zone label"), ("State", state)]
    rows.append(("Taints", ", ".join(document["taints"]) or "none"))
    if document["settings"]:
        rows.append(("Settings", ", ".join(f"{name}={value}" for name, value in document["settings"].items())))
    rows += [("Problem", problem) for problem in document["problems"]]
    rows += unread_fields(document)
    others = document["others"]
    if others["pods"]:
        rows.append(("Others", _others(others)))
    return rows


def _others(others: Mapping[str, Any]) -> str:
    """Pods of others in one line."""
    by = listed([f"{count} of {name}" for name, count in others["bySchedulerName"].items()], limit=3)
    where = listed(list(others["byNamespace"]), limit=3)
    requests = ", ".join(f"{name} {_amount(name, value)}" for name, value in others["requests"].items() if value)
    return f"{by}, in namespace {where}; they request {requests or 'nothing'}"


def _amount(resource: str, value: float) -> str:
    if resource == RESOURCE_BANDWIDTH:
        for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6)):
            if abs(value) >= size:
                return f"{number(value / size)} {unit}"
        return f"{number(value)} bit/s"
    return amount(resource, value) or "0"


def _placed(page: Page, pods: Sequence[Mapping[str, Any]]) -> None:
    columns = ("NAMESPACE", "APPGROUP", "POD", "SINCE", "PLANNED", "WHY", "NEXT BEST", "SOCKET", "EDGES", "COST NOW")
    rows = [
        (
            pod["namespace"],
            pod.get("appGroup", ""),
            pod["name"],
            age_text(pod["boundSeconds"]) if "boundSeconds" in pod else "?",
            f"{together} jointly" if (together := int(pod["decision"].get("plannedWith", 1))) > 1 else "alone",
            _why(pod["decision"]),
            _next_best(pod["decision"]),
            _socket(pod["decision"]),
            str(pod.get("edges", "")),
            _cost_now(pod),
        )
        for pod in pods[:MAX_ROWS]
    ]
    kept = ("NAMESPACE", "APPGROUP", *(("SOCKET",) if not any(row[7] for row in rows) else ()))
    page.table(*without_constant(columns, rows, kept, page), fold=("POD", "WHY", "NEXT BEST"))
    if len(pods) > MAX_ROWS:
        page.line(f"and {len(pods) - MAX_ROWS} more; -o json lists them all")
    if any(_socket(pod["decision"]) for pod in pods[:MAX_ROWS]):
        page.line(
            "SOCKET with the pod's class and how much slower it was expected to run than alone, when it was bound"
        )
    page.line("COST NOW is the network cost of all edges of the pod; `kubectl berth explain pod NAME` says more")


def _why(decision: Mapping[str, Any]) -> str:
    """The terms, with their sum where there are several or none."""
    scale = "score" if "score" in decision else "cost"
    terms = {name: value for name, value in decision["terms"].items() if value}
    if len(terms) == 1 and scale == "cost":
        return terms_text(terms)
    return f"{scale} {number(decision[scale]) or '0'}" + (f": {terms_text(terms)}" if terms else "")


def _next_best(decision: Mapping[str, Any]) -> str:
    scale = "score" if "score" in decision else "cost"
    best = next(iter(decision["runnerUps"]), None)
    return f"{best['node']} ({number(best[scale]) or '0'})" if best is not None else "no other node"


def _socket(decision: Mapping[str, Any]) -> str:
    """Socket, class and expected slowdown as it was bound, such as ``0: D, 1.07``; nothing of a pod without class."""
    if "slowdown" not in decision:
        return ""
    letter, suffered = decision.get("interferenceClass", "?"), short(decision["slowdown"]["suffered"])
    return f"{decision.get('socket', '-')}: {letter}, {suffered}"


def _cost_now(pod: Mapping[str, Any]) -> str:
    if not pod.get("edges"):
        return ""
    over = f", {pod['edgesOverLimit']} over limit" if pod["edgesOverLimit"] else ""
    return f"{number(pod['edgeCost'])}{over}"


def _waiting(page: Page, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = ("NAMESPACE", "APPGROUP", "WORKLOAD", "FIT", "EDGES", "COST", "WHAT REJECTS THE OTHERS")
    cells = [
        (
            row["namespace"],
            row.get("appGroup", ""),
            row["workload"],
            f"{row['fit']} of {row['pods']}",
            str(row.get("edges", "")),
            number(row.get("edgeCost")),
            "; ".join(f"{item['plugin']}: {item['reason']}" for item in row["rejected"]),
        )
        for row in rows[:MAX_ROWS]
    ]
    page.table(*without_constant(columns, cells, ("NAMESPACE", "APPGROUP"), page), fold=columns[-1:])
    if len(rows) > MAX_ROWS:
        page.line(f"and {len(rows) - MAX_ROWS} more; -o json lists them all")
    page.line("each workload by itself, towards the pods that have a node; a joint plan may choose otherwise")
    page.line("COST is the network cost of all edges of its first pod there")
