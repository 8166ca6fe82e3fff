"""Plots of the reproduced experiments, as small SVG files next to the report."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "berth"  # Same figures, same file.

Row = dict[str, Any]
COLOURS = {"berth": "#0b6e99", "phare": "#c0562f"}


def _save(name: str, folder: Path) -> str:
    plt.tight_layout()
    plt.savefig(folder / name, metadata={"Date": None})
    plt.close()
    return name


def _panel(axes: Axes, title: str, across: str, up: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(visible=True, alpha=0.3)


def scale(rows: list[Row], folder: Path) -> list[str]:
    """Plot planning time and cost gap against the number of clusters."""
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    for strategy, colour in COLOURS.items():
        for multiplier, style in ((1, "-"), (100, "--")):
            mine = [row for row in rows if row["strategy"] == strategy and row["multiplier"] == multiplier]
            sizes = sorted({row["clusters"] for row in mine})
            by = [[row for row in mine if row["clusters"] == size] for size in sizes]
            label = f"{strategy}, x{multiplier}"
            times = [statistics.median(row["processor"]["median"] for row in group) for group in by]
            left.plot(sizes, times, style, color=colour, label=label, marker=".")
            right.plot(
                sizes, [statistics.fmean(row["gap"] for row in group) for group in by], style, color=colour, marker="."
            )
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
    _panel(left, "processor time per application", "clusters", "ms, median")
    _panel(right, "cost above the lower bound", "clusters", "%")
    left.legend(fontsize=8)
    return [_save("phare-scale.svg", folder)]


def saturation(rows: list[Row], folder: Path) -> list[str]:
    """Plot the share of samples in which the n-th application found a place."""
    _, axes = plt.subplots(figsize=(6, 3))
    for strategy, colour in COLOURS.items():
        mine = [row["placed"] for row in rows if row["strategy"] == strategy]
        if mine:
            share = [100 * statistics.fmean(values) for values in zip(*mine, strict=True)]
            axes.plot(range(1, len(share) + 1), share, color=colour, label=strategy, linewidth=1)
    axes.set_xlim(300, 360)
    _panel(axes, "100 clusters", "application, in order of arrival", "placed, % of samples")
    axes.legend(fontsize=8)
    return [_save("phare-saturation.svg", folder)]


def links(rows: list[Row], folder: Path) -> list[str]:
    """Plot link use of every cluster, sorted, one line per sample."""
    _, axes = plt.subplots(figsize=(6, 3))
    for strategy, colour in COLOURS.items():
        for number, row in enumerate(row for row in rows if row["strategy"] == strategy):
            use = sorted((100 * value for value in row["links"]), reverse=True)
            axes.plot(range(1, len(use) + 1), use, color=colour, linewidth=1, label=strategy if number == 0 else None)
    _panel(axes, "bandwidth x100, threshold 75 %", "cluster, most used first", "link use, %")
    axes.legend(fontsize=8)
    return [_save("phare-links.svg", folder)]


def fill(rows: list[Row], folder: Path) -> list[str]:
    """Plot core use of the nodes after 20, 40, 60 and 80 applications."""
    _, panels = plt.subplots(2, 4, figsize=(10, 4), sharex=True, sharey=True)
    for line, strategy in zip(panels, COLOURS, strict=True):
        for axes, row in zip(line, [row for row in rows if row["strategy"] == strategy], strict=False):
            use = [100 * value for value in row["use"][:20]]
            axes.bar(range(1, len(use) + 1), use, color=COLOURS[strategy])
            _panel(axes, f"{strategy}, {row['applications']} applications", "", "cores used, %")
            axes.label_outer()
    return [_save("phare-fill.svg", folder)]
