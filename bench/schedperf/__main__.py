"""Command line: ``python -m bench.schedperf``."""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.live.contenders import BASELINE
from bench.live.scenario import until_idle
from bench.schedperf.bound import binds_all
from bench.schedperf.measure import run
from bench.schedperf.operations import LeftOutError, Operation, interpret
from bench.schedperf.results import BOUND, BOUND_TOLD, OURS, PEER, Result, bound_table, compare, summary, table
from bench.schedperf.sizes import choose
from bench.schedperf.source import Case, Workload, module_directory, read_cases
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from hack.harness.cluster import install_crds
from hack.localcluster import LocalCluster, Options

ADMISSION = "TaintNodesByCondition,ServiceAccount,Priority,StorageObjectInUseProtection"
"""Admission plugins that scheduler_perf runs without, and the one whose finalizers would need a controller."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case that can be run."""

    case: Case
    workload: Workload
    sequence: tuple[Operation, ...]


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def prepare(cases: Sequence[Case], root: Path, arguments: argparse.Namespace) -> tuple[list[Prepared], list[str]]:
    """The cases that can be run, and a line for each that is left out."""
    prepared: list[Prepared] = []
    left_out: list[str] = []
    for case in cases:
        if not any(fnmatch.fnmatch(case.name.lower(), pattern.lower()) for pattern in arguments.cases):
            continue
        try:
            reason = case.reason_left_out(root)
            if reason is not None:
                raise LeftOutError(reason)
            workload = choose(case.workloads, nodes=arguments.nodes, pods=arguments.pods)
            sequence = tuple(interpret(item, workload.params) for item in case.operations)
        except LeftOutError as error:
            left_out.append(f"{case.name}: left out: {error}")
        else:
            prepared.append(Prepared(case, workload, sequence))
    return prepared, left_out


def measure(prepared: Sequence[Prepared], arguments: argparse.Namespace) -> list[Result]:
    """Run every case in every round with each scheduler, whose order changes from round to round."""
    results: list[Result] = []
    out: set[str] = set()
    for number in range(arguments.rounds):
        labels = arguments.schedulers if number % 2 == 0 else arguments.schedulers[::-1]
        for item in prepared:
            for label in labels:
                if item.case.name in out or (label in (BOUND, BOUND_TOLD) and not binds_all(item.sequence)):
                    continue
                say(f"round {number + 1} of {arguments.rounds}: {item.case.name} with {label}")
                try:
                    result = _measure_one(item, label, number, arguments)
                except LeftOutError as error:
                    out.add(item.case.name)
                    print(f"{item.case.name}: left out: {error}")
                    continue
                say(_progress(result))
                results.append(result)
                if arguments.json:
                    write_json(arguments.json, results)
    return results


def _measure_one(item: Prepared, label: str, number: int, arguments: argparse.Namespace) -> Result:
    """One run, on a control plane of its own.

    The memory of an API server grows from run to run, and with it what one collection of its garbage costs: a run that
    one falls into takes twice the processor time of one without.
    """
    options = Options(
        controller_manager=False,  # claims and volumes are bound by the workloads, and it would not leave them alone
        apiserver_args=(f"--disable-admission-plugins={ADMISSION}",),
    )

    async def measured(cluster: LocalCluster) -> Result:
        connection = await load_connection(kubeconfig=str(cluster.kubeconfig))
        async with ApiClient(connection) as client:
            return await run(
                client,
                cluster,
                case=item.case,
                workload=item.workload,
                sequence=item.sequence,
                label=label,
                number=number,
                patience=arguments.patience,
                baseline=arguments.baseline,
            )

    with LocalCluster.start(f"schedperf-{os.getpid()}", kwok=False, options=options, die_with_parent=True) as cluster:
        install_crds(cluster)
        until_idle(cluster.process("kube-apiserver").pid)
        return asyncio.run(measured(cluster))


def _progress(result: Result) -> str:
    text = f"  {result.bound} of {result.pods} pods, {result.pods_per_second:.0f} pods/s"
    text += f" ({result.pods_per_second_told:.0f} to the last Event of {result.told}), p50 {result.p50:.2f} s"
    text += f", p99 {result.p99:.2f} s, CPU {result.cpu_seconds:.1f} s"
    return f"{text}; {result.problem}" if result.problem else text


def write_json(path: Path, results: Sequence[Result]) -> None:
    """Figures with the machine and the command that made them."""
    machine: dict[str, Any] = {
        "cpus": os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
    }
    machine["load"] = os.getloadavg()
    command = f"python -m bench.schedperf {' '.join(sys.argv[1:])}".strip()
    document = {"machine": machine, "command": command, "results": [result.row() for result in results]}
    path.write_text(json.dumps(document, indent=2) + "\n")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.schedperf",
        description="Workloads of kube-scheduler's own scheduler_perf, read from the pinned Go module, with "
        "kube-scheduler and Berth in turn on one real control plane. All cases take about ten minutes a round.",
    )
    parser.add_argument(
        "--cases", nargs="+", default=["*"], metavar="NAME", help="cases by name, * for any letters (default all)"
    )
    parser.add_argument("--list", action="store_true", help="only list the cases with their sizes, and those left out")
    parser.add_argument("--nodes", type=int, default=500, help="nodes, at most (default 500)")
    parser.add_argument("--pods", type=int, default=1000, help="pods of one operation, at most (default 1000)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each scheduler per case (default 1)")
    parser.add_argument("--schedulers", nargs="+", default=[PEER, OURS], choices=[PEER, OURS])
    parser.add_argument("--patience", type=float, default=30.0, help="seconds without a binding that end a run")
    parser.add_argument("--json", type=Path, help="also write the figures to this file, after every run")
    parser.add_argument(
        "--baseline", type=Path, help="checkout of an earlier Berth with its .venv, run in turn with this one's"
    )
    parser.add_argument(
        "--bound",
        action="store_true",
        help="also run a scheduler that does nothing but bind, without Events and with: what is possible here",
    )
    arguments = parser.parse_args(argv)
    if arguments.bound:
        arguments.schedulers += [BOUND, BOUND_TOLD]
    if arguments.baseline is not None:
        arguments.schedulers.append(BASELINE)
    return arguments


def main() -> None:
    """Measure and print a table."""
    arguments = parse()
    root = module_directory()
    prepared, left_out = prepare(read_cases(root), root, arguments)
    if arguments.list:
        for item in prepared:
            sizes = ", ".join(f"{name} {value}" for name, value in item.workload.params.items())
            print(f"{item.case.name}: {item.workload.name}: {sizes}")
        print("\n".join(left_out))
        return
    comparisons = compare(measure(prepared, arguments))
    print("\n".join([*table(comparisons), "", *bound_table(comparisons), "", *summary(comparisons), *left_out]))


if __name__ == "__main__":
    main()
