"""What the traffic of an application costs and what it survives: plain loops over pods as they are bound.

Every caller replica, every endpoint, one by one. Slow on purpose: there is nothing in it to get wrong that a reader of
docs/concepts/replicas.md would not see.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.replicas.cluster import Cluster, Edge, Manifest, Pod

Group = tuple[str, str]
ALL, SAME_ZONE, SAME_NODE, LOCAL = "All", "PreferSameZone", "PreferSameNode", "Local"
LOCALITY = (SAME_ZONE, SAME_NODE)
"""Routings that keep calls near while there is an endpoint near."""


def routing(cluster: Cluster, workload: str, pods: Sequence[Pod]) -> str:
    """How calls to a workload are routed.

    Args:
        cluster: has the Services.
        workload: its selector.
        pods: its replicas.
    """
    choices: list[tuple[bool, bool, str, str]] = []
    for service in cluster.services:
        meta, spec = service["metadata"], service.get("spec") or {}
        selector, headless = spec.get("selector") or {}, spec.get("clusterIP") == "None"
        if not selector or spec.get("type") == "ExternalName":
            continue
        for pod in pods:
            same = (meta.get("namespace") or "default") == pod.namespace
            if same and all(pod.labels.get(key) == value for key, value in selector.items()):
                choices.append((headless, meta["name"] != workload, meta["name"], _mode(service)))
                break
    if not choices or any(pod.stateful for pod in pods):
        return ALL
    return min(choices)[3]


def _mode(service: Manifest) -> str:
    spec, annotations = service.get("spec") or {}, service["metadata"].get("annotations") or {}
    if spec.get("clusterIP") == "None":
        return ALL
    if spec.get("internalTrafficPolicy") == "Local":
        return LOCAL
    older, newer = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
    if annotations.get(older, annotations.get(newer)) in ("Auto", "auto"):
        return ALL
    distribution = spec.get("trafficDistribution")
    if distribution == SAME_NODE:
        return SAME_NODE
    return SAME_ZONE if distribution in (SAME_ZONE, "PreferClose") else ALL


def reached(cluster: Cluster, caller: Pod, endpoints: Sequence[Pod], mode: str) -> list[Pod]:
    """The endpoints that a caller's calls go to, evenly."""
    on_node = [pod for pod in endpoints if pod.node == caller.node]
    if mode == LOCAL:
        return on_node
    if mode == SAME_NODE and on_node:
        return on_node
    if mode in LOCALITY and all(cluster.nodes[pod.node].zone for pod in endpoints):
        zone = cluster.nodes[caller.node].zone
        in_zone = [pod for pod in endpoints if cluster.nodes[pod.node].zone == zone]
        if in_zone:
            return in_zone
    return list(endpoints)


@dataclass(frozen=True, slots=True)
class EdgeResult:
    """One edge between two workloads that both have replicas."""

    edge: Edge
    mode: str
    """how its callee is routed"""
    cost: float
    """mean over callers of the mean over the endpoints that each reaches"""
    cost_all: float
    """the same if every endpoint were reached"""
    cross_zone: float
    """share of the calls that leave the caller's zone"""
    unreachable: float
    """share of the calls that reach nothing"""


def edge_results(cluster: Cluster, edges: Iterable[Edge], members: Mapping[str, Sequence[Pod]]) -> list[EdgeResult]:
    """Every edge whose two workloads have replicas."""
    results: list[EdgeResult] = []
    for edge in edges:
        callers, endpoints = members.get(edge.caller, ()), members.get(edge.callee, ())
        if not callers or not endpoints:
            continue
        mode = routing(cluster, edge.callee, endpoints)
        cost = cost_all = cross = unreachable = 0.0
        for caller in callers:
            met = reached(cluster, caller, endpoints, mode)
            for pod in met:
                cost += cluster.cost(caller.node, pod.node) / len(met)
                here, there = cluster.nodes[caller.node], cluster.nodes[pod.node]
                cross += (here.failure_domain != there.failure_domain) / len(met)
            if not met:
                cost += cluster.worst_cost()
                unreachable += 1
            for pod in endpoints:
                cost_all += cluster.cost(caller.node, pod.node) / len(endpoints)
        count = len(callers)
        results.append(EdgeResult(edge, mode, cost / count, cost_all / count, cross / count, unreachable / count))
    return results


