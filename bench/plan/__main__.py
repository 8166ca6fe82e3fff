"""Time and memory of ``berth plan`` over a snapshot of a large cluster.

    .venv/bin/python -m bench.plan [--nodes 5000] [--pods 10869 50000] [--waiting 1000]

A snapshot is what ``kubectl get nodes,pods -A -o json`` prints: pods that run, and some that wait. Figures in
docs/benchmarks/plan.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.plan.snapshot import snapshot

GOAL_SECONDS, GOAL_MIB = 30.0, 1536
"""What a plan over 50,000 pods and 5000 nodes may take: processor time, which work beside does not change."""
UNPLACED = 3


def measure(path: Path) -> tuple[float, float, float, dict[str, int]]:
    """Seconds, seconds of processor time, peak MiB and the plan's summary of one run in a process of its own."""
    command = [sys.executable, "-m", "bench.plan.once", str(path)]
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    document = json.load(child.stdout)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, UNPLACED):
        raise SystemExit(f"berth plan ended with {child.returncode}")
    processor = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - started, processor, usage.ru_maxrss / 1024, document["summary"]


def main() -> None:
    """Measure every size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, nargs="+", default=[10_869, 50_000], help="Pods of the snapshot.")
    parser.add_argument("--waiting", type=int, default=1000, help="How many of them have no node yet.")
    options = parser.parse_args()
    print("| pods | nodes | input MiB | seconds | processor s | peak MiB | placed |\n|---|---|---|---|---|---|---|")
    within = True
    with tempfile.TemporaryDirectory() as directory:
        for pods in options.pods:
            path = Path(directory) / f"snapshot-{pods}.json"
            path.write_text(json.dumps(snapshot(nodes=options.nodes, pods=pods, waiting=options.waiting)))
            size = path.stat().st_size / 2**20
            seconds, processor, peak, summary = measure(path)
            within = within and processor < GOAL_SECONDS and peak < GOAL_MIB
            placed = f"{summary['placed']} of {summary['pods']}"
            print(
                f"| {pods} | {options.nodes} | {size:.0f} | {seconds:.1f} | {processor:.1f} | {peak:.0f} | {placed} |",
                flush=True,
            )
    print(f"goal {'met' if within else 'missed'}: {GOAL_SECONDS:.0f} s, {GOAL_MIB} MiB", file=sys.stderr)
    raise SystemExit(0 if within else 1)


if __name__ == "__main__":
    main()
