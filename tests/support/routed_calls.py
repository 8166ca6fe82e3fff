"""Random placements of an AppGroup whose Services route calls, for Berth and for the evaluator of bench/replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import strategies as st

from bench.replicas import cluster as bench
from berth.api.labels import LABEL_APPGROUP, LABEL_REGION, LABEL_WORKLOAD, LABEL_ZONE
from berth.kube.objects import OwnerReference, Pod, Service
from berth.network.costs import NetworkCosts
from berth.scheduling.framework.cycle_state import CycleState
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
PREFER_SAME_ZONE = [None, SERVICES[2], None]
"""Services of a, b and c."""


@dataclass(frozen=True)
class Case:
    """A placement, and the pod that is to join it."""

    places: list[int]
    """of each node, as a number in PLACES"""
    services: list[dict[str, Any] | None]
    """of each workload"""
    edges: dict[tuple[str, str], int]
    """maxNetworkCost, or bit/s, by caller and callee"""
    placed: list[tuple[str, int]]
    """workload and node of every pod"""
    workload: str
    """of the pod that joins"""
    stateful: bool = False
    """whether pods are a StatefulSet's"""
    budgets: list[int | None] = field(default_factory=list)
    """bit/s of each node, None for no limit"""


@st.composite
def cases(draw: st.DrawFn, *, amounts: list[int], budgets: list[int | None]) -> Case:
    """Cases with these amounts on their edges and these budgets of nodes."""
    places = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 4, 5]), min_size=2, max_size=6))
    node = st.integers(0, len(places) - 1)
    ends = st.sampled_from([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c"), ("b", "a")])
    return Case(
        places=places,
        services=draw(st.tuples(*(st.sampled_from(SERVICES),) * 3).map(list)),
        edges=draw(st.dictionaries(ends, st.sampled_from(amounts), min_size=1, max_size=3)),
        placed=draw(st.lists(st.tuples(st.sampled_from(WORKLOADS), node), max_size=7)),
        workload=draw(st.sampled_from(WORKLOADS)),
        stateful=draw(st.integers(0, 7)) == 7,
        budgets=draw(st.lists(st.sampled_from(budgets), min_size=len(places), max_size=len(places))),
    )


def _labels(place: int) -> dict[str, str]:
    return {label: value for label, value in zip((LABEL_ZONE, LABEL_REGION), PLACES[place], strict=True) if value}


def _service(name: str, spec: dict[str, Any]) -> Mapping[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": {"app": name}, **spec}}


def bench_pod(case: Case, name: str, workload: str, node: int) -> bench.Pod:
    """A pod as the evaluator reads it."""
    labels = {LABEL_APPGROUP: "shop", LABEL_WORKLOAD: workload, "app": workload}
    return bench.Pod("default", name, f"n{node}", labels, {}, case.stateful)


def bench_cluster(case: Case) -> bench.Cluster:
    """What is placed, as the evaluator reads it; amounts of edges are limits."""
    nodes = [bench.Node(f"n{number}", _labels(place), (), {"pods": 110.0}) for number, place in enumerate(case.places)]
    services = [_service(name, spec) for name, spec in zip(WORKLOADS, case.services, strict=True) if spec is not None]
    return bench.Cluster(
        nodes={node.name: node for node in nodes},
        pods=[bench_pod(case, f"p{number}", workload, node) for number, (workload, node) in enumerate(case.placed)],
        services=services,
        groups={("default", "shop"): [bench.Edge(*ends, float(amount)) for ends, amount in case.edges.items()]},
        zone_costs=dict(COSTS.zones),
        region_costs=dict(COSTS.regions),
    )


def arriving(case: Case, demand: str) -> tuple[Lab, CycleState]:
    """What the plugins are given about the pod; `demand` is the field that the amounts of edges stand in."""
    nodes = []
    for number, place in enumerate(case.places):
        budget = case.budgets[number] if case.budgets else None
        extra = {} if budget is None else {"network.aware.com/bandwidth": str(budget)}
        nodes.append(builders.node(f"n{number}", labels=_labels(place), extra=extra))
    lab = Lab(nodes, costs=COSTS)
    workloads = []
    for name in WORKLOADS:
        workload = kinds.workload(name)
        workload["dependencies"] = [
            {"workload": kinds.ref(callee), demand: str(amount) if demand == "minBandwidth" else amount}
            for (caller, callee), amount in case.edges.items()
            if caller == name
        ]
        workloads.append(workload)
    shop = lab.group(group_object("shop", *workloads))

    def pod(name: str, workload: str, **arguments: Any) -> Pod:
        made = member(name, workload, labels={"app": workload}, **arguments)
        if case.stateful:
            made.metadata.owner_references = [OwnerReference(kind="StatefulSet", name=workload, uid=workload)]
        return made

    lab.see(*(pod(f"p{number}", name, on=f"n{node}") for number, (name, node) in enumerate(case.placed)))
    new = pod("new", case.workload)
    lab.see(new)
    lab.cache.bandwidth()
    for name, spec in zip(WORKLOADS, case.services, strict=True):
        if spec is not None:
            lab.cache.update_service(msgspec.convert(_service(name, spec), Service))
    infrastructure = lab.planner.view.current(COSTS, lab.cache.bandwidth())
    return lab, cycle_of(new, shop, lab.cache, infrastructure, limits_known=True)
