"""``python -m bench.networktopology``: measure and print a table; ``--help`` shows what can be left out."""

from __future__ import annotations

import argparse
import os
import platform
import sys

from bench.networktopology import compute, live, paths, reports

SIZES = (1000, 5000)
REPORTING = ((1000, 12), (5000, 30), (5000, 200))
GRAPHS = ((200, 39_800), (1000, 9_000), (5000, 50_000))


def main() -> None:
    """Measure, print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.networktopology", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of each measurement (default: 20)")
    parser.add_argument("--no-live", action="store_true", help="only the pure computation, without a control plane")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    print("| nodes | measurements | places ms | parse ms | Dijkstra ms | Bellman-Ford ms | API shape ms |")
    print("|---|---|---|---|---|---|---|")
    for nodes in SIZES:
        found = compute.measure(nodes, rounds=options.rounds, seed=nodes)
        times = (found.places, found.parse, *found.compute.values(), found.shape)
        print(f"| {found.nodes} | {found.measurements} |" + "".join(f" {value:.1f} |" for value in times))
    print("\n| nodes | zones | measurements | reports to latencies, CPU ms | latencies to weights, CPU ms |")
    print("|---|---|---|---|---|")
    for nodes, zones in REPORTING:
        told = reports.measure(nodes, zones, rounds=options.rounds, seed=nodes)
        print(f"| {told.nodes} | {told.zones} | {told.measurements} | {told.read:.0f} | {told.compute:.0f} |")
    print("\n| places | links | paths | CPU ms | by Dijkstra from all places, CPU ms |")
    print("|---|---|---|---|---|")
    for places, links in GRAPHS:
        way = paths.measure(places, links, seed=places)
        outcome = "computed" if way.computed else "too many"
        print(f"| {way.places} | {way.links} | {outcome} | {way.spent:.0f} | {way.every:.0f} |")
    if options.no_live:
        return
    print("\n| nodes | measurements | start to weights s | ConfigMap to weights ms, median | slowest | RSS MiB |")
    print("|---|---|---|---|---|---|")
    for nodes in SIZES:
        result = live.measure(nodes, rounds=options.rounds, report=lambda text: print(text, file=sys.stderr))
        print(
            f"| {result.nodes} | {result.measurements} | {result.first:.1f} | {result.median:.0f} "
            f"| {result.slowest:.0f} | {result.resident:.0f} |"
        )
        if result.idle_writes:
            print(f"\nwrites beyond two a round: {result.idle_writes:.0f}")


if __name__ == "__main__":
    main()
