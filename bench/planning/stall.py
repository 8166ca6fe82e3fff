"""Longest time without a turn for the event loop while a group is planned: ``python -m bench.planning.stall``."""

from __future__ import annotations

import argparse
import asyncio
import time

from bench.planning.__main__ import CASES, COSTS, prepare
from berth.kube.memory import settle_memory
from berth.scheduling.planning import finish
from controllers.placement.planning_thread import PlanningThread


async def measure(name: str) -> tuple[float, float]:
    """Return the seconds of the plan and the longest stall."""
    planner, group, pods = prepare(*CASES[name])
    settle_memory()
    thread, longest = PlanningThread(), 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    start = time.perf_counter()
    await thread.run(lambda: print(name, len(finish(planner.place_group(group, pods, COSTS, partial=False)).decisions)))
    seconds = time.perf_counter() - start
    ticking.cancel()
    return seconds, longest


def main() -> None:
    """Run the cases and print a line each."""
    parser = argparse.ArgumentParser(prog="python -m bench.planning.stall", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help=f"of {', '.join(CASES)}")
    for name in parser.parse_args().cases:
        seconds, longest = asyncio.run(measure(name))
        print(f"  planned in {seconds:.2f} s, longest stall {longest * 1000:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
