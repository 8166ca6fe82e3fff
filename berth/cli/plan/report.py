"""A plan as a document: what ``-o json`` and ``-o yaml`` print, and what the table is drawn from.

The field ``version`` grows when a field changes its meaning or goes; new fields may come without that.
docs/reference/plan.md describes every field.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from berth.api.labels import membership
from berth.cli.figures import group_figures, price_fields
from berth.kube.objects import Pod
from berth.network.costs import NO_COSTS, NetworkCosts, Place
from berth.network.edge_costs import edge_totals, node_places, pair_summary
from berth.network.groups import GroupKey
from berth.network.over_limit import over_limits
from berth.network.sites import Sites
from berth.scheduling.annotations import write_decision
from berth.scheduling.cache.services import WorkloadRouting
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.decision import Scale
from berth.scheduling.gang.strategies import REPLICAS
from berth.scheduling.group_summary import placed_pods, summarize
from berth.scheduling.scale_down_order import ScaleDownOrder
from berth.scheduling.simulation.inputs import Inputs
from berth.scheduling.simulation.simulate import Placed, Simulation, Unplaced
from berth.scheduling.single import workload_of
from berth.scheduling.units import CPU

VERSION = 3
KIND = "PlacementPlan"


def plan_document(simulation: Simulation, inputs: Inputs, *, all_nodes: bool = False) -> dict[str, Any]:
    """The whole plan.

    Args:
        simulation: what was planned.
        inputs: what it was planned from.
        all_nodes: list nodes that get no pod too.
    """
    places = node_places(inputs.of("Node"))
    costs = _deletion_costs(simulation, inputs)
    placed = [
        _placed(item, simulation, inputs, places, cost) for item, cost in zip(simulation.placed, costs, strict=True)
    ]
    placed.sort(key=lambda item: (item["namespace"], item.get("appGroup", ""), _natural(item["name"])))
    unplaced = [_unplaced(item, inputs) for item in simulation.unplaced]
    reader = _GroupReader(simulation, places)
    used = Counter(item.decision.node for item in simulation.placed)
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": {
            "pods": len(placed) + len(unplaced),
            "placed": len(placed),
            "notPlaced": len(unplaced),
            "nodes": simulation.cache.state.node_count,
            "nodesUsed": len(used),
            "ignoredPods": sum(simulation.ignored.values()),
        },
        "pods": placed,
        "notPlaced": unplaced,
        "appGroups": [reader.read(key) for key in simulation.groups],
        "nodes": [
            _node(name, simulation, places, planned=used[name])
            for name in sorted(simulation.cache.state.node_index, key=_natural)
            if all_nodes or name in used
        ],
        "ignored": [{"schedulerName": name, "pods": count} for name, count in sorted(simulation.ignored.items())],
        "skipped": [{"kind": name, "objects": count} for name, count in sorted(inputs.skipped.items())],
        "notes": [*inputs.notes, *simulation.notes],
    }


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key in which node-10 comes after node-9."""
    parts = name.replace("-", " ").split()
    return tuple((int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in parts)


def _identity(pod: Pod, inputs: Inputs) -> dict[str, Any]:
    document: dict[str, Any] = {"namespace": pod.metadata.namespace, "name": pod.metadata.name}
    origin = inputs.origins.get(pod.key)
    if origin is not None:
        document["workload"] = origin
    return document


def _deletion_costs(simulation: Simulation, inputs: Inputs) -> list[int | None]:
    """What each placed pod would be bound with for the day when its ReplicaSet shrinks."""
    order = ScaleDownOrder()
    for pod in inputs.of("Pod"):
        order.seen(None, pod)
    if not simulation.configuration.pod_deletion_cost:
        return [None] * len(simulation.placed)
    return [order.bind(item.decision.pod, item.decision.node) for item in simulation.placed]


def _placed(
    item: Placed, simulation: Simulation, inputs: Inputs, places: dict[str, Place], deletion_cost: int | None
) -> dict[str, Any]:
    decision = item.decision
    document = _identity(decision.pod, inputs)
    if decision.group is not None:
        document["appGroup"] = decision.group[1]
        document["selector"] = workload_of(decision.pod)
    place = places.get(decision.node, Place())
    document |= {"node": decision.node, **_where(place)}
    if item.waited:
        document["waitSeconds"] = item.waited
    if deletion_cost:
        document["podDeletionCost"] = deletion_cost
    # As it is when all are placed: those that came later may have moved it, or share its socket.
    outlook = simulation.cache.state.socket_choice.outlook(decision.pod.metadata.uid)
    document["decision"] = msgspec.json.decode(write_decision(decision, item.costs, outlook))
    return document


def _where(place: Place) -> dict[str, str]:
    """Region, zone and, where there is one, segment."""
    segment = {"segment": place.segment} if place.segment else {}
    return {"region": place.region, "zone": place.zone, **segment}


def _unplaced(item: Unplaced, inputs: Inputs) -> dict[str, Any]:
    return {**_identity(item.pod, inputs), "reason": item.reason, "message": item.message}


def _group_of(pod: Pod) -> GroupKey | None:
    """The AppGroup that a pod's label names."""
    place = membership(pod.metadata.labels)
    return GroupKey(pod.metadata.namespace, place.appgroup) if place is not None else None


class _GroupReader:
    """What became of AppGroups."""

    def __init__(self, simulation: Simulation, places: dict[str, Place]) -> None:
        self._simulation, self._places = simulation, places
        self._sites: dict[str, Sites] = {}
        self._terms: dict[GroupKey, dict[str, Counter[str]]] = {}
        # Members are pods that are placed or may be; the cache leaves those with scheduling gates out.
        self._unplaced = Counter(_group_of(item.pod) for item in simulation.unplaced)
        for decision in (item.decision for item in simulation.placed):
            if decision.group is not None and decision.scale is Scale.COST:
                by_strategy = self._terms.setdefault(decision.group, {})
                by_strategy.setdefault(decision.strategy, Counter()).update(decision.terms)

    def read(self, key: GroupKey) -> dict[str, Any]:
        """One AppGroup."""
        cache = self._simulation.cache
        members = cache.members.of(key)
        nodes = sorted({member.node for member in members if member.node}, key=_natural)
        document: dict[str, Any] = {
            "namespace": key.namespace,
            "name": key.name,
            "pods": sum(1 for member in members if member.node) + self._unplaced[key],
            "placed": sum(1 for member in members if member.node),
            "nodes": nodes,
        }
        group = cache.groups.get(key)
        if group is None or group.problem:
            document["problem"] = (
                group.problem if group is not None else f"there is no AppGroup {key.name} in {key.namespace}"
            )
            return document
        document["members"] = group.members
        document["order"] = sorted(group.index, key=lambda selector: group.index[selector])
        profile = self._simulation.configuration.profile_for(self._simulation.groups[key])
        costs = cache.costs_for(key.namespace, profile) if profile is not None else NO_COSTS
        document["network"] = (
            {"topology": costs.source, "weights": list(costs.weight_sets)} if costs.available else {"missing": True}
        )

        def routing(workload: str) -> WorkloadRouting:
            return cache.services.routing(key, workload)

        summary = summarize(group, placed_pods(key, cache), self._sites_of(costs), routing)
        placed = cache.members.places(key)
        total, _ = edge_totals(group, placed, self._places, costs)
        over, _ = over_limits(group, placed, self._places, costs, lambda workload: routing(workload).routing)
        document |= group_figures(summary, routing) | pair_summary(total, over)
        objective = [
            {"strategy": strategy, "cost": round(terms.total(), 6), "terms": {n: round(v, 6) for n, v in terms.items()}}
            for strategy, terms in self._terms.get(key, {}).items()
        ]
        if objective:
            document["objective"] = objective
        if profile is not None and any(item["strategy"] == REPLICAS for item in objective):
            document["prices"] = price_fields(group, profile, self._sites_of(costs))
        return document

    def _sites_of(self, costs: NetworkCosts) -> Sites:
        if costs.source not in self._sites:
            self._sites[costs.source] = Sites.of(self._places, costs)
        return self._sites[costs.source]


def _node(name: str, simulation: Simulation, places: dict[str, Place], *, planned: int) -> dict[str, Any]:
    state = simulation.cache.state
    place = places.get(name, Place())
    return {
        "name": name,
        **_where(place),
        "pods": sum(1 for _ in state.pods_on(name)),
        "planned": planned,
        "resources": node_resources(state, name),
    }


def node_resources(state: ClusterState, name: str) -> dict[str, Any]:
    """What a node has, what the pods on it take and what is left, by resource: cores, bytes, counts."""
    slot = state.node_index[name]
    resources: dict[str, Any] = {}
    for resource, column in state.resources.items():
        allocatable, used = int(state.allocatable[slot, column]), int(state.used[slot, column])
        if allocatable or used:
            scale = 1000 if resource == CPU else 1
            resources[resource] = {
                "allocatable": _number(allocatable / scale),
                "used": _number(used / scale),
                "free": _number((allocatable - used) / scale),
            }
    return resources


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else round(value, 3)
