"""Time of one joint plan with and without classes: ``python -m bench.interference.joint_scale [--nodes] [--pods]``.

The nodes and pods of `scale`, all pods in one AppGroup of 20 workloads that do not call each other; others may be there
before. The planner alone, without an API server. Python's garbage collector does not look at what was there before the
plan, as in the controller.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Sequence
from typing import NamedTuple

from bench.interference.joint import GROUP, group_of
from bench.interference.scale import WORKLOADS, cluster, pod
from berth.api.labels import LABEL_APPGROUP, LABEL_WORKLOAD
from berth.kube.memory import freeze_objects
from berth.network.costs import NO_COSTS
from berth.scheduling.configuration import GangSettings, Profile
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.planner import Planner


class Measured(NamedTuple):
    """One plan; times are of the processor."""

    placed: int
    seconds: float
    longest_turn: float


def run(nodes: int, pods: int, before: int, policy: InterferencePolicy) -> Measured:
    """Plan pods together where others have been placed one at a time."""
    cache = cluster(nodes, policy, random.Random(1))
    # What a plan takes is asked, not what is planned by then: on a busy machine its time would be over.
    planner = Planner(cache, Profile(interference=policy, gang=GangSettings(planning_seconds=600)))
    for number in range(before):
        planner.place_pod(pod(pods + number, number % WORKLOADS), None, NO_COSTS)
    coming = [pod(number, number % WORKLOADS) for number in range(pods)]
    for number, each in enumerate(coming):
        each.metadata.labels |= {LABEL_APPGROUP: GROUP, LABEL_WORKLOAD: f"w{number % WORKLOADS}"}
        cache.update_pod(each)
    group = cache.update_group(group_of(f"w{number}" for number in range(WORKLOADS)))
    freeze_objects()
    planning = planner.place_group(group, coming, NO_COSTS, partial=False)
    seconds = longest = 0.0
    while True:
        began = time.process_time()
        try:
            next(planning)
        except StopIteration as end:
            seconds += time.process_time() - began
            gc.unfreeze()
            return Measured(len(end.value.decisions), seconds, longest)
        turn = time.process_time() - began
        seconds, longest = seconds + turn, max(longest, turn)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for LeastSlowdown and one for Off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--before", type=int, default=1000, help="pods that are there before")
    options = parser.parse_args(arguments)
    print(f"{'choice':<16}{'placed':>8}{'s':>8}{'longest turn':>14}")
    for policy in (InterferencePolicy.LEAST_SLOWDOWN, InterferencePolicy.OFF):
        found = run(options.nodes, options.pods, options.before, policy)
        print(f"{policy:<16}{found.placed:>8}{found.seconds:>8.2f}{found.longest_turn:>14.3f}")


if __name__ == "__main__":
    main()
