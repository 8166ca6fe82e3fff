"""Longest time without a turn for the event loop while a group is planned: ``python -m bench.planning.stall``."""

from __future__ import annotations

import argparse
import asyncio

from bench.planning.__main__ import CASES, prepare
from bench.planning.event_loop import Watched, watched
from berth.kube.memory import freeze_objects, give_back_large_blocks
from berth.scheduling.planning import finish
from controllers.placement.planning_thread import PlanningThread


async def measure(name: str) -> Watched:
    """Return what a plan does to the event loop."""
    costs, planner, group, pods = CASES[name][0], *prepare(*CASES[name][1:])
    give_back_large_blocks()
    freeze_objects()
    thread = PlanningThread()
    async with watched() as seen:
        await thread.run(
            lambda: print(name, len(finish(planner.place_group(group, pods, costs, partial=False)).decisions))
        )
    return seen


def main() -> None:
    """Run the cases and print a line each."""
    parser = argparse.ArgumentParser(prog="python -m bench.planning.stall", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help=f"of {', '.join(CASES)}")
    for name in parser.parse_args().cases:
        seen = asyncio.run(measure(name))
        print(f"  planned in {seen.seconds:.2f} s, longest stall {seen.longest_stall * 1000:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
