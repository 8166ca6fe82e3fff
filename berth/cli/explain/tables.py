"""Explanations as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from berth.api.text import counted, listed, share_text
from berth.cli.explain.terms import NOTHING, UNITS, meanings
from berth.cli.figures import calls_line, cost_line, price_line, survival_lines
from berth.cli.plan.tables import Page, number, short, show_savings, without_constant, zone_text
from berth.scheduling.gang.strategies import REPLICAS

MAX_EDGES = 60
MAX_PODS = 60
MAX_EVENTS = 5


def age_text(seconds: float) -> str:
    """An age as kubectl writes it: two units at most."""
    seconds = int(seconds)
    for size, unit, below, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= size:
            rest = seconds % size // below
            return (
                f"{seconds // size}{unit}{rest}{small}" if rest and seconds < 10 * size else f"{seconds // size}{unit}"
            )
    return f"{seconds}s"


def pod_page(document: Mapping[str, Any], *, width: int | None, color: bool = False) -> str:
    """A PodExplanation as text."""
    page = Page(width=width, color=color)
    page.heading(f"Pod {document['namespace']}/{document['name']}: {document['state']}")
    page.line(document["message"])
    decision = document.get("decision")
    rows = [("Phase", document["phase"]), ("Scheduler", document["schedulerName"])]
    if "appGroup" in document:
        rows.append(("AppGroup", f"{document['appGroup']}, workload {document['selector'] or '(none)'}"))
    if decision is not None:
        rows += _decision_fields(decision, document["network"])
    elif "podScheduled" in document:
        condition = document["podScheduled"]
        rows.append(("PodScheduled", f"{condition['status']} {condition['reason']}".strip()))
    page.fields(rows + unread_fields(document))
    if decision is not None:
        _nodes(page, decision)
    rejected = document.get("rejected") or []
    if rejected:
        page.heading("REJECTED NODES")
        page.table(
            ("PLUGIN", "NODES", "REASON"),
            [(row["plugin"] or "-", str(row["nodes"]), row["reason"]) for row in rejected],
            fold=("REASON",),
        )
    _events(page, document["events"])
    return page.text()


def _decision_fields(decision: Mapping[str, Any], network: Mapping[str, Any]) -> list[tuple[str, str]]:
    how = (
        "by itself (filter and score)"
        if decision["strategy"] == "alone"
        else f"jointly, strategy {decision['strategy']}"
    )
    rows = [("Planned", how)]
    if decision.get("edges"):
        mean = decision["edgeCost"] / decision["edges"]
        text = f"network cost {short(decision['edgeCost'])}, mean {short(mean)}, when placed"
        rows.append(("Pairs", f"{decision['edges']} with pods that it calls or that call it, {text}"))
    if "slowdown" in decision:
        where = f"{decision['socket']}" if "socket" in decision else "none of its own"
        suffered, caused = (short(decision["slowdown"][each]) for each in ("suffered", "caused"))
        letter = f", class {decision['interferenceClass']}" if "interferenceClass" in decision else ""
        text = f"{where}{letter}; expected slowdown {suffered}, of others because of it {caused} more, in sum"
        rows.append(("Socket", text))
    rows.append(("Nodes", f"{decision['feasible']} of {decision['nodes']} were feasible"))
    rows.append(("Network data", network_text(network)))
    return rows


def network_text(network: Mapping[str, Any]) -> str:
    """Where network costs came from and how old they are."""
    if "topology" not in network:
        return str(network.get("missing", "not known"))
    age = f"{age_text(network['ageSeconds'])} old" if "ageSeconds" in network else "age not known"
    return f"{network['topology']} ({', '.join(network.get('weights', ()))}), {age}"


def _nodes(page: Page, decision: Mapping[str, Any]) -> None:
    scale = "score" if "score" in decision else "cost"
    page.heading("CHOSEN NODE AND RUNNERS-UP")
    options = [decision, *decision["runnerUps"]]
    stated = dict.fromkeys(name for item in options for name in item["terms"])
    largest = {name: max((item["terms"].get(name) or 0.0 for item in options), key=abs) for name in stated}
    names = [name for name, amount in largest.items() if abs(amount) >= NOTHING]
    rows = [
        (
            "chosen" if place == 0 else f"{place}.",
            item["node"],
            short(item[scale] or 0.0),
            *(short(item["terms"].get(name) or 0.0) for name in names),
        )
        for place, item in enumerate(options)
    ]
    page.table(("", "NODE", scale.upper(), *(name.upper() for name in names)), rows)
    page.line("higher is better" if scale == "score" else f"{UNITS}; all other pods stay where they are")
    if not decision["runnerUps"]:
        unknown = decision["strategy"] == REPLICAS and decision.get("feasible", 0) > 1
        many = "the next best nodes are not known: of a large plan some pods have none"
        page.line(many if unknown else "no other node was feasible")
    words = meanings(decision["strategy"], largest)
    if words:
        page.heading("TERMS")
        page.fields(words)


def _events(page: Page, events: Sequence[Mapping[str, Any]], *, most: int = MAX_EVENTS) -> None:
    if not events:
        return
    page.heading("EVENTS")
    rows = [
        (age_text(row["ageSeconds"]), str(row["count"]), row["reason"], row["reporter"], row["message"])
        for row in events[:most]
    ]
    page.table(("AGE", "TIMES", "REASON", "FROM", "MESSAGE"), rows, fold=("MESSAGE",))


def group_page(document: Mapping[str, Any], *, width: int | None, color: bool = False) -> str:
    """An AppGroupExplanation as text."""
    page = Page(width=width, color=color)
    pods = document["pods"]
    page.heading(
        f"AppGroup {document['namespace']}/{document['name']}: {document['placed']} of {len(pods)} pods have a node"
    )
    if "problem" in document:
        page.line(f"It cannot be used: {document['problem']}")
    else:
        page.fields(_group_fields(document))
    if pods:
        _members(page, document)
    _without_node(page, pods)
    show_savings(page, document)
    if document.get("dependencies"):
        _edges(page, document["dependencies"])
    conditions = [("AppGroup", item) for item in document["conditions"]]
    conditions += [("NetworkTopology", item) for item in document.get("network", {}).get("conditions", ())]
    if conditions:
        page.heading("CONDITIONS")
        found = [(of, item["type"], item["status"], item["reason"], item["message"]) for of, item in conditions]
        page.table(("OF", "TYPE", "STATUS", "REASON", "MESSAGE"), found, fold=("MESSAGE",))
    _events(page, document["events"])
    return page.text()


def _members(page: Page, document: Mapping[str, Any]) -> None:
    """Each pod; of many, a row for each workload."""
    pods = document["pods"]
    if len(pods) <= MAX_PODS:
        page.heading("PODS")
        rows = [
            (
                str(_place(document, row["selector"])),
                row["selector"],
                row["name"],
                row["phase"],
                row["node"] or "-",
                zone_text(row),
            )
            for row in pods
        ]
        found = without_constant(("ORDER", "WORKLOAD", "POD", "PHASE", "NODE", "ZONE"), rows, ("PHASE", "ZONE"), page)
        page.table(*found, fold=("WORKLOAD", "POD"))
        return
    page.heading("WORKLOADS")
    together: dict[str, list[Mapping[str, Any]]] = {}
    for row in pods:
        together.setdefault(row["selector"], []).append(row)
    summaries = [
        (
            str(_place(document, selector)),
            selector,
            f"{sum(1 for row in alike if row['node'])} of {len(alike)}",
            str(len({row["node"] for row in alike if row["node"]})),
            listed(sorted({row["zone"] for row in alike if row["zone"]}), limit=6),
        )
        for selector, alike in together.items()
    ]
    page.table(("ORDER", "WORKLOAD", "PODS WITH A NODE", "NODES", "ZONES"), summaries[:MAX_PODS], fold=("ZONES",))
    more = f"and {len(summaries) - MAX_PODS} more workloads; " if len(summaries) > MAX_PODS else ""
    page.line(f"{more}-o json lists every pod")


def _place(document: Mapping[str, Any], selector: str) -> int | str:
    order = document.get("order", [])
    return order.index(selector) + 1 if selector in order else "-"


def _group_fields(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    order = " > ".join(document["order"]) if document["ordered"] else "none yet (is `berth run appgroup` running?)"
    rows = [("Members", f"{len(document['pods'])} pods, numMembers {document['members']}"), ("Order", order)]
    if document["missingWorkloads"]:
        rows.append(("Without a pod", ", ".join(document["missingWorkloads"])))
    if document.get("goneNodes"):
        gone = listed([f"{item['name']} ({counted(item['pods'], 'pod')})" for item in document["goneNodes"]])
        effect = "no node of that name is there any more; what calls cost, and what survives, is without them"
        rows.append(("Nodes gone", f"{gone}: {effect}"))
    rows += [
        (name, text)
        for name, text in (("Mean edge cost", cost_line(document)), ("Calls", calls_line(document)))
        if text
    ]
    if "survival" in document:
        rows += [*survival_lines(document), ("Prices", price_line(document))]
    pairs = [
        f"{document[name]} {what}"
        for name, what in (("pairsOverLimit", "above their maxNetworkCost"), ("pairsOfUnknownCost", "of unknown cost"))
        if document.get(name)
    ]
    if pairs:
        rows.append(("Pairs of pods", f"{document['pairs']}, {', '.join(pairs)}"))
    rows.append(("Network data", network_text(document["network"])))
    rows += [("Problem", problem) for problem in document["network"]["problems"]]
    return rows + unread_fields(document)


def unread_fields(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the reader may not list, and what that means for the explanation."""
    return [("Not read", f"{item['resource']}: you may not list them; {item['effect']}") for item in document["unread"]]


