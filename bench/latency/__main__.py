"""Near the user, simulated: ``python -m bench.latency [--runs 1000] [--processes 2] [--quick]``.

The published rules first, beside what was published; then Berth's own decisions, beside their goals; then many users.
The exit status is 1 if a goal is missed. Nothing is measured but counted: the figures do not depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.latency import tables
from bench.latency.cells import CALM, CELLS, CROWD, Row, calm, crowd, own, published
from bench.latency.published import MODES
from bench.latency.scenarios import SCENARIOS

QUICK: Final = 20
"""Runs of a cell with ``--quick``."""


def jobs() -> list[tuple[str, Callable[[int], Any]]]:
    """Return what is run, each with its name and the run of one seed."""
    found: list[tuple[str, Callable[[int], Any]]] = []
    for mode in MODES:
        found += [(f"{mode} {scenario.name}", partial(published, mode, scenario)) for scenario in SCENARIOS]
    found += [(cell.name, partial(own, cell)) for cell in CELLS]
    found += [(name, partial(calm, name)) for name in CALM]
    return found + [(f"crowd {share}", partial(crowd, share)) for share in CROWD]


def measure(runs: int, processes: int, only: Sequence[str]) -> dict[str, Row]:
    """Return the rows by name; seeds are 0 to `runs` - 1 in each."""
    rows: dict[str, Row] = {}
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for name, run in jobs():
            if not only or name.startswith(tuple(only)):
                rows[name] = tables.row(pool.imap(run, range(runs), chunksize=5))
                print(f"{name}: {rows[name]}", file=sys.stderr, flush=True)
    return rows


def main(arguments: Iterable[str] | None = None) -> int:
    """Run from the command line; exit status 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="runs of each cell")
    parser.add_argument("--processes", type=int, default=2, help="processes that share them")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} runs of each cell")
    parser.add_argument("--only", action="append", default=[], help="cells whose names begin so")
    parser.add_argument("--json", type=Path, help="write the figures as JSON")
    given = parser.parse_args(None if arguments is None else list(arguments))
    if given.only and not any(name.startswith(tuple(given.only)) for name, _ in jobs()):
        parser.error(f"no cell begins with {' or '.join(given.only)}: {', '.join(name for name, _ in jobs())}")
    rows = measure(QUICK if given.quick else given.runs, given.processes, given.only)
    print(tables.page(rows))
    missed = tables.missed(rows)
    print("\n".join(missed) or "All goals are met.")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
