"""Command line: `python -m bench.phare run [NAME ...] [--samples N]` and `python -m bench.phare report`."""

from __future__ import annotations

import os

# One thread, as stated with the results; NumPy reads this when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import platform
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def _machine() -> dict[str, object]:
    """Return what the numbers were measured on."""
    import numpy as np

    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [line.split(":", 1)[1].strip() for line in information.read_text().splitlines() if "model name" in line]
        model = f"{names[0]}, {len(names)} cores" if names else model
    return {
        "processor": model,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "load": [round(value, 1) for value in os.getloadavg()],
    }


def _run(names: list[str], samples: int) -> None:
    from bench.phare.experiments import EXPERIMENTS

    unknown = sorted(set(names) - set(EXPERIMENTS))
    if unknown:
        sys.exit(f"unknown experiment {unknown[0]!r}; choose among {', '.join(EXPERIMENTS)}")
    RESULTS.mkdir(exist_ok=True)
    for name in names or list(EXPERIMENTS):
        started = time.perf_counter()
        rows = []
        for row in EXPERIMENTS[name](samples):
            rows.append(row)
            brief = {key: value for key, value in row.items() if not isinstance(value, list | dict)}
            timing = f" median {row['wall']['median']} ms p99 {row['wall']['p99']} ms" if "wall" in row else ""
            print(f"{name} {time.perf_counter() - started:6.0f}s {brief}{timing}", flush=True)
        text = ",\n".join(json.dumps(row) for row in rows)
        command = f"python -m bench.phare run {name} --samples {samples}"
        head = json.dumps({"command": command, "machine": _machine()})
        (RESULTS / f"{name}.json").write_text(f'{{"about": {head},\n"rows": [\n{text}\n]}}\n')


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.phare", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run experiments, then write the report")
    run.add_argument("names", nargs="*", help="experiments; all when none is named")
    run.add_argument("--samples", type=int, default=20, help="samples per setting (default 20)")
    commands.add_parser("report", help="write tables and plots from the stored results")
    arguments = parser.parse_args()
    if arguments.command == "run":
        _run(arguments.names, arguments.samples)
    from bench.phare.report import write_report

    write_report(RESULTS)


if __name__ == "__main__":
    main()
