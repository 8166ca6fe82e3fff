"""The costs between zones, and segments of a zone, as text: a matrix, and the pairs one by one where they are few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from berth.api.text import counted
from berth.cli.explain.tables import age_text, unread_fields
from berth.cli.plan.tables import Page

MAX_PAIRS: Final = 42
"""Pairs that are shown one by one: those of seven zones."""
UNKNOWN: Final = "?"
"""In the matrix: no cost is known."""
SAME: Final = "."
"""In the matrix: one zone and itself."""
_PADDING: Final = 3
_OUTER: Final = {"ZONE": "cost of the regions", "SEGMENT": "as inside the zone"}
"""What a pair of one kind of places is noted with that has its cost from the places around."""
_FIGURES: Final = ("P90 MS", "MIN MS", "MAX MS", "SAMPLES", "AGE")


def topology_page(document: Mapping[str, Any], *, width: int | None, color: bool = False) -> str:
    """Return the document for people, ``width`` columns wide at most where that is possible."""
    page = Page(width=width, color=color)
    page.heading(f"NetworkTopology {document['namespace']}/{document['name']}")
    rows = [("Costs", ", ".join(document["weightSets"]) or "none")]
    if "source" in document:
        rows.append(("Source", f"{document['source']['reason']}: {document['source']['message']}"))
    if "roundTrips" in document:
        rows.append(("Round trips", document["roundTrips"]))
    if "dataAgeSeconds" in document:
        rows.append(("Newest data", f"{age_text(max(0, document['dataAgeSeconds']))} old"))
    page.fields([*rows, *unread_fields(document)])
    figures = "roundTrips" not in document
    names, pairs = [zone["name"] for zone in document["zones"]], document["pairs"]
    if pairs:
        page.heading("COST FROM ROW TO COLUMN")
        _section(page, "ZONE", names, pairs, figures=figures)
        if left := document.get("zonesLeft", 0):
            page.line(f"and {counted(left, 'zone')} more")
    else:
        page.line("Fewer than two zones have nodes.")
    for zone in document.get("segments", ()):
        where = "/".join(name for name in (zone["region"], zone["zone"]) if name)
        page.heading(f"SEGMENTS OF {where}: COST FROM ROW TO COLUMN")
        _section(page, "SEGMENT", zone["names"], zone["pairs"], figures=figures)
        if zone["left"]:
            page.line(f"and {counted(zone['left'], 'segment')} more")
    return page.text()


def _section(page: Page, kind: str, names: Sequence[str], pairs: Sequence[Mapping[str, Any]], *, figures: bool) -> None:
    """The matrix of some places, and their pairs one by one or summed up."""
    _matrix(page, kind, names, pairs)
    outer = {"ZONE": "r that of the regions", "SEGMENT": "z that inside the zone"}[kind]
    page.line(f"* worked out from other pairs, {outer}, {UNKNOWN} not known")
    if len(pairs) <= MAX_PAIRS:
        page.heading("PAIRS")
        columns = ("FROM", "TO", "COST", *(_FIGURES if figures else ()), "NOTE")
        rows = [_pair(pair, kind, figures=figures) for pair in pairs]
        page.table(columns, rows, fold=("FROM", "TO", "NOTE"))
    else:
        page.line(f"{_summary(pairs, figures=figures)}; -o json has each of the {counted(len(pairs), 'pair')}")


def _matrix(page: Page, kind: str, names: Sequence[str], pairs: Sequence[Mapping[str, Any]]) -> None:
    """Columns have the numbers of the rows; those that do not fit beside each other follow below."""
    costs = {(pair["origin"], pair["destination"]): _cell(pair, kind) for pair in pairs}
    labels = [f"{number} {name}" for number, name in enumerate(names, start=1)]
    cell = max(len(str(len(names))), *map(len, costs.values())) + _PADDING
    beside = max(1, (page.width - max(map(len, labels)) - _PADDING) // cell)
    for first in range(0, len(names), beside):
        columns = names[first : first + beside]
        numbers = [str(number) for number in range(first + 1, first + 1 + len(columns))]
        rows = [
            (label, *(SAME if name == column else costs[name, column] for column in columns))
            for label, name in zip(labels, names, strict=True)
        ]
        page.table((kind, *numbers), rows, right=numbers)


def _cell(pair: Mapping[str, Any], kind: str) -> str:
    if "cost" not in pair:
        return UNKNOWN
    outer = "" if pair["level"] == kind.lower() else pair["level"][0]
    return f"{pair['cost']}{outer}{'*' if pair.get('derived') else ''}"


def _pair(pair: Mapping[str, Any], kind: str, *, figures: bool) -> tuple[str, ...]:
    cost = str(pair["cost"]) if "cost" in pair else UNKNOWN
    shown = _figures(pair) if figures else ()
    return (pair["origin"], pair["destination"], cost, *shown, _note(pair, kind))


def _figures(pair: Mapping[str, Any]) -> tuple[str, ...]:
    times = tuple(
        f"{pair[name] / 1000:.2f}" if name in pair else "-"
        for name in ("p90Microseconds", "minMicroseconds", "maxMicroseconds")
    )
    age = age_text(pair["ageSeconds"]) if "ageSeconds" in pair else "-"
    return (*times, str(pair.get("samples", "-")), age)


def _note(pair: Mapping[str, Any], kind: str) -> str:
    notes = []
    if pair.get("unreachable"):
        notes.append("no answer")
    if pair.get("derived"):
        notes.append("by way of others")
    if pair.get("level", kind.lower()) != kind.lower():
        notes.append(_OUTER[kind])
    return ", ".join(notes)


def _summary(pairs: Sequence[Mapping[str, Any]], *, figures: bool) -> str:
    derived = sum(bool(pair.get("derived")) for pair in pairs)
    unknown = sum("cost" not in pair for pair in pairs)
    unmarked = sum("cost" in pair and "derived" not in pair for pair in pairs)
    if figures:
        known = f"{sum('samples' in pair for pair in pairs)} measured"
    else:
        known = f"{len(pairs) - derived - unknown - unmarked} direct"
    if unmarked:
        known += f", {unmarked} direct or worked out"
    return f"{known}, {derived} worked out from others, {unknown} not known"