def _without_node(page: Page, pods: Sequence[Mapping[str, Any]]) -> None:
    """Pods that wait, or whose place Berth did not choose; equal causes once."""
    together: dict[str, list[str]] = {}
    for row in pods:
        if row["state"] != "placed":
            together.setdefault(row["message"], []).append(row["name"])
    if together:
        page.heading("NOT PLACED BY BERTH, OR WAITING")
    for message, names in together.items():
        page.line(listed(names, limit=6))
        page.line(message, indent=4)


_EDGE_COLUMNS: Final = {
    "COST": "COST is what a call costs, as Services route it",
    "MIN": "MIN the cheapest pair of pods",
    "MAX": "MAX the dearest one",
    "CROSS-ZONE": "CROSS-ZONE the share of calls that leave their zone",
    "OVER": "OVER the pairs of pods that call each other beyond their LIMIT",
    "NODE": "NODE the share of calls on the same node",
    "ZONE": "ZONE the share of those in the same zone",
}
"""What columns of dependencies mean that do not say it."""


def _edges(page: Page, edges: Sequence[Mapping[str, Any]]) -> None:
    page.heading("DEPENDENCIES")
    rows = [
        (
            f"{edge['from']} > {edge['to']}",
            f"{edge['callers']} x {edge['called']}",
            *_costs(edge),
            share_text(edge["crossZoneShare"]) if edge.get("crossZoneShare") else "",
            "" if _all_called(edge) else edge["routing"],
            number(edge.get("maxNetworkCost")),
            counted(edge["pairsOverLimit"], "pair") if edge.get("pairsOverLimit") else "",
            *_shares(edge),
            _worst(edge),
        )
        for edge in edges[:MAX_EDGES]
    ]
    columns = (
        *("EDGE", "PODS", "COST", "MIN", "MAX", "CROSS-ZONE", "CALLS", "LIMIT", "OVER"),
        *("NODE", "ZONE", "FARTHEST PAIR"),
    )
    shown = [index for index, name in enumerate(columns) if any(row[index] for row in rows)]
    page.table(
        [columns[index] for index in shown],
        [[row[index] for index in shown] for row in rows],
        fold=("EDGE", "FARTHEST PAIR"),
    )
    names = {columns[index] for index in shown}
    page.line("; ".join(text for name, text in _EDGE_COLUMNS.items() if name in names))
    if len(edges) > MAX_EDGES:
        page.line(f"and {len(edges) - MAX_EDGES} more; -o json lists them all")


def _all_called(edge: Mapping[str, Any]) -> bool:
    """Whether every pair of pods is a call; where a Service keeps calls near, pairs say nothing about them."""
    return bool(edge.get("routing", "All") == "All")


def _costs(edge: Mapping[str, Any]) -> tuple[str, str, str]:
    """Mean of the calls, the cheapest and the dearest of them; ``?`` where a cost is not known."""
    if not edge["pairs"]:
        return "", "", ""
    mean = number(edge.get("cost", edge["meanCost"])) + ("" if edge["known"] else "?")
    if not _all_called(edge):
        return mean, "", ""
    return mean, number(edge["lowestCost"]), number(edge["highestCost"])


def _shares(edge: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{edge[near] / edge['pairs']:.0%}" if edge.get(near) and _all_called(edge) else ""
        for near in ("sameNode", "sameZone")
    )


def _worst(edge: Mapping[str, Any]) -> str:
    if not edge["pairs"]:
        return "no pair has nodes yet"
    worst = edge["worst"]
    if not edge["elsewhere"] or not _all_called(edge):
        return ""
    return f"{worst['fromNode']} > {worst['toNode']}"
