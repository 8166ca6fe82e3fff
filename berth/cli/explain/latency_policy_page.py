"""The explanation of a LatencyPolicy as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.api.latencypolicy import UserMode
from berth.cli.explain.tables import age_text, unread_fields
from berth.cli.plan.tables import Page

MAX_ROWS = 60


def policy_page(document: Mapping[str, Any], *, width: int, color: bool = False) -> str:
    """A LatencyPolicyExplanation as text."""
    page = Page(width=width, color=color)
    page.heading(f"LatencyPolicy {document['namespace']}/{document['name']}: {document['target']}")
    limits = [
        f"{name} {document[field]} ms"
        for name, field in (("hard", "hardMaxLatency"), ("soft", "softMaxLatency"))
        if document[field] is not None
    ]
    objective = document["objective"] + (", dry run: nothing is moved" if document["dryRun"] else "")
    rows = [("Objective", objective), ("Limits", ", ".join(limits) or "none")]
    rows += [(each["type"], f"{each['status']} {each['reason']}: {each['message']}") for each in document["conditions"]]
    page.fields(rows + unread_fields(document))
    page.heading("NODES")
    users = ("USERS",) if document["users"] == UserMode.PER_USER else ()
    page.table(
        ("NODE", "STATE", "P50", "P90", "BY", "AGE", *users, "PODS", "WHY"),
        [_node(row) for row in document["nodes"][:MAX_ROWS]],
        right=("P50", "P90", "AGE", *users),
        fold=("WHY", "PODS"),
    )
    if len(document["nodes"]) > MAX_ROWS:
        page.line(f"and {len(document['nodes']) - MAX_ROWS} more; -o json has all")
    page.heading("MOVES, THE LAST FIRST")
    if not document["moves"]:
        page.line("none")
        return page.text()
    page.table(
        ("AGE", "POD", "FROM", "TO", "REASON", *users, "OUTCOME", "BEFORE", "EXPECTED", "AFTER", "GAIN"),
        [_move(row, users=bool(users)) for row in document["moves"]],
        right=("AGE", *users, "BEFORE", "EXPECTED", "AFTER", "GAIN"),
    )
    return page.text()


def _node(row: Mapping[str, Any]) -> tuple[str, ...]:
    # Where each user counts, a node is measured by so many of them.
    by = f"{row['source']}, {row['samples']}" if "source" in row else str(row.get("samples", "-"))
    age = age_text(row["ageSeconds"]) if "ageSeconds" in row else "-"
    far = (_far(row, "p50Milliseconds"), _far(row, "p90Milliseconds"))
    users = (str(row["users"]),) if "users" in row else ()
    return (row["name"], row["state"], *far, by, age, *users, ", ".join(row["pods"]) or "-", row["why"])


def _move(row: Mapping[str, Any], *, users: bool) -> tuple[str, ...]:
    figures = (f"{name}Milliseconds" for name in ("before", "expected", "after", "gain"))
    outcome = f"{row['outcome']}, no pod could be created" if row.get("refused") else row["outcome"]
    whom = (str(row.get("users", "-")),) if users else ()
    way = (row["pod"], row["sourceNode"], row["targetNode"], row["reason"], *whom, outcome)
    return (age_text(row["ageSeconds"]), *way, *(_far(row, name) for name in figures))


def _far(row: Mapping[str, Any], name: str) -> str:
    return f"{row[name]:.1f} ms" if name in row else "-"
