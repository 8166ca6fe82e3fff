"""What users had over time, as a plot in the terminal and as an SVG file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt

mpl.use("svg")

COLOURS = ("#0b6e99", "#c0562f")
HELD = 2
"""Columns without a request that a line goes on over."""
BOTH = "#"
"""Stands in the terminal where two series meet."""


class Point(NamedTuple):
    """One request."""

    time: float
    """seconds since the beginning"""
    value: float
    """milliseconds"""


class Mark(NamedTuple):
    """Something that happened."""

    time: float
    """seconds since the beginning"""
    text: str
    """what"""


Series = Mapping[str, Sequence[Point]]


def text_plot(series: Series, marks: Sequence[Mark], *, width: int = 72, height: int = 9) -> str:
    """A plot of characters: of each column the median, by the first letter of the series; marks by number.

    A column in which nobody asked has the median of the one just before.

    Args:
        series: points by name, each with at least one point.
        marks: in the order of their times.
        width: columns.
        height: rows; the lowest is 0.
    """
    points = [point for each in series.values() for point in each]
    end = max([point.time for point in points] + [mark.time for mark in marks]) or 1.0
    drawn = {name: _medians(each, end, width) for name, each in series.items()}
    step = _step(max(value for each in drawn.values() for value in each.values()) / (height - 1))
    top = step * (height - 1)
    rows = [[" "] * width for _ in range(height)]

    for name, each in drawn.items():
        for at, value in each.items():
            row = rows[height - 1 - round(value / top * (height - 1))]
            row[at] = name[0] if row[at] == " " else BOTH
    below = [" "] * width
    for number, mark in enumerate(marks, 1):
        # Of two that fall upon each other the later one moves on.
        free = [at for at in range(_column(mark.time, end, width), width) if below[at] == " "]
        below[free[0] if free else width - 1] = str(number)
    scale = [step * (height - 1 - number) for number in range(height)]
    lines = [f"{value:>5} |{''.join(row)}".rstrip() for value, row in zip(scale, rows, strict=True)]
    names = ", ".join(f"{name[0]} = {name}" for name in series)
    legend = [f"{number:>6} {mark.text} ({mark.time:.0f} s)" for number, mark in enumerate(marks, 1)]
    axis = [f"      +{'-' * width}", f"       {''.join(below)}".rstrip()]
    return "\n".join([f"   ms  {names}, {BOTH} = both", *lines, *axis, *legend])


def _column(time: float, end: float, width: int) -> int:
    return min(int(time / end * width), width - 1)


def _medians(points: Sequence[Point], end: float, width: int) -> dict[int, float]:
    columns: dict[int, list[float]] = {}
    for point in points:
        columns.setdefault(_column(point.time, end, width), []).append(point.value)
    found = {at: median_low(values) for at, values in columns.items()}
    # A client that waits for its answers asks less often than there are columns.
    last = {at + more: value for more in range(HELD, 0, -1) for at, value in found.items() if at + more < max(found)}
    return last | found


def _step(least: float) -> int:
    """The next number of those that scales have: 1, 2, 5, 10, 20, 25, 50, 100, ..."""
    tens = (10, 100, 1000, 10_000, 100_000)
    steps = [1, 2, 5, *(ten * factor // 2 for ten in tens for factor in (2, 4, 5, 10))]
    return next(step for step in steps if step >= least)


def write_svg(path: Path, series: Series, marks: Sequence[Mark], *, limit: float, title: str) -> None:
    """Write the plot as SVG.

    Args:
        path: of the file.
        series: points by name.
        marks: what happened.
        limit: a line across, in milliseconds.
        title: above it.
    """
    figure, axes = plt.subplots(figsize=(9, 4))
    for (name, each), colour in zip(series.items(), COLOURS, strict=False):
        axes.plot([point.time for point in each], [point.value for point in each], ".", color=colour, label=name)
    axes.axhline(limit, color="#888888", linestyle="--", linewidth=1, label="soft limit")
    axes.set_ylim(bottom=0)
    for number, mark in enumerate(marks, 1):
        axes.axvline(mark.time, color="#888888", linewidth=0.8)
        axes.annotate(str(number), (mark.time, axes.get_ylim()[1]), ha="center", va="bottom", fontsize=9)
    told = "   ".join(f"{number} {mark.text}" for number, mark in enumerate(marks, 1))
    axes.set_title(f"{title}\n", fontsize=11)
    axes.set_xlabel(f"seconds\n{told}", fontsize=8)
    axes.set_ylabel("round trip of users, ms")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
