"""What Berth put on a node and why, what others put there, and what the node would still take. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from berth.api.labels import BERTH_PREFIX, RESOURCE_BANDWIDTH, membership
from berth.cli.explain.pod import parse_time, read_annotation
from berth.cli.plan.report import node_resources
from berth.kube.objects import CustomObject, Namespace, Node, Pod, Service
from berth.kube.probe_reports import LinkReport
from berth.network.costs import Place
from berth.network.edge_costs import EdgeTotals, edge_totals, node_places
from berth.network.groups import GroupKey
from berth.network.over_limit import over_limits
from berth.network.routing import Routing
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.volumes import StorageObject
from berth.scheduling.configuration import PlacementConfiguration, Profile
from berth.scheduling.gang.infrastructure import read_settings
from berth.scheduling.node_fit import NodeFit
from berth.scheduling.single import workload_of

KIND = "NodeExplanation"
VERSION = 1
_UNREAD = {
    "namespaces": "rules that select namespaces by label are judged as if they selected none",
    "nodes": "costs towards other nodes are not known, and rules of waiting pods are judged by this node alone",
    "appgroups": "dependencies are not known, and their costs and bandwidth are left out",
    "networktopologies": "network costs are not known",
    "probereports": "how busy the node's link is is not known, and not judged",
    "services": "pods are taken to call every replica",
}
"""What is missing in an explanation made without the right to list something."""
_UNREAD_STORAGE = "volumes of waiting pods are judged as if there were none of these"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What was read of the cluster about one node."""

    node: Node
    """the node"""
    here: Sequence[Pod]
    """unfinished pods on it"""
    bound: Mapping[str, str] = field(default_factory=dict)
    """RFC 3339 time at which pods got it, by uid"""
    waiting: Sequence[Pod] = ()
    """pods without a node that are to be judged"""
    stated: bool = False
    """whether the one waiting pod was asked for by name"""
    elsewhere: Sequence[Pod] = ()
    """pods of other nodes that matter: partners of those here, and what rules of waiting pods look at"""
    nodes: Sequence[Node] = ()
    """other nodes that matter"""
    groups: Sequence[CustomObject] = ()
    """AppGroups"""
    topologies: Sequence[CustomObject] = ()
    """NetworkTopologies"""
    services: Sequence[Service] = ()
    """Services, which say what replicas are called"""
    namespaces: Sequence[Namespace] = ()
    """namespaces, for rules that select them"""
    storage: Sequence[StorageObject] = ()
    """volumes, claims and their like, for waiting pods that use some"""
    reports: Sequence[LinkReport] = ()
    """the node's ProbeReport, if there is one and a profile judges links by it"""
    unread: Sequence[str] = ()
    """plural names of what may not be listed, and is missing above"""


def node_document(facts: NodeFacts, configuration: PlacementConfiguration, *, now: datetime) -> dict[str, Any]:
    """Explain one node.

    Args:
        facts: what was read of the cluster.
        configuration: profiles: whose pods are Berth's, and which weights and limits count for them.
        now: for ages.
    """
    node, name = facts.node, facts.node.metadata.name
    cache = _cache(facts, now)
    place = Place.of(node.metadata.labels)
    ours: list[Pod] = []
    others: list[Pod] = []
    for pod in facts.here:
        decision, _ = read_annotation(pod)
        mine = decision is not None and configuration.profile_for(pod.spec.scheduler_name) is not None
        (ours if mine else others).append(pod)
    return {
        "kind": KIND,
        "version": VERSION,
        "name": name,
        "region": place.region,
        "zone": place.zone,
        **({"segment": place.segment} if place.segment else {}),
        "ready": next((item.status for item in node.status.conditions if item.type == "Ready"), "Unknown"),
        "unschedulable": node.spec.unschedulable,
        "taints": [
            f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}" for taint in node.spec.taints
        ],
        "settings": {k: v for k, v in sorted(node.metadata.annotations.items()) if k.startswith(BERTH_PREFIX)},
        "problems": list(read_settings(node).problems),
        "unread": [{"resource": name, "effect": _UNREAD.get(name, _UNREAD_STORAGE)} for name in facts.unread],
        "resources": _resources(cache, name, configuration.profiles[0]),
        "pods": _placed(ours, facts, cache, configuration, now=now),
        "others": _others(others, cache),
        **({"stated": facts.waiting[0].key} if facts.stated else {}),
        "waiting": _waiting(facts.waiting, cache, name, configuration),
    }


def _cache(facts: NodeFacts, now: datetime) -> Cache:
    """The scheduler's view of what was read."""
    cache = Cache(clock=lambda: 0.0)
    for node in {item.metadata.name: item for item in (*facts.nodes, facts.node)}.values():
        cache.update_node(node)
    for namespace in facts.namespaces:
        cache.update_namespace(namespace)
    for item in facts.storage:
        cache.update_storage(item)
    for group in facts.groups:
        cache.update_group(group)
    for service in facts.services:
        cache.update_service(service)
    for topology in facts.topologies:
        cache.update_topology(topology)
    for report in facts.reports:
        cache.link_use.read(report, now)
    for pod in {item.metadata.uid: item for item in (*facts.elsewhere, *facts.here, *facts.waiting)}.values():
        cache.update_pod(pod)
    return cache


