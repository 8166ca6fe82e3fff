"""Times of joint plans, or a comparison with brute force: ``python -m bench.replicas_core [optima FIRST LAST]``.

Every size runs in a process of its own, so that the peak of one is not the floor of the next. Times are of the process,
on one core, the best of three.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import time
from collections.abc import Callable
from pathlib import Path

from bench.replicas_core.brute import TooLargeError, best
from bench.replicas_core.cases import boutique, cluster, mesh, uneven
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.gang.budget import Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Problem

LARGE = 1000
"""Pods from which a plan is timed once, with a budget."""
BUDGET = 1.5
"""Seconds of improvement for large groups; a plan may take longer than that to be complete."""

SIZES: dict[str, Callable[[], Problem]] = {
    "11 pods, 24 nodes": lambda: boutique(1),
    "33 pods, 24 nodes": boutique,
    "33 pods, 24 nodes, PreferSameZone": lambda: boutique(routing=Routing.SAME_ZONE),
    "33 pods, 24 nodes, required anti-affinity": lambda: boutique(rule="required"),
    "33 pods, 5000 nodes": lambda: boutique(nodes=cluster(5000, 16)),
    "99 pods, 24 nodes": lambda: mesh(33, 3, nodes=cluster(24, 4)),
    "99 pods, 24 nodes, PreferSameZone": lambda: mesh(33, 3, nodes=cluster(24, 4), routing=Routing.SAME_ZONE),
    "297 pods, 5000 nodes": lambda: mesh(99, 3, nodes=cluster(5000, 16)),
    "297 pods, 5000 nodes, PreferSameZone": lambda: mesh(99, 3, nodes=cluster(5000, 16), routing=Routing.SAME_ZONE),
    "297 pods, 5000 uneven nodes": lambda: uneven(mesh(99, 3, nodes=cluster(5000, 16))),
    "297 pods of 9 applications, 5000 nodes": lambda: boutique(copies=9, nodes=cluster(5000, 16)),
    "10000 pods of 909 workloads, 5000 nodes": lambda: mesh(909, 11, nodes=cluster(5000, 16)),
    "10000 pods of 909 workloads, default spreading": lambda: mesh(909, 11, nodes=cluster(5000, 16), rule="default"),
    "9999 pods of 3333 workloads, 5000 nodes": lambda: mesh(3333, 3, nodes=cluster(5000, 16)),
    "10000 pods of 2000 workloads, 5000 uneven nodes": lambda: uneven(mesh(2000, 5, nodes=cluster(5000, 16))),
    "10000 pods of 2000 workloads, 500 zones, PreferSameZone": lambda: uneven(
        mesh(2000, 5, nodes=cluster(5000, 500), routing=Routing.SAME_ZONE)
    ),
    "9999 pods of 303 applications, 5000 nodes": lambda: boutique(copies=303, nodes=cluster(5000, 16)),
}


def measure(name: str) -> dict[str, float | str]:
    """Plan one application."""
    problem = SIZES[name]()
    large = problem.pods >= LARGE
    seconds = []
    for _ in range(1 if large else 3):
        start = time.process_time()
        # The time of the process may take a system call to ask for: 0.1 ms, thousands of times.
        budget = Budget(time.process_time, BUDGET) if large else Budget(time.monotonic, math.inf)
        answer = finish(plan(problem, budget=budget))
        seconds.append(time.process_time() - start)
    return {
        "case": name,
        "ms": round(1000 * min(seconds), 1),
        "missing": sum(answer.missing),
        "objective": round(answer.objective, 3),
        "MiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def optima(first: int, last: int, table: dict[str, float | None]) -> dict[str, float]:
    """Compare plans of generated problems with the best ones, which are entered in the table by seed.

    Problems too large for brute force are left out. No plan may break a rule, or exist where no placement does.
    """
    feasible = found = optimal = 0
    plans = bests = 0.0
    for seed in range(first, last):
        problem = small_problem(seed)
        try:
            lowest, state = best(problem)
        except TooLargeError:
            continue
        table[str(seed)] = None if state is None else round(lowest, 6)
        feasible += state is not None
        answer = finish(plan(problem))
        if not answer.complete:
            continue
        placed = [tuple(k for k, n in sorted(counts.items()) for _ in range(n)) for counts in answer.counts]
        value = Judge(problem).objective(placed)
        if not lowest - 1e-6 <= value < math.inf:
            raise SystemExit(f"seed {seed}: the plan costs {value}, the optimum is {lowest}")
        found, optimal = found + 1, optimal + (value <= lowest + 1e-6)
        plans, bests = plans + value, bests + lowest
    return {
        "problems": len(table),
        "feasible": feasible,
        "found": found,
        "optimal": optimal,
        "aboveOptimum": round(plans / bests - 1, 6) if bests else 0.0,
    }


def main() -> None:
    """Run and print a JSON object a line."""
    parser = argparse.ArgumentParser(prog="python -m bench.replicas_core", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    compare = commands.add_parser("optima", help="compare with brute force")
    compare.add_argument("first", type=int)
    compare.add_argument("last", type=int)
    compare.add_argument("--json", type=Path, help="file to write the optima to, by seed; null without a placement")
    options = parser.parse_args()
    if options.command == "optima":
        table: dict[str, float | None] = {}
        print(json.dumps(optima(options.first, options.last, table)))
        if options.json:
            options.json.write_text(json.dumps({"optima": table}, separators=(",", ":")) + "\n", encoding="utf-8")
        return
    for name in SIZES:
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(json.dumps(pool.apply(measure, [name])), flush=True)


if __name__ == "__main__":
    main()
