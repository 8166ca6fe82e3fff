"""Files of run times: CSV with a run a line, or JSON with a table."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from unicodedata import category

COLUMNS: Final = ("workload", "beside", "seconds")
"""Columns that a CSV file must have."""
ALONE: Final = "isolated_runtime_s"
"""Field of a JSON file: seconds by workload."""
BESIDE: Final = "corun_runtime_s"
"""Field of a JSON file: seconds by workload and neighbour."""


class RunTimesError(ValueError):
    """A file does not hold run times; the text says where and why."""


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Run times in seconds, of each combination one or more."""

    alone: dict[str, list[float]] = field(default_factory=dict)
    """by workload"""
    beside: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """by workload and neighbour"""


def read_run_times(text: str) -> RunTimes:
    """Return the run times that a file holds: JSON if it begins with a brace, else CSV.

    Raises:
        RunTimesError: it holds none, or something is no run time.
    """
    text = text.removeprefix("\ufeff")
    times = _read_json(text) if text.lstrip().startswith("{") else _read_csv(text)
    if not times.alone:
        raise RunTimesError(
            f"no run time of a workload alone; a CSV file has the columns {','.join(COLUMNS)}, with an empty beside "
            f"for a run alone, a JSON file the fields {ALONE} and {BESIDE}"
        )
    return times


def _read_csv(text: str) -> RunTimes:
    times = RunTimes()
    lines = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
    try:
        heading = [name.strip().lower() for name in next(lines, [])]
        missing = [name for name in COLUMNS if name not in heading]
        if missing:
            raise RunTimesError(f"line 1: no column {' and no column '.join(missing)}; write {','.join(COLUMNS)}")
        twice = [name for name in COLUMNS if heading.count(name) > 1]
        if twice:
            raise RunTimesError(f"line 1: two columns {' and two columns '.join(twice)}; leave one of them out")
        places = [heading.index(name) for name in COLUMNS]
        for cells in lines:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"line {lines.line_num}"
            if len(cells) <= max(places):
                raise RunTimesError(f"{where}: {len(cells)} cells, the heading has {len(heading)}")
            if any(cell.strip() for cell in cells[len(heading) :]):
                what = f"{where}: {len(cells)} cells, the heading has {len(heading)}"
                raise RunTimesError(f"{what}; write 5.25 or, in quotes, names that have a comma")
            workload, beside, seconds = (cells[place].strip() for place in places)
            if not workload:
                raise RunTimesError(f"{where}: no workload")
            _named(workload, where, "workload")
            if beside:
                _named(beside, where, "neighbour")
            _add(times, workload, beside, _seconds(seconds, where))
    except csv.Error as error:
        raise RunTimesError(f"line {lines.line_num}: {error}") from error
    return times


def _read_json(text: str) -> RunTimes:
    try:
        document = json.loads(text, object_pairs_hook=_once)
    except RunTimesError:
        raise
    except (ValueError, RecursionError) as error:
        raise RunTimesError(f"no JSON: {error}") from error
    times = RunTimes()
    for workload, values in _fields(document, ALONE).items():
        _named(workload, ALONE, "workload")
        for value in _samples(values):
            _add(times, workload, "", _seconds(value, f"{ALONE}.{workload}"))
    for workload, row in _fields(document, BESIDE).items():
        _named(workload, BESIDE, "workload")
        if not isinstance(row, Mapping):
            raise RunTimesError(f"{BESIDE}.{workload}: write a map of neighbours and seconds")
        for neighbour, values in row.items():
            _named(neighbour, f"{BESIDE}.{workload}", "neighbour")
            for value in _samples(values):
                _add(times, workload, neighbour, _seconds(value, f"{BESIDE}.{workload}.{neighbour}"))
    return times


def _fields(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name, {})
    if not isinstance(found, Mapping):
        raise RunTimesError(f"{name}: write a map of workloads")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON whose names differ: of two alike the library drops the first without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise RunTimesError(f"{name!r} stands twice in one object; write a list of several runs")
    return found


def _named(name: str, where: str, what: str) -> None:
    """See that something has a name: without one, a run beside a neighbour is a run alone."""
    # Half of a character, which JSON can escape, cannot be written to any answer; others would write to the terminal.
    if not name.strip() or any(category(each) in ("Cc", "Cs") for each in name):
        raise RunTimesError(f"{where}: {name!r} is no name of a {what}")


def _samples(values: Any) -> list[Any]:
    """The run times of one combination; null for one that was not measured."""
    if values is None:
        return []
    return values if isinstance(values, list) else [values]


def _seconds(value: Any, where: str) -> float:
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise RunTimesError(f"{where}: {value!r} is no run time; write seconds above 0")
    return seconds


def _add(times: RunTimes, workload: str, beside: str, seconds: float) -> None:
    if beside:
        times.beside.setdefault(workload, {}).setdefault(beside, []).append(seconds)
    else:
        times.alone.setdefault(workload, []).append(seconds)
