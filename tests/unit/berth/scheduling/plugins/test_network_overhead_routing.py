"""maxNetworkCost for the endpoints that are reached: the filter against an evaluator that shares no code with it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given, settings

from bench.replicas import cluster as bench
from bench.replicas.rules import violations
from berth.scheduling.framework.reasons import MAX_NETWORK_COST_EXCEEDED
from berth.scheduling.plugins.network_overhead import NetworkOverhead
from tests.support.routed_calls import PREFER_SAME_ZONE, Case, arriving, bench_cluster, bench_pod, cases


def pairs(cluster: bench.Cluster) -> set[tuple[str, str]]:
    """Callers and the endpoints that they reach beyond a limit."""
    return {(item.subject, item.detail) for item in violations(cluster) if item.rule == "maxNetworkCost"}


def expected(case: Case) -> list[bool]:
    """Nodes on which the pod makes somebody reach an endpoint beyond a limit who did not reach it before."""
    before = bench_cluster(case)
    known = pairs(before)
    return [
        bool(pairs(replace(before, pods=[*before.pods, bench_pod(case, "new", case.workload, node)])) - known)
        for node in range(len(case.places))
    ]


def filtered(case: Case) -> list[bool]:
    """Nodes that the filter rejects for maxNetworkCost."""
    _, cycle = arriving(case, "maxNetworkCost")
    rejected = [False] * len(case.places)
    for item in NetworkOverhead().filter(cycle):
        assert item.reason == MAX_NETWORK_COST_EXCEEDED
        rejected = [one or bool(other) for one, other in zip(rejected, item.nodes, strict=True)]
    return rejected


@settings(max_examples=500, derandomize=True)
@given(cases(amounts=[0, 1, 4, 9, 20, 30, 99], budgets=[None]))
@example(Case([0, 2], PREFER_SAME_ZONE, {("a", "b"): 1}, [("b", 0), ("b", 1)], "a"))  # each zone has an endpoint
@example(Case([0, 1, 2], PREFER_SAME_ZONE, {("a", "b"): 4}, [("a", 0), ("b", 0)], "b"))  # its caller is served
@example(Case([0, 2, 4], PREFER_SAME_ZONE, {("a", "b"): 1}, [("a", 0), ("b", 0), ("b", 1)], "b"))  # zones count no more
@example(Case([0, 2], PREFER_SAME_ZONE, {("a", "b"): 1}, [("a", 0), ("b", 1)], "b"))  # broken already by others
@example(Case([0, 3], PREFER_SAME_ZONE, {("a", "b"): 1}, [("b", 0)], "a"))  # one zone name, two regions
def test_the_filter_says_what_the_evaluator_says(case: Case) -> None:
    assert filtered(case) == expected(case)