def endpoint_loads(
    cluster: Cluster, edges: Iterable[Edge], members: Mapping[str, Sequence[Pod]], workload: str
) -> dict[str, float]:
    """Calls that each replica of a workload gets, by pod name, 1 being the even share; empty when no call arrives.

    Every edge brings as many calls, and every replica of a caller makes as many of them. Those that reach nothing are
    left out.
    """
    endpoints = members.get(workload, ())
    calling = [members[edge.caller] for edge in edges if edge.callee == workload and members.get(edge.caller)]
    if not calling or not endpoints:
        return {}
    loads = {pod.name: 0.0 for pod in endpoints}
    mode = routing(cluster, workload, endpoints)
    for callers in calling:
        for caller in callers:
            met = reached(cluster, caller, endpoints, mode)
            for pod in met:
                loads[pod.name] += 1 / len(callers) / len(met)
    even = sum(loads.values()) / len(endpoints)
    return {name: load / even for name, load in loads.items()} if even else {}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an AppGroup's placement is worth."""

    pods: int
    """pods with a node"""
    nodes: int
    """nodes that they use"""
    edges: int
    """edges between workloads that have replicas"""
    cost: float
    """mean over edges, as routed"""
    cost_all: float
    """mean over edges, as if every endpoint were reached"""
    cross_zone: float
    """share of calls that leave the caller's zone"""
    unreachable: float
    """share of calls that reach nothing"""
    failover_cost: float | None
    """mean over the edges that are left when the zone is gone after which it is highest; None when none is left"""
    replicated: int
    """workloads with two replicas or more"""
    survive_node: int
    """of these, how many have a replica left whichever node fails"""
    survive_zone: int
    """of these, how many have a replica left whichever zone fails"""
    endpoint_load: float
    """calls of the most loaded endpoint, 1 being its workload's mean"""
    zone_load: float
    """mean over the endpoints of one workload in one zone, 1 being the workload's mean; the highest of these"""


def evaluate(cluster: Cluster, group: Group) -> Evaluation:
    """Evaluate an AppGroup's pods that have a node."""
    edges, members = cluster.groups[group], cluster.members(group)
    results = edge_results(cluster, edges, members)
    pods = [pod for replicas in members.values() for pod in replicas]
    replicated = [replicas for replicas in members.values() if len(replicas) >= 2]
    loads = [(members[name], endpoint_loads(cluster, edges, members, name)) for name in members]
    return Evaluation(
        pods=len(pods),
        nodes=len({pod.node for pod in pods}),
        edges=len(results),
        cost=_mean([result.cost for result in results]),
        cost_all=_mean([result.cost_all for result in results]),
        cross_zone=_mean([result.cross_zone for result in results]),
        unreachable=_mean([result.unreachable for result in results]),
        failover_cost=_failover(cluster, edges, members),
        replicated=len(replicated),
        survive_node=sum(len({pod.node for pod in replicas}) > 1 for replicas in replicated),
        survive_zone=sum(len(_domains(cluster, replicas)) > 1 for replicas in replicated),
        endpoint_load=max((max(load.values(), default=0.0) for _, load in loads), default=0.0),
        zone_load=max((_zone_load(cluster, replicas, load) for replicas, load in loads), default=0.0),
    )


def together(found: Sequence[Evaluation]) -> Evaluation:
    """Several AppGroups as one: sums of counts (of nodes too), means over all edges, the worst failover and load.

    Raises:
        ValueError: there are none.
    """
    if not found:
        raise ValueError("no evaluations")
    edges = sum(item.edges for item in found)

    def mean(values: Iterable[float]) -> float:
        pairs = zip(found, values, strict=True)
        return sum(item.edges * value for item, value in pairs) / edges if edges else 0.0

    return Evaluation(
        pods=sum(item.pods for item in found),
        nodes=sum(item.nodes for item in found),
        edges=edges,
        cost=mean(item.cost for item in found),
        cost_all=mean(item.cost_all for item in found),
        cross_zone=mean(item.cross_zone for item in found),
        unreachable=mean(item.unreachable for item in found),
        failover_cost=max((item.failover_cost for item in found if item.failover_cost is not None), default=None),
        replicated=sum(item.replicated for item in found),
        survive_node=sum(item.survive_node for item in found),
        survive_zone=sum(item.survive_zone for item in found),
        endpoint_load=max(item.endpoint_load for item in found),
        zone_load=max(item.zone_load for item in found),
    )


def _domains(cluster: Cluster, pods: Iterable[Pod]) -> set[str]:
    return {cluster.nodes[pod.node].failure_domain for pod in pods}


def _failover(cluster: Cluster, edges: Sequence[Edge], members: Mapping[str, Sequence[Pod]]) -> float | None:
    costs: list[float] = []
    for zone in _domains(cluster, (pod for pods in members.values() for pod in pods)):
        left = {
            name: [pod for pod in pods if cluster.nodes[pod.node].failure_domain != zone]
            for name, pods in members.items()
        }
        results = edge_results(cluster, edges, left)
        if results:
            costs.append(_mean([result.cost for result in results]))
    return max(costs, default=None)


def _zone_load(cluster: Cluster, pods: Sequence[Pod], loads: Mapping[str, float]) -> float:
    by_zone: dict[str, list[float]] = {}
    for pod in pods:
        if pod.name in loads:
            by_zone.setdefault(cluster.nodes[pod.node].failure_domain, []).append(loads[pod.name])
    return max((_mean(found) for found in by_zone.values()), default=0.0)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
