"""Time per pod of the planner with and without classes: ``python -m bench.interference.scale [--nodes] [--pods]``.

Nodes have 2, 4 or 8 sockets of 16 CPUs; pods come one after another, of 20 workloads of four classes that request 1 to
4 CPUs. The planner alone, without an API server; profiles take turns, and the median of the rounds counts. Python's
garbage collector does not look at what was there before the first pod, as in the controller.

The last column tells two versions that decide the same from others: it stands for the node, the value and the socket
of every pod.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Sequence
from hashlib import blake2b
from statistics import median
from typing import Final, NamedTuple

from berth.api.interference import InterferenceClass
from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.kube.memory import freeze_objects
from berth.kube.objects import (
    Container,
    CustomObject,
    Node,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from berth.network.costs import NO_COSTS
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.planner import Planner

SOCKETS: Final = (2, 4, 8)
SOCKET_CPUS: Final = 16
WORKLOADS: Final = 20
TURN: Final = 500
"""Pods that each choice places before it is the next one's turn: the first of each find nothing in the processor's
caches, as no pod of a controller does, which places by one choice."""
SCHEDULER: Final = "berth-scheduler"


class Measured(NamedTuple):
    """One choice in one round."""

    seconds: float
    """processor time of a pod"""
    longest: float
    """the longest time of one, in seconds"""
    decisions: str
    """stands for what was decided"""


def cluster(count: int, policy: InterferencePolicy, drawn: random.Random) -> Cache:
    """Return a cache of nodes whose sockets are known."""
    cache = Cache(clock=time.monotonic, state=ClusterState(policies={SCHEDULER: policy}))
    for number in range(count):
        sockets, meta = drawn.choice(SOCKETS), ObjectMeta(name=f"n{number}")
        allocatable = {"cpu": str(sockets * SOCKET_CPUS), "memory": "512Gi", "pods": "110"}
        cache.update_node(Node(metadata=meta, status=NodeStatus(allocatable=dict(allocatable))))
        found = [{"socket": socket, "cpuCount": SOCKET_CPUS} for socket in range(sockets)]
        cache.update_sockets(CustomObject.of({"metadata": {"name": meta.name}, "status": {"sockets": found}}))
    return cache


def pod(number: int, workload: int) -> Pod:
    """Return a pod of a workload."""
    letter = list(InterferenceClass)[workload % len(InterferenceClass)]
    labels = {"app": f"w{workload}", LABEL_INTERFERENCE_CLASS: letter.value}
    requests = ResourceRequirements(requests={"cpu": str(1 + workload % 4), "memory": "2Gi"})
    return Pod(
        metadata=ObjectMeta(name=f"p{number}", namespace="default", uid=f"u{number}", labels=labels),
        spec=PodSpec(scheduler_name=SCHEDULER, containers=[Container(name="main", resources=requests)]),
    )


def run(
    nodes: int, pods: int, seed: int, choices: Sequence[InterferencePolicy], turn: int = TURN
) -> dict[InterferencePolicy, Measured]:
    """Return what was measured by choice.

    They take turns, some pods each: whatever else the machine does meanwhile, it does to all.
    """
    drawn = random.Random(seed)
    coming = [pod(number, drawn.randrange(WORKLOADS)) for number in range(pods)]
    caches = {policy: cluster(nodes, policy, random.Random(seed)) for policy in choices}
    planners = {policy: Planner(cache, Profile(interference=policy)) for policy, cache in caches.items()}
    freeze_objects()
    taken, longest = dict.fromkeys(planners, 0.0), dict.fromkeys(planners, 0.0)
    decided = {policy: blake2b(digest_size=4) for policy in choices}
    for begin in range(0, pods, turn):
        for policy, planner in planners.items():
            outcomes, began = [], time.process_time()
            for each in coming[begin : begin + turn]:
                start = time.perf_counter()
                outcomes.append(planner.place_pod(each, None, NO_COSTS))
                longest[policy] = max(longest[policy], time.perf_counter() - start)
            taken[policy] += time.process_time() - began
            for decision in (each for outcome in outcomes for each in outcome.decisions):
                seat = caches[policy].state.sockets.seat(decision.pod.metadata.uid)
                decided[policy].update(f"{decision.node} {decision.value} {seat and seat.socket}\n".encode())
    gc.unfreeze()
    return {policy: Measured(taken[policy] / pods, longest[policy], decided[policy].hexdigest()) for policy in planners}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each choice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turn", type=int, default=TURN, help="pods that each choice places in turn")
    parser.add_argument("--choice", type=InterferencePolicy, help="one alone, beside Off")
    options = parser.parse_args(arguments)
    choices = [options.choice, InterferencePolicy.OFF] if options.choice else list(InterferencePolicy)
    found: dict[InterferencePolicy, list[Measured]] = {policy: [] for policy in choices}
    for number in range(options.rounds):
        for policy, result in run(options.nodes, options.pods, number, choices, options.turn).items():
            found[policy].append(result)
    base = median(each.seconds for each in found[InterferencePolicy.OFF])
    print(f"{'choice':<16}{'ms a pod':>10}{'pods/s':>10}{'slower':>10}{'longest ms':>12}  decisions")
    for policy, rounds in found.items():
        seconds, longest = median(each.seconds for each in rounds), median(each.longest for each in rounds)
        print(
            f"{policy:<16}{1000 * seconds:>10.3f}{1 / seconds:>10.0f}{seconds / base - 1:>10.0%}{1000 * longest:>12.1f}"
            f"  {' '.join(each.decisions for each in rounds)}"
        )


if __name__ == "__main__":
    main()
