"""minBandwidth split over the endpoints that are reached: filter and books against plain loops over pods."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from hypothesis import example, given, settings

from bench.replicas import cluster as bench
from bench.replicas.evaluator import ALL, LOCALITY, reached, routing
from berth.scheduling.framework.framework import Framework
from berth.scheduling.framework.reasons import TOO_LITTLE_BANDWIDTH
from berth.scheduling.plugins.bandwidth import Bandwidth
from tests.support.routed_calls import PREFER_SAME_ZONE, Case, arriving, bench_cluster, bench_pod, cases

BUDGETS: list[int | None] = [None, 3, 6, 10, 20]


def usage(case: Case, cluster: bench.Cluster, pods: Sequence[bench.Pod]) -> Counter[str]:
    """bit/s of every node, one pair of pods after another; the pod that joins counts as a replica all the time."""
    used: Counter[str] = Counter()
    for (calling, called), demand in case.edges.items():
        endpoints = [pod for pod in pods if pod.workload == called]
        live = len(endpoints) + (case.workload == called and all(pod.name != "new" for pod in endpoints))
        mode = routing(cluster, called, [*endpoints, bench_pod(case, "any", called, 0)])
        for caller in (pod for pod in pods if pod.workload == calling):
            met = reached(cluster, caller, endpoints, mode)
            zones = [cluster.nodes[pod.node].zone for pod in endpoints]
            kept = mode in LOCALITY and all(zones) and cluster.nodes[caller.node].zone in zones
            share = math.ceil(demand / (len(met) if kept and mode != ALL else live)) if met else 0
            for pod in met:
                if pod.node != caller.node:
                    used[caller.node] += share
                    used[pod.node] += share
    return used


def expected(case: Case) -> list[bool]:
    """Nodes on which the pod makes some node's calls exceed its budget, or exceed it by more."""
    cluster = bench_cluster(case)
    before = usage(case, cluster, cluster.pods)
    found = []
    for node in range(len(case.places)):
        after = usage(case, cluster, [*cluster.pods, bench_pod(case, "new", case.workload, node)])
        budgets = {f"n{number}": budget for number, budget in enumerate(case.budgets) if budget is not None}
        found.append(any(after[name] > max(before[name], budget) for name, budget in budgets.items()))
    return found


@settings(max_examples=500, derandomize=True)
@given(cases(amounts=[1, 2, 5, 10, 20], budgets=BUDGETS))
@example(Case([0, 0, 2], PREFER_SAME_ZONE, {("a", "b"): 6}, [("b", 1), ("b", 2)], "a", budgets=[6, 6, 3]))
@example(Case([0, 0, 0], PREFER_SAME_ZONE, {("a", "b"): 6}, [("a", 0), ("b", 1)], "b", budgets=[6, 6, 3]))
@example(Case([0, 2, 2], PREFER_SAME_ZONE, {("a", "b"): 6}, [("a", 0), ("b", 1)], "b", budgets=[6, 6, 0]))
def test_filter_and_books_say_what_plain_loops_say(case: Case) -> None:
    lab, cycle = arriving(case, "minBandwidth")
    cluster = bench_cluster(case)
    assert dict(lab.cache.bandwidth().nodes) == {k: v for k, v in usage(case, cluster, cluster.pods).items() if v}
    rejected = [False] * len(case.places)
    for item in Bandwidth().filter(cycle):
        assert item.reason == TOO_LITTLE_BANDWIDTH
        rejected = [one or bool(other) for one, other in zip(rejected, item.nodes, strict=True)]
    assert rejected == expected(case)
    for slot, one in enumerate(rejected):
        refused = Framework.refusal([Bandwidth()], cycle, slot)
        assert refused == (("Bandwidth", TOO_LITTLE_BANDWIDTH) if one else None)