def _resources(cache: Cache, name: str, profile: Profile) -> dict[str, Any]:
    """Amounts by resource; bandwidth is taken by requests and by placed edges alike."""
    resources = node_resources(cache.state, name)
    bandwidth = resources.get(RESOURCE_BANDWIDTH)
    if bandwidth is not None:
        free = NodeFit(cache, profile, name).bandwidth_free("")
        bandwidth["free"] = int(free)
        bandwidth["used"] = bandwidth["allocatable"] - bandwidth["free"]
    return resources


def _placed(
    pods: Iterable[Pod], facts: NodeFacts, cache: Cache, configuration: PlacementConfiguration, *, now: datetime
) -> list[dict[str, Any]]:
    """Pods that Berth put there, each with its decision and what its edges cost now."""
    places = node_places((*facts.nodes, facts.node))
    edges: dict[GroupKey, Mapping[tuple[str, str], EdgeTotals]] = {}
    over: dict[GroupKey, Mapping[tuple[str, str], int]] = {}
    rows = []
    for pod in pods:
        decision, _ = read_annotation(pod)
        row: dict[str, Any] = {"namespace": pod.metadata.namespace, "name": pod.metadata.name}
        moment = parse_time(facts.bound.get(pod.metadata.uid, ""))
        if moment is not None:
            row["boundSeconds"] = max(0, int((now - moment).total_seconds()))
        row["decision"] = decision
        member = membership(pod.metadata.labels)
        if member is not None:
            row["appGroup"], row["selector"] = member.appgroup, member.workload
            key = GroupKey(pod.metadata.namespace, member.appgroup)
            group = cache.groups.get(key)
            if group is not None and not group.problem:
                if key not in edges:
                    profile = configuration.profile_for(pod.spec.scheduler_name) or configuration.profiles[0]
                    costs = cache.costs_for(key.namespace, profile)
                    placed = cache.members.places(key)
                    _, edges[key] = edge_totals(group, placed, places, costs)
                    _, over[key] = over_limits(group, placed, places, costs, partial(_routing, cache, key))
                own = (member.workload, pod.spec.node_name)
                total = edges[key].get(own, EdgeTotals())
                row |= {"edges": total.edges, "edgeCost": round(total.cost, 6), "edgesOverLimit": over[key].get(own, 0)}
        rows.append(row)
    rows.sort(key=lambda row: (row["namespace"], row.get("appGroup", ""), row.get("selector", ""), row["name"]))
    return rows


def _routing(cache: Cache, group: GroupKey, workload: str) -> Routing:
    return cache.services.routing(group, workload).routing


def _others(pods: Sequence[Pod], cache: Cache) -> dict[str, Any]:
    """Pods that somebody else put there, in one line: how many of whom, and what they request."""
    state, requests = cache.state, Counter[str]()
    for pod in pods:
        record = state.record(pod.metadata.uid)
        if record is not None:
            requests.update(dict(record.template.requests))
    return {
        "pods": len(pods),
        "bySchedulerName": dict(Counter(pod.spec.scheduler_name or "(none)" for pod in pods).most_common()),
        "byNamespace": dict(Counter(pod.metadata.namespace for pod in pods).most_common()),
        "requests": {"cpu": requests["cpu"] / 1000, "memory": requests["memory"]},
    }


def _waiting(
    pods: Sequence[Pod], cache: Cache, node: str, configuration: PlacementConfiguration
) -> list[dict[str, Any]]:
    """Waiting pods by workload: how many of each the node would take, each workload by itself, and why not more."""
    judges: dict[str, NodeFit] = {}
    together: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in sorted(pods, key=lambda item: (item.metadata.creation_timestamp or "", item.key)):
        together.setdefault(_row_of(pod), []).append(pod)
    rows = []
    for (namespace, group, workload), alike in together.items():
        profile = configuration.profile_for(alike[0].spec.scheduler_name) or configuration.profiles[0]
        judge = judges.setdefault(profile.scheduler_name, NodeFit(cache, profile, node))
        fit = judge.fit(alike)
        row: dict[str, Any] = {"namespace": namespace, "workload": workload, "pods": fit.pods, "fit": fit.admitted}
        if group:
            row["appGroup"] = group
        if fit.edges:
            row |= {"edges": fit.edges, "edgeCost": round(fit.edge_cost, 6)}
        row["rejected"] = [
            {"plugin": plugin, "reason": reason, "pods": count} for (plugin, reason), count in fit.reasons.items()
        ]
        rows.append(row)
    rows.sort(key=lambda row: (not row["fit"], row["namespace"], row.get("appGroup", ""), row["workload"]))
    return rows


def _row_of(pod: Pod) -> tuple[str, str, str]:
    """Namespace, AppGroup and workload: the selector of a member, else who made the pod, else the pod itself."""
    member = membership(pod.metadata.labels)
    if member is not None:
        return pod.metadata.namespace, member.appgroup, workload_of(pod) or pod.metadata.name
    owner = next(iter(pod.metadata.owner_references), None)
    name = f"{owner.kind}/{owner.name}" if owner is not None else f"Pod/{pod.metadata.name}"
    return pod.metadata.namespace, "", name
