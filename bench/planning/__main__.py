"""Time and peak memory of planning one AppGroup that an author made large or awkward: ``python -m bench.planning``.

Every case runs in a process of its own, so that the peak of one is not the floor of the next. The same file runs on
older checkouts: it uses nothing but the cache and the planner.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from berth.api.labels import LABEL_APPGROUP, LABEL_REGION, LABEL_SEGMENT, LABEL_WORKLOAD, LABEL_ZONE
from berth.kube.objects import CustomObject, Node, Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.network.link_budgets import PlacePair
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Decision, Outcome
from berth.scheduling.planner import Planner
from berth.scheduling.planning import Planning

HOST = "kubernetes.io/hostname"
ZONES = tuple(f"zone-{number}" for number in range(5))
COSTS = NetworkCosts(
    source="default/net",
    weight_sets=("UserDefined",),
    zones={(a, b): 5.0 * (1 + abs(i - k)) for i, a in enumerate(ZONES) for k, b in enumerate(ZONES) if i != k},
)
BUDGETS = replace(
    COSTS,
    budgets={PlacePair.of(LABEL_ZONE, a, b): 2_000_000_000 if a == b else 500_000_000 for a in ZONES for b in ZONES},
)
"""Links inside zones that just carry all calls of the applications with bandwidth, and smaller ones between them"""

RACKS = tuple(f"rack-{number}" for number in range(50))
"""Segments, of which each zone has every fifth"""
OF_RACKS = replace(
    COSTS,
    segments={
        (a, b): 3.0 for i, a in enumerate(RACKS) for k, b in enumerate(RACKS) if i != k and (i - k) % len(ZONES) == 0
    },
)

Edges = dict[str, list[str]]
Affinity = Callable[[str], dict[str, Any]]
Clock = Callable[[], float]


def make_node(number: int, cpu: int, *, racks: bool = False) -> Node:
    """A node of one of five zones; with `racks`, of one of its ten segments."""
    name = f"node-{number}"
    labels = {HOST: name, LABEL_ZONE: ZONES[number % len(ZONES)], LABEL_REGION: "region"}
    if racks:
        labels[LABEL_SEGMENT] = RACKS[number % len(RACKS)]
    allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return msgspec.convert(
        {"metadata": {"name": name, "uid": name, "labels": labels}, "status": {"allocatable": allocatable}}, Node
    )


def make_pod(workload: str, number: int, affinity: dict[str, Any]) -> Pod:
    """A waiting member."""
    name = f"{workload}-{number}"
    labels = {LABEL_APPGROUP: "app", LABEL_WORKLOAD: workload, "app": workload}
    container = {"name": "main", "resources": {"requests": {"cpu": "250m", "memory": "128Mi"}}}
    spec = {"schedulerName": "berth-scheduler", "containers": [container], "affinity": affinity}
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels}, "spec": spec}, Pod
    )


def make_group(edges: Edges, demand: dict[str, Any]) -> CustomObject:
    """The AppGroup with these dependencies."""

    def reference(name: str) -> dict[str, Any]:
        return {"kind": "Deployment", "name": name, "selector": name}

    workloads = [
        {"workload": reference(name), "dependencies": [{"workload": reference(other), **demand} for other in others]}
        for name, others in edges.items()
    ]
    body = {
        "metadata": {"name": "app", "namespace": "default", "uid": "app", "generation": 1},
        "spec": {"numMembers": 1, "topologySortingAlgorithm": "KahnSort", "workloads": workloads},
    }
    return CustomObject.of(body)


def _term(workload: str, key: str = HOST) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": workload}}}


def keep_apart(workload: str) -> dict[str, Any]:
    """Replicas on different nodes if that is possible."""
    soft = [{"weight": 50, "podAffinityTerm": _term(workload)}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": soft}}


def follow_next(workload: str) -> dict[str, Any]:
    """In the zone of the workload with the next number."""
    following = _term(f"w{int(workload[1:]) + 1}", LABEL_ZONE)
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [following]}}


def no_rules(_: str) -> dict[str, Any]:
    """No rules about other pods."""
    return {}


def layered(count: int, fan_out: int = 3) -> Edges:
    """Workloads that each call the next few."""
    names = [f"w{number}" for number in range(count)]
    return {name: names[at + 1 : at + 1 + fan_out] for at, name in enumerate(names)}


def prepare(
    nodes: int,
    edges: Edges,
    replicas: int,
    affinity: Affinity,
    demand: dict[str, Any],
    *,
    clock: Clock = time.monotonic,
    racks: bool = False,
) -> tuple[Planner, Group, list[Pod]]:
    """A cluster with one group that waits."""
    cache = Cache(clock=clock)
    for number in range(nodes):
        cache.update_node(make_node(number, 16, racks=racks))
    group = cache.update_group(make_group(edges, demand))
    last = list(edges)[-1]
    pods = [make_pod(name, k, affinity(name) if name != last else {}) for name in edges for k in range(replicas)]
    for pod in pods:
        cache.update_pod(pod)
    return Planner(cache, Profile()), group, pods


def measure(clock: Clock, partial: bool, costs: NetworkCosts, *case: Any) -> dict[str, float]:
    """Plan one group; return seconds, MiB above what the process had before, and what was placed.

    With `partial`, as once a group has waited long enough: what fits is placed, and the rest planned again.
    """
    planner, group, pods = prepare(*case, clock=clock, racks=bool(costs.segments))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = clock()
    decided: list[Decision] = []
    left, plans, longest = pods, 0, 0.0
    while left:
        outcome, stretch = in_turns(planner.place_group(group, left, costs, partial=partial), clock)
        decided += outcome.decisions
        plans, longest = plans + 1, max(longest, stretch)
        if not (partial and outcome.decisions):
            break
        placed = {decision.pod.metadata.uid for decision in outcome.decisions}
        left = [pod for pod in left if pod.metadata.uid not in placed]
    seconds = clock() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "pods": len(pods),
        "seconds": round(seconds, 3),
        "MiB": round((peak - before) / 1024, 1),
        "placed": len(decided),
        "plans": plans,
        "longestTurn": round(longest, 2),
        "edgeCost": round(sum(decision.edge_cost for decision in decided) / 2, 3),
    }


def in_turns(planning: Planning, clock: Clock) -> tuple[Outcome, float]:
    """Make a plan to its end; returns the longest time without a turn for others as well."""
    longest, since = 0.0, clock()
    while True:
        try:
            next(planning)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome, max(longest, clock() - since)
        longest, since = max(longest, clock() - since), clock()


Case = tuple[NetworkCosts, int, Edges, int, Affinity, dict[str, Any]]
CASES: dict[str, Case] = {
    "soft anti-affinity": (COSTS, 500, layered(2), 200, keep_apart, {}),
    "soft anti-affinity, bandwidth": (COSTS, 500, layered(2), 200, keep_apart, {"minBandwidth": "1M"}),
    "chain of affinities": (COSTS, 500, layered(200, 1), 1, follow_next, {}),
    "plain, 300 pods": (COSTS, 500, layered(10), 30, no_rules, {}),
    "plain, 3000 pods": (COSTS, 500, layered(10), 300, no_rules, {}),
    "plain, 10000 pods": (COSTS, 1000, layered(10), 1000, no_rules, {}),
    "plain, 30000 pods": (COSTS, 2000, layered(30), 1000, no_rules, {}),
    "plain, 100000 pods": (COSTS, 5000, layered(100), 1000, no_rules, {}),
    "racks, 300 pods": (OF_RACKS, 500, layered(10), 30, no_rules, {}),
    "racks, 3000 pods": (OF_RACKS, 500, layered(10), 300, no_rules, {}),
    "racks, 10000 pods": (OF_RACKS, 1000, layered(10), 1000, no_rules, {}),
    "bandwidth, 300 pods": (COSTS, 500, layered(10), 30, no_rules, {"minBandwidth": "2500k"}),
    "bandwidth, 3000 pods": (COSTS, 500, layered(10), 300, no_rules, {"minBandwidth": "250k"}),
    "bandwidth, 10000 pods": (COSTS, 1000, layered(10), 1000, no_rules, {"minBandwidth": "1M"}),
    "budgets, 300 pods": (BUDGETS, 500, layered(10), 30, no_rules, {"minBandwidth": "2500k"}),
    "budgets, 3000 pods": (BUDGETS, 500, layered(10), 300, no_rules, {"minBandwidth": "250k"}),
    "budgets, 10000 pods": (BUDGETS, 1000, layered(10), 1000, no_rules, {"minBandwidth": "75k"}),
}


def main() -> None:
    """Run the cases and print a JSON object each."""
    parser = argparse.ArgumentParser(prog="python -m bench.planning", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument(
        "--processor-time", action="store_true", help="measure and limit plans by it, on a machine with other work"
    )
    parser.add_argument("--partial", action="store_true", help="place what fits, plan after plan, not all or nothing")
    options = parser.parse_args()
    clock = time.process_time if options.processor_time else time.monotonic
    for name in options.cases:
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(json.dumps({"case": name, **pool.apply(measure, (clock, options.partial, *CASES[name]))}), flush=True)


if __name__ == "__main__":
    main()
