"""Figures of cells, their tables, and what is missed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean, stdev
from typing import Final

from bench.latency.cells import CALM, CELLS, CROWD, SUCCESS_GOAL, Row, goals
from bench.latency.published import MODES
from bench.latency.scenarios import PUBLISHED, PUBLISHED_RUNS, SCENARIOS

LATENCY_OFF: Final = 3.0
"""Milliseconds by which a reproduced latency may differ from the published one."""
ERRORS_OFF: Final = 3.0
"""Standard errors of a published mean by which a reproduced convergence may differ."""
NEVER: Final = ("failed",)
"""Figures that have to be 0."""


def row(outcomes: Iterable[Mapping[str, float | None]]) -> Row:
    """Return mean, standard deviation and count of each figure, over the runs that have it; of `extra` the greatest."""
    columns: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, value in outcome.items():
            columns.setdefault(name, []).extend([] if value is None else [value])
    found = {}
    for name, values in columns.items():
        spread = stdev(values) if len(values) > 1 else 0.0
        middle = max(values) if name == "extra" else fmean(values) if values else float("nan")
        found[name] = [round(middle, 4), round(spread, 4), len(values)]
    return found


def errors_off(found: list[float], published: float) -> float:
    """Return by how many standard errors of a published mean a reproduced one differs."""
    mean, spread, _ = found
    return float(abs(mean - published) / (spread / PUBLISHED_RUNS**0.5))


def missed(rows: Mapping[str, Row]) -> list[str]:
    """Return what is missed, in words."""
    found = []
    for name, own in rows.items():
        for figure, most in goals(name).items():
            if own[figure][0] > most:
                found.append(f"{name}: {figure} {own[figure][0]:.2f}, goal {most:g}")
        if name.split()[0] in MODES:
            found += _not_reproduced(name, own)
            continue
        found += [f"{name}: {figure} {own[figure][0]:g}, goal 0" for figure in NEVER if own[figure][0] > 0]
        if own["extra"][0] > 1:
            found.append(f"{name}: {own['extra'][0]:g} pods too many at once, goal 1")
        if own.get("success", [1.0])[0] < SUCCESS_GOAL:
            found.append(f"{name}: success {own['success'][0]:.4f}, goal {SUCCESS_GOAL}")
        if goals(name) and own.get("within", [1.0])[0] < 0.9:
            found.append(f"{name}: {own['within'][0]:.2f} of the users within the limit, goal 0.90")
    return found


def _not_reproduced(name: str, own: Row) -> list[str]:
    mode, scenario = name.split()
    stated = PUBLISHED[mode][[each.name for each in SCENARIOS].index(scenario)]
    found = []
    if abs(own["latency"][0] - stated.latency) > LATENCY_OFF:
        found.append(f"{name}: latency {own['latency'][0]:.2f}, published {stated.latency}")
    off = errors_off(own["convergence"], stated.convergence)
    if off > ERRORS_OFF:
        found.append(
            f"{name}: convergence {own['convergence'][0]:.2f}, published {stated.convergence}: {off:.1f} errors"
        )
    return found


def page(rows: Mapping[str, Row]) -> str:
    """Return the tables of all rows that there are, in Markdown."""
    parts = [_published(rows), _own(rows), _calm(rows), _crowd(rows)]
    return "\n\n".join(part for part in parts if part.count("\n") > 1)


def _table(heads: list[str], lines: Iterable[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *lines])


def _published(rows: Mapping[str, Row]) -> str:
    heads = ["rule", "latency", "published", "convergence", "published", "errors", "success", "first 300 s", "moves"]
    lines = []
    for mode in MODES:
        for scenario, stated in zip(SCENARIOS, PUBLISHED[mode], strict=True):
            if own := rows.get(f"{mode} {scenario.name}"):
                off = errors_off(own["convergence"], stated.convergence)
                lines.append([
                    f"{mode} {scenario.name}", f"{own['latency'][0]:.2f}", f"{stated.latency}",
                    f"{own['convergence'][0]:.1f}", f"{stated.convergence}", f"{off:.1f}",
                    f"{100 * own['success'][0]:.0f} %", f"{own['first'][0]:.1f}", f"{own['moves'][0]:.2f}",
                ])  # fmt: skip
    return _table([*heads, "failed"], [[*line, f"{rows[line[0]]['failed'][0]:.1f}"] for line in lines])


def _against(own: Row, name: str, figure: str, places: int) -> str:
    most = goals(name).get(figure)
    return f"{own[figure][0]:.{places}f}" + ("" if most is None else f" (≤ {most:g})")


def _own(rows: Mapping[str, Row]) -> str:
    heads = ["goal, p, scenario", "latency", "convergence", "moves", "given up", "success", "first 300 s"]
    lines = []
    for name in (cell.name for cell in CELLS):
        if own := rows.get(name):
            figures = [
                _against(own, name, each, 2 if each == "moves" else 1) for each in ("latency", "convergence", "moves")
            ]
            success, first = f"{100 * own['success'][0]:.1f} %", _against(own, name, "first", 1)
            lines.append([name, *figures, f"{own['cancelled'][0]:.2f}", success, first])
    return _table(heads, lines)


def _calm(rows: Mapping[str, Row]) -> str:
    lines = [
        [name, _against(rows[name], name, "moves", 2), f"{rows[name]['cancelled'][0]:.2f}"]
        for name in CALM
        if name in rows
    ]
    return _table(["an hour without need", "moves", "given up"], lines)


def _crowd(rows: Mapping[str, Row]) -> str:
    heads = ["p", "by chance", "mean", "over the optimum", "convergence", "moves", "within the limit"]
    heads += ["then over the optimum", "convergence", "moves"]
    lines = []
    for share in CROWD:
        name = f"crowd {share}"
        if own := rows.get(name):
            before = [
                _against(own, name, "ratio", 3),
                _against(own, name, "convergence", 1),
                _against(own, name, "moves", 2),
            ]
            after = [f"{own['ratio then'][0]:.3f}"]
            after += [_against(own, name, "convergence then", 1), _against(own, name, "moves then", 2)]
            within = f"{100 * own['within'][0]:.0f} %"
            lines.append([f"{share:g}", f"{own['start'][0]:.1f}", f"{own['mean'][0]:.1f}", *before, within, *after])
    return _table(heads, lines)
