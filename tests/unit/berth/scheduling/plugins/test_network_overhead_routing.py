"""maxNetworkCost for the endpoints that are reached: the filter against an evaluator that shares no code with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.replicas import cluster as bench
from bench.replicas.rules import violations
from berth.api.labels import LABEL_APPGROUP, LABEL_REGION, LABEL_WORKLOAD, LABEL_ZONE
from berth.kube.objects import OwnerReference, Pod, Service
from berth.network.costs import NetworkCosts
from berth.scheduling.framework.reasons import MAX_NETWORK_COST_EXCEEDED
from berth.scheduling.plugins.network_overhead import NetworkOverhead
from berth.scheduling.single import cycle_of
from tests.support import builders, kinds
from tests.support.placement import Lab, both_ways, group_object, member

WORKLOADS = ("a", "b", "c")
PLACES = (("z1", "r1"), ("z2", "r1"), ("z3", "r2"), ("z1", "r2"), ("", "r1"), ("", ""))
"""Zone and region; the name z1 is used in both regions."""
COSTS = NetworkCosts(
    zones=both_ways({("z1", "z2"): 4.0, ("z2", "z3"): 9.0}), regions={("r1", "r2"): 20.0, ("r2", "r1"): 30.0}
)
SERVICES: tuple[dict[str, Any] | None, ...] = (
    None,
    {},
    {"trafficDistribution": "PreferSameZone"},
    {"trafficDistribution": "PreferClose"},
    {"trafficDistribution": "PreferSameNode"},
    {"trafficDistribution": "PreferSameNode", "internalTrafficPolicy": "Local"},
    {"trafficDistribution": "PreferSameZone", "clusterIP": "None"},
)


class Case(NamedTuple):
    """A placement, and the pod that is to join it."""

    places: list[int]
    """of each node, as a number in PLACES"""
    services: list[dict[str, Any] | None]
    """of each workload"""
    limits: dict[tuple[str, str], int]
    """by caller and callee"""
    placed: list[tuple[str, int]]
    """workload and node of every pod"""
    workload: str
    """of the pod that joins"""
    stateful: bool = False
    """whether pods are a StatefulSet's"""


def pairs(cluster: bench.Cluster) -> set[tuple[str, str]]:
    """Callers and the endpoints that they reach beyond a limit."""
    return {(item.subject, item.detail) for item in violations(cluster) if item.rule == "maxNetworkCost"}


def expected(case: Case) -> list[bool]:
    """Nodes on which the pod makes somebody reach an endpoint beyond a limit who did not reach it before."""
    nodes = {}
    for number, place in enumerate(case.places):
        labels = {label: value for label, value in zip((LABEL_ZONE, LABEL_REGION), PLACES[place], strict=True) if value}
        nodes[f"n{number}"] = bench.Node(f"n{number}", labels, (), {"pods": 110.0})

    def at(name: str, workload: str, node: int) -> bench.Pod:
        labels = {LABEL_APPGROUP: "shop", LABEL_WORKLOAD: workload, "app": workload}
        return bench.Pod("default", name, f"n{node}", labels, {}, case.stateful)

    before = bench.Cluster(
        nodes=nodes,
        pods=[at(f"p{number}", workload, node) for number, (workload, node) in enumerate(case.placed)],
        services=[
            manifest(name, spec) for name, spec in zip(WORKLOADS, case.services, strict=True) if spec is not None
        ],
        groups={("default", "shop"): [bench.Edge(*ends, float(limit)) for ends, limit in case.limits.items()]},
        zone_costs=dict(COSTS.zones),
        region_costs=dict(COSTS.regions),
    )
    known = pairs(before)
    return [
        bool(pairs(replace(before, pods=[*before.pods, at("new", case.workload, node)])) - known)
        for node in range(len(nodes))
    ]


def manifest(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": {"app": name}, **spec}}


def filtered(case: Case) -> list[bool]:
    """Nodes that the filter rejects for maxNetworkCost."""
    nodes = []
    for number, place in enumerate(case.places):
        labels = {label: value for label, value in zip((LABEL_ZONE, LABEL_REGION), PLACES[place], strict=True) if value}
        nodes.append(builders.node(f"n{number}", labels=labels))
    lab = Lab(nodes, costs=COSTS)
    workloads = []
    for name in WORKLOADS:
        workload = kinds.workload(name)
        workload["dependencies"] = [
            {"workload": kinds.ref(callee), "maxNetworkCost": limit}
            for (caller, callee), limit in case.limits.items()
            if caller == name
        ]
        workloads.append(workload)
    shop = lab.group(group_object("shop", *workloads))

    def pod(name: str, workload: str, **arguments: Any) -> Pod:
        made = member(name, workload, labels={"app": workload}, **arguments)
        if case.stateful:
            made.metadata.owner_references = [OwnerReference(kind="StatefulSet", name=workload, uid=workload)]
        return made

    for name, spec in zip(WORKLOADS, case.services, strict=True):
        if spec is not None:
            lab.cache.update_service(msgspec.convert(manifest(name, spec), Service))
    lab.see(*(pod(f"p{number}", name, on=f"n{node}") for number, (name, node) in enumerate(case.placed)))
    new = pod("new", case.workload)
    lab.see(new)
    infrastructure = lab.planner.view.current(COSTS, lab.cache.bandwidth())
    cycle = cycle_of(new, shop, lab.cache, infrastructure, limits_known=True)
    rejected = [False] * len(nodes)
    for item in NetworkOverhead().filter(cycle):
        assert item.reason == MAX_NETWORK_COST_EXCEEDED
        rejected = [one or bool(other) for one, other in zip(rejected, item.nodes, strict=True)]
    return rejected


@st.composite
def cases(draw: st.DrawFn) -> Case:
    places = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 4, 5]), min_size=2, max_size=6))
    node = st.integers(0, len(places) - 1)
    ends = st.sampled_from([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c"), ("b", "a")])
    return Case(
        places=places,
        services=draw(st.tuples(*(st.sampled_from(SERVICES),) * 3).map(list)),
        limits=draw(st.dictionaries(ends, st.sampled_from([0, 1, 4, 9, 20, 30, 99]), min_size=1, max_size=3)),
        placed=draw(st.lists(st.tuples(st.sampled_from(WORKLOADS), node), max_size=7)),
        workload=draw(st.sampled_from(WORKLOADS)),
        stateful=draw(st.integers(0, 7)) == 7,
    )


SAME_ZONE = [None, SERVICES[2], None]


@settings(max_examples=500, derandomize=True)
@given(cases())
@example(Case([0, 2], SAME_ZONE, {("a", "b"): 1}, [("b", 0), ("b", 1)], "a"))  # each zone has an endpoint
@example(Case([0, 1, 2], SAME_ZONE, {("a", "b"): 4}, [("a", 0), ("b", 0)], "b"))  # its caller is served where it is
@example(Case([0, 2, 4], SAME_ZONE, {("a", "b"): 1}, [("a", 0), ("b", 0), ("b", 1)], "b"))  # zones no longer count
@example(Case([0, 2], SAME_ZONE, {("a", "b"): 1}, [("a", 0), ("b", 1)], "b"))  # broken already, and no fault of its own
@example(Case([0, 3], SAME_ZONE, {("a", "b"): 1}, [("b", 0)], "a"))  # one zone name, two regions
def test_the_filter_says_what_the_evaluator_says(case: Case) -> None:
    assert filtered(case) == expected(case)
