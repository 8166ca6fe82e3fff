"""Measure AppGroup apply -> status at growing numbers of existing AppGroups on a cluster of its own.

    .venv/bin/python -m bench.appgroup [--groups 1 100 1000] [--samples 200] [--output FILE]

Starts a local control plane and ``berth run appgroup``, measures, prints a table, removes both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.appgroup.measure import Sample, StatusWatch, measure, percentile
from hack.harness.boutique import boutique
from hack.harness.cluster import install_crds
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster

GOAL_P99 = 0.5
"""Seconds; the goal for the 99th percentile at the largest number of groups."""
NAMESPACE = "default"


def _manifest(name: str, algorithm: str = "KahnSort") -> dict[str, Any]:
    document = boutique(algorithm=algorithm)
    document["metadata"] = {"name": name, "namespace": NAMESPACE}
    return document


def _fill(cluster: LocalCluster, watch: StatusWatch, *, start: int, end: int) -> float:
    """Create groups ``start`` to ``end`` and return the seconds until the last has its status."""
    api = cluster.api()
    path = f"/apis/appgroup.diktyo.x-k8s.io/v1alpha1/namespaces/{NAMESPACE}/appgroups"
    began = time.perf_counter()
    made = [
        api.request("POST", f"{path}?fieldManager=bench", _manifest(f"existing-{number}"))
        for number in range(start, end)
    ]
    for answer in made:
        watch.wait(answer["metadata"]["uid"], answer["metadata"]["generation"], timeout=300)
    api.close()
    return time.perf_counter() - began


def _row(kind: str, groups: int, samples: list[Sample], rss: int) -> dict[str, Any]:
    status = [sample.status for sample in samples]
    acknowledged = [sample.acknowledged for sample in samples]
    return {
        "groups": groups,
        "what": kind,
        "samples": len(samples),
        "p50_ms": round(percentile(status, 0.5) * 1e3, 1),
        "p90_ms": round(percentile(status, 0.9) * 1e3, 1),
        "p99_ms": round(percentile(status, 0.99) * 1e3, 1),
        "max_ms": round(max(status) * 1e3, 1),
        "ack_p50_ms": round(percentile(acknowledged, 0.5) * 1e3, 1),
        "ack_p99_ms": round(percentile(acknowledged, 0.99) * 1e3, 1),
        "rss_mib": round(rss / 2**20, 1),
    }


def _table(rows: list[dict[str, Any]]) -> str:
    head = (
        "| existing groups | applied | samples | p50 ms | p90 ms | p99 ms | max ms | apply's answer p50 / p99 ms "
        "| controller RSS MiB |"
    )
    lines = [head, "|" + "---|" * 9]
    lines += [
        f"| {row['groups']} | {row['what']} | {row['samples']} | {row['p50_ms']} | {row['p90_ms']} | {row['p99_ms']} "
        f"| {row['max_ms']} | {row['ack_p50_ms']} / {row['ack_p99_ms']} | {row['rss_mib']} |"
        for row in rows
    ]
    return "\n".join(lines)


def run(levels: list[int], *, samples: int, pause: float, directory: Path) -> list[dict[str, Any]]:
    """Measure at every level of existing groups, ascending, and return a row per level and kind of apply."""
    rows: list[dict[str, Any]] = []
    name = f"bench-appgroup-{os.getpid()}"
    with LocalCluster.start(name, kwok=False, die_with_parent=True) as cluster:
        install_crds(cluster)
        with ControllerProcess.start(["appgroup"], kubeconfig=cluster.kubeconfig, directory=directory) as controller:
            controller.wait_leader().wait_ready()
            watch = StatusWatch(cluster)
            existing = 0
            for level in sorted(levels):
                seconds = _fill(cluster, watch, start=existing, end=level)
                print(f"{level - existing} groups created and ordered in {seconds:.1f} s", flush=True)
                existing = level
                fresh = [f"new-{level}-{number}" for number in range(samples)]
                new = measure(cluster, watch, manifests=[_manifest(name) for name in fresh], pause=pause)
                rows.append(_row("new group", level, new, controller.resident_bytes()))
                # One group goes back and forth between two orders, so that every apply is a new generation.
                back_and_forth = [_manifest("existing-0", ("ReverseKahn", "TarjanSort")[n % 2]) for n in range(samples)]
                changed = measure(cluster, watch, manifests=back_and_forth, pause=pause)
                rows.append(_row("changed spec", level, changed, controller.resident_bytes()))
                for start in range(0, samples, 100):
                    batch = fresh[start : start + 100]
                    cluster.kubectl("-n", NAMESPACE, "delete", "appgroups", "--wait=false", *batch)
            watch.close()
    return rows


def main() -> int:
    """Run from the command line; exit status 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.appgroup", description=__doc__)
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 100, 1000], help="existing AppGroups")
    parser.add_argument("--samples", type=int, default=200, help="applies per level and kind")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between applies")
    parser.add_argument("--output", type=Path, help="write the rows as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rows = run(arguments.groups, samples=arguments.samples, pause=arguments.pause, directory=Path(directory))
    print(f"\n{platform.machine()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the end\n")
    print(_table(rows))
    if arguments.output:
        arguments.output.write_text(json.dumps(rows, indent=2) + "\n")
    worst = max(row["p99_ms"] for row in rows if row["groups"] == max(arguments.groups))
    met = worst < GOAL_P99 * 1e3
    goal = f"goal p99 < {GOAL_P99 * 1e3:.0f} ms at {max(arguments.groups)} groups"
    print(f"\n{goal}: {worst} ms, {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
