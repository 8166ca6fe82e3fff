"""The explanation of a LatencyPolicy as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from berth.api.latencypolicy import UserMode
from berth.api.text import counted
from berth.cli.explain.tables import age_text, unread_fields
from berth.cli.plan.tables import Page

MAX_ROWS = 60


def policy_page(document: Mapping[str, Any], *, width: int | None, color: bool = False) -> str:
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
    search = document["search"]
    why = f": {search['why']}; next round not before {search['nextRound']}" if search is not None else ""
    rows.insert(1, ("Decisions", document["decisions"] + why))
    rows += [(each["type"], f"{each['status']} {each['reason']}: {each['message']}") for each in document["conditions"]]
    page.fields(rows + unread_fields(document))
    users = ("USERS",) if document["users"] == UserMode.PER_USER else ()
    page.heading("NODES")
    _nodes(page, document["nodes"], users)
    page.heading("MOVES, THE LAST FIRST")
    if document["moves"]:
        _moves(page, document["moves"], users)
    else:
        page.line("none")
    return page.text()


def _nodes(page: Page, nodes: Sequence[Mapping[str, Any]], users: tuple[str, ...]) -> None:
    columns, fold = ("NODE", "STATE", "P50", "P90", "BY", "AGE", *users, "PODS", "WHY"), ("WHY", "PODS")
    rows = [_node(row) for row in nodes[:MAX_ROWS]]
    if page.fits(columns, rows, fold=fold):
        page.table(columns, rows, right=("P50", "P90", "AGE", *users), fold=fold)
    else:
        page.fields((row["name"], _node_in_words(row)) for row in nodes[:MAX_ROWS])
    if len(nodes) > MAX_ROWS:
        page.line(f"and {len(nodes) - MAX_ROWS} more; -o json has all")


def _moves(page: Page, moves: Sequence[Mapping[str, Any]], users: tuple[str, ...]) -> None:
    figures = (*users, "OUTCOME", "BEFORE", "EXPECTED", "AFTER", "GAIN")
    columns = ("AGE", "POD", "FROM", "TO", "REASON", *figures)
    rows = [_move(row, users=bool(users)) for row in moves]
    if page.fits(columns, rows):
        page.table(columns, rows, right=("AGE", *users, "BEFORE", "EXPECTED", "AFTER", "GAIN"))
    else:
        page.fields((age_text(row["ageSeconds"]), _move_in_words(row, users=bool(users))) for row in moves)


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


def _node_in_words(row: Mapping[str, Any]) -> str:
    """A node where there is no room for columns."""
    parts = [f"{row['state']}: {row['why']}"]
    if "p50Milliseconds" in row:
        by = f" by {row['source']} in {counted(row['samples'], 'round trip')}" if "source" in row else ""
        age = f", {age_text(row['ageSeconds'])} ago" if "ageSeconds" in row else ""
        parts.append(f"P50 {_far(row, 'p50Milliseconds')}, P90 {_far(row, 'p90Milliseconds')}{by}{age}")
    parts += [counted(row["users"], "user")] if "users" in row else []
    parts += [f"pods {', '.join(row['pods'])}"] if row["pods"] else []
    return "; ".join(parts)


def _move_in_words(row: Mapping[str, Any], *, users: bool) -> str:
    """A move where there is no room for columns."""
    _, pod, source, target, reason, *whom, outcome, before, expected, after, gain = _move(row, users=users)
    parts = [f"{pod} from {source} to {target}", *(f"users {each}" for each in whom), f"{reason}, {outcome}"]
    return "; ".join([*parts, f"before {before}, expected {expected}, after {after}, gain {gain}"])


def _far(row: Mapping[str, Any], name: str) -> str:
    return f"{row[name]:.1f} ms" if name in row else "-"
