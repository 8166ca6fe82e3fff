"""docs/benchmarks/phare.md from the prose in template.md and the stored results."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.phare import plots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Row = dict[str, Any]
DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"

TEMPLATE = Path(__file__).with_name("template.md")
"""The report's prose; `{name}` stands for table, plots and origin of one experiment."""

NOT_RUN = "*Not run yet: `python -m bench.phare run {}`.*"


def _load(results: Path, name: str) -> tuple[list[Row], str]:
    path = results / f"{name}.json"
    if not path.exists():
        return [], ""
    stored = json.loads(path.read_text())
    machine = stored["about"]["machine"]
    about = (
        f"`{stored['about']['command']}`; {machine['processor']}, Python {machine['python']}, "
        f"NumPy {machine['numpy']}, "
        f"load average at the end {machine['load'][0]}."
    )
    return stored["rows"], about


def _table(head: list[str], rows: Iterable[Iterable[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _groups(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row)
    return found


def _mean(rows: list[Row], pick: Callable[[Row], float], digits: int = 2) -> str:
    return f"{statistics.fmean(pick(row) for row in rows):.{digits}f}"


def _median(rows: list[Row], clock: str, figure: str) -> str:
    return f"{statistics.median(row[clock][figure] for row in rows):.2f}"


def _scale(rows: list[Row]) -> str:
    cells = []
    for (clusters, multiplier, strategy), group in _groups(rows, "clusters", "multiplier", "strategy").items():
        short = [row["at_most"] - row["placed"] for row in group]
        cells.append(
            [
                clusters,
                f"x{multiplier}",
                strategy,
                len(group),
                _mean(group, lambda row: row["placed"]),
                _mean(group, lambda row: row["at_most"]),
                f"{sum(value > 0 for value in short)} of {len(group)} (most {max(short)})",
                _mean(group, lambda row: row["gap"], 3),
                f"{_median(group, 'wall', 'median')} / {_median(group, 'wall', 'p99')}",
                f"{_median(group, 'processor', 'median')} / {_median(group, 'processor', 'p99')}",
            ]
        )
    head = ["clusters", "bandwidth", "strategy", "samples", "placed", "at most", "samples short", "gap %"]
    return _table([*head, "wall ms, median / p99", "processor ms, median / p99"], cells)


def _links(rows: list[Row]) -> str:
    cells = []
    for (strategy,), group in _groups(rows, "strategy").items():
        use = [value for row in group for value in row["links"]]
        cells.append(
            [
                strategy,
                len(group),
                _mean(group, lambda row: row["placed"], 1),
                f"{100 * statistics.fmean(use):.1f}",
                f"{100 * max(use):.1f}",
                f"{100 * statistics.fmean(value for row in group for value in row['cores']):.1f}",
            ]
        )
    return _table(["strategy", "samples", "placed", "mean link use %", "most used link %", "mean core use %"], cells)


def _fill(rows: list[Row]) -> str:
    cells = []
    for row in rows:
        used = [value for value in row["use"] if value > 0]
        full = sum(value >= 0.9 for value in used)
        cells.append([row["strategy"], row["applications"], row["nodes"], row["least"], full, f"{100 * min(used):.0f}"])
    head = [
        "strategy",
        "applications",
        "nodes used",
        "fewest possible",
        "of them 90 % full or more",
        "emptiest used node %",
    ]
    return _table(head, cells)


def _opportunistic(rows: list[Row]) -> str:
    columns = [(strategy, threshold) for strategy in ("berth", "phare") for threshold in (1.0, 0.75, 0.5)]
    names = [f"{name}, {'no threshold' if limit == 1 else f'threshold {limit:.0%}'}" for name, limit in columns]
    cells = []
    for (small,), group in _groups(rows, "small").items():
        by = {(row["strategy"], row["threshold"]): row["placed"] for row in group}
        cells.append([small, *(by.get(column, "") for column in columns)])
    return _table(["small nodes", *names], cells)


def _graphs(rows: list[Row]) -> str:
    cells = [
        [
            graph,
            f"x{multiplier}",
            len(group),
            _mean(group, lambda row: row["placed"], 1),
            _mean(group, lambda row: row["gap"], 3),
        ]
        for (graph, multiplier), group in _groups(rows, "graph", "multiplier").items()
    ]
    return _table(["graph", "bandwidth", "samples", "placed", "gap %"], cells)


def _tight(rows: list[Row]) -> str:
    cells = [
        [
            case,
            variant,
            len(group),
            _mean(group, lambda row: row["placed"], 1),
            _mean(group, lambda row: row["at_most"], 1),
            _mean(group, lambda row: row["gap"]),
            f"{_median(group, 'processor', 'median')} / {_median(group, 'processor', 'p99')}",
        ]
        for (case, variant), group in _groups(rows, "case", "variant").items()
    ]
    return _table(["case", "variant", "samples", "placed", "at most", "gap %", "processor ms, median / p99"], cells)


def _sizes(rows: list[Row]) -> str:
    cells = [
        [
            row["nodes"],
            int(row["cores"]),
            row["components"],
            f"{row['placed']} of {row['groups']}",
            row["edge_cost"],
            f"{row['wall']['median']:.2f} / {row['wall']['max']:.2f}",
            f"{row['processor']['median']:.2f} / {row['processor']['max']:.2f}",
        ]
        for row in rows
    ]
    head = ["nodes", "milli-cores each", "components", "groups placed", "mean edge cost"]
    return _table([*head, "wall ms, median / max", "processor ms, median / max"], cells)


def _saturation(rows: list[Row]) -> str:
    cells = []
    for (strategy,), group in _groups(rows, "strategy").items():
        first = [row["placed"].index(0) if 0 in row["placed"] else len(row["placed"]) for row in group]
        placed = [sum(row["placed"]) for row in group]
        mean = f"{statistics.fmean(placed):.2f}"
        cells.append([strategy, len(group), mean, min(placed), min(first), f"{statistics.fmean(first):.1f}"])
    head = ["strategy", "samples", "mean placed of 500", "fewest", "earliest failure at", "mean first failure at"]
    return _table(head, cells)


SECTIONS: dict[str, tuple[Callable[[list[Row]], str], Callable[[list[Row], Path], list[str]] | None]] = {
    "scale": (_scale, plots.scale),
    "saturation": (_saturation, plots.saturation),
    "links": (_links, plots.links),
    "fill": (_fill, plots.fill),
    "opportunistic": (_opportunistic, None),
    "graphs": (_graphs, None),
    "tight": (_tight, None),
    "sizes": (_sizes, None),
}
"""Table and plot of each experiment."""


def write_report(results: Path) -> None:
    """Write docs/benchmarks/phare.md and its plots from the stored results."""
    DOCS.mkdir(parents=True, exist_ok=True)
    text = TEMPLATE.read_text()
    for name, (table, plot) in SECTIONS.items():
        rows, about = _load(results, name)
        if not rows:
            text = text.replace(f"{{{name}}}", NOT_RUN.format(name))
            continue
        images = plot(rows, DOCS) if plot is not None else []
        parts = [table(rows), *(f"![{name}]({image})" for image in images), about]
        text = text.replace(f"{{{name}}}", "\n\n".join(parts))
    (DOCS / "phare.md").write_text(text)
