"""Interference classes for people: a table, and box plots of slowdowns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from berth.api.interference import InterferenceClass
from berth.api.text import printable
from berth.cli.plan.tables import Page
from berth.scheduling.interference.pairing import NEIGHBOURS

MAX_LISTED: Final = 12
"""Notes and pairs that are shown; -o json has all."""
_SIDES: Final = (("suffers", "sensitivity"), ("causes", "contentiousness"))
_MIN_PLOT: Final = 20
_WIDEST_NAME: Final = 30


def classification_page(document: Mapping[str, Any], *, plot: bool, width: int | None, color: bool = False) -> str:
    """Return the document for people, ``width`` columns wide, with box plots if wanted."""
    page = Page(width=width, color=color)
    columns = ("WORKLOAD", "CLASS", "SENSITIVITY", "FROM LIMIT", "CONTENTIOUSNESS", "FROM LIMIT")
    right = ("SENSITIVITY", "FROM LIMIT", "CONTENTIOUSNESS")
    page.heading(f"CLASSES AT A LIMIT OF {document['qosLimit']:g}")
    page.table(columns, [_row(item) for item in document["workloads"]], fold=("WORKLOAD",), right=right)
    page.heading("WHO FITS BESIDE WHOM")
    classes = [(name, str(len(own)), ", ".join(_neighbours(name))) for name, own in document["classes"].items()]
    page.table(("CLASS", "WORKLOADS", "FITS BESIDE"), classes)
    if plot:
        page.heading("SLOWDOWNS")
        for line in plot_lines(document, page.width):
            page.line(line)
    if document["misjudged"]:
        page.heading("BEYOND THE LIMIT ALTHOUGH THEIR CLASSES FIT")
        rows = [(item["workload"], item["beside"], f"{item['slowdown']:.3f}") for item in document["misjudged"]]
        page.table(("WORKLOAD", "BESIDE", "SLOWDOWN"), rows[:MAX_LISTED])
        _more(page, len(rows))
    if document["notes"]:
        page.heading("NOTES")
        for note in document["notes"][:MAX_LISTED]:
            page.item(note)
        _more(page, len(document["notes"]))
    return page.text()


def _more(page: Page, count: int) -> None:
    if count > MAX_LISTED:
        page.line(f"and {count - MAX_LISTED} more; -o json lists them all")


def _row(item: Mapping[str, Any]) -> tuple[str, ...]:
    figures: list[str] = []
    for _, name in _SIDES:
        found = item.get(name)
        figures += ["?", "?"] if found is None else [f"{found['slowdown']:.3f}", f"{found['fromLimit']:+.3f}"]
    return (item["workload"], item.get("interferenceClass", "?"), *figures)


def _neighbours(name: str) -> tuple[InterferenceClass, ...]:
    return NEIGHBOURS[InterferenceClass(name)]


def plot_lines(document: Mapping[str, Any], width: int) -> list[str]:
    """Return box plots of what each workload suffers and causes, below each other on one axis.

    A box is from the first to the third quartile with the median in it, lines reach to the whiskers, ``o`` is an
    outlier, ``:`` the limit.
    """
    spreads = [item[name] for item in document["workloads"] for _, name in _SIDES if name in item]
    if not spreads:
        return []
    limit = document["qosLimit"]
    values = [limit, 1.0]
    for found in spreads:
        values += [found["lowerWhisker"], found["slowdown"], *found["outliers"]]
    names = [printable(item["workload"]) for item in document["workloads"]]
    label = min(_WIDEST_NAME, max(map(len, names)))
    room = max(_MIN_PLOT, width - label - len("  suffers  "))
    scale = _Scale(min(values), max(values), room)
    lines = []
    for item, own in zip(document["workloads"], names, strict=True):
        for heading, (word, name) in zip((own, ""), _SIDES, strict=True):
            drawn = _drawn(item.get(name), limit, scale)
            lines.append(f"{heading[:label]:{label}}  {word:7}  {drawn}".rstrip())
    axis = scale.axis(limit)
    return [*lines, f"{'':{label}}  {'':7}  {axis}"]


class _Scale:
    """Where slowdowns are on a line of characters."""

    def __init__(self, least: float, most: float, room: int) -> None:
        self._least, self._step, self.room = least, (most - least) / (room - 1), room

    def at(self, value: float) -> int:
        """Place of a value, from 0."""
        return round((value - self._least) / self._step)

    def axis(self, limit: float) -> str:
        """Figures below the line: both ends, and 1 and the limit where there is room."""
        cells = [" "] * self.room
        most = self._least + self._step * (self.room - 1)
        taken: list[tuple[int, int]] = []
        for value in (limit, self._least, most, 1.0):
            text = f"{value:.2f}"
            first = max(0, min(self.room - len(text), self.at(value) - len(text) // 2))
            if all(first > last + 1 or first + len(text) < begin for begin, last in taken):
                cells[first : first + len(text)] = text
                taken.append((first, first + len(text) - 1))
        return "".join(cells).rstrip()


def _drawn(found: Mapping[str, Any] | None, limit: float, scale: _Scale) -> str:
    cells = [" "] * scale.room
    cells[scale.at(limit)] = ":"
    if found is None:
        return "".join(cells)
    for value in found["outliers"]:
        cells[scale.at(value)] = "o"
    low, high = scale.at(found["lowerWhisker"]), scale.at(found["slowdown"])
    cells[low : high + 1] = "─" * (high + 1 - low)
    first, last = scale.at(found["firstQuartile"]), scale.at(found["thirdQuartile"])
    cells[first : last + 1] = "█" * (last + 1 - first)
    cells[scale.at(found["median"])] = "│"
    if low < first:
        cells[low] = "├"
    # Of few values the third quartile may be beyond the whisker: between the greatest that is no outlier and one.
    if high > last:
        cells[high] = "┤"
    return "".join(cells)
