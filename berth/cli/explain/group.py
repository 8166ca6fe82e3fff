"""How an AppGroup is placed now: recomputed from the live objects and the decisions on its pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from berth.api.labels import LABEL_APPGROUP
from berth.cli.explain.group_reading import GroupFacts
from berth.cli.explain.pod import UNREAD_EVENTS, event_rows, parse_time, pod_document
from berth.cli.figures import group_figures, price_fields
from berth.kube.custom_object import decoded
from berth.kube.objects import CustomObject, Pod, Service
from berth.network.costs import NetworkCosts, Place
from berth.network.edge_costs import edge_totals, node_places, pair_summary
from berth.network.groups import GroupKey, read_group
from berth.network.members import GroupMembers
from berth.network.over_limit import over_limits
from berth.network.routing import Routing
from berth.network.sites import Placed, Sites
from berth.network.workload_edges import workload_edges
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.services import ServiceTable, WorkloadRouting
from berth.scheduling.configuration import Profile
from berth.scheduling.group_summary import RoutingOf, summarize
from berth.scheduling.single import workload_of

KIND = "AppGroupExplanation"
VERSION = 3
"""Version of the document; 1 listed every pair of pods as ``edgeCosts``, 2 called pairs of pods ``edges``."""
MAX_EVENTS = 10


_UNREAD = {
    "nodes": "what calls cost, and what the group survives, are left out",
    "networktopologies": "what calls cost, and what the group survives, are left out",
    "services": "pods are taken to call every replica",
    "events": UNREAD_EVENTS,
}
"""What is missing in an explanation made without the right to list something."""


def group_document(facts: GroupFacts, *, schedulers: Collection[str], now: datetime) -> dict[str, Any]:
    """Explain one AppGroup.

    Args:
        facts: what was read of the cluster; pods without its label are left out.
        schedulers: scheduler names that are Berth's.
        now: for ages.
    """
    obj = facts.group
    told = _by_object(facts.events)
    group = read_group(obj)
    own = [
        pod for pod in facts.pods if pod.metadata.labels.get(LABEL_APPGROUP) == obj.metadata.name and not pod.finished
    ]
    members = GroupMembers()
    for pod in own:
        members.update(pod, node=pod.spec.node_name)
    places = node_places(list(facts.nodes))
    unread = [name for name in facts.unread if name == "events"]
    rows = [
        _pod(pod, places, told.get(pod.metadata.uid, ()), schedulers=schedulers, now=now, unread=unread) for pod in own
    ]
    rows.sort(key=lambda row: (group.index.get(row["selector"], len(group.index) + 1), row["name"]))
    document: dict[str, Any] = {
        "kind": KIND,
        "version": VERSION,
        "namespace": obj.metadata.namespace,
        "name": obj.metadata.name,
        "members": group.members,
        "pods": rows,
        "placed": sum(1 for row in rows if row["node"]),
        "conditions": _conditions(obj),
        "events": event_rows(told.get(obj.metadata.uid, ()), uid=obj.metadata.uid, now=now)[:MAX_EVENTS],
        "unread": [{"resource": name, "effect": _UNREAD[name]} for name in facts.unread],
    }
    if group.problem:
        return {**document, "problem": group.problem}
    workloads = {row["selector"] for row in rows}
    document["order"] = sorted(group.index, key=lambda selector: group.index[selector])
    document["ordered"] = bool(decoded(obj.status).get("topologyOrder"))
    document["missingWorkloads"] = [selector for selector in group.selectors if selector not in workloads]
    costs, network = _network(obj.metadata.namespace, facts.topologies, facts.profile, now)
    if "networktopologies" in facts.unread:
        network["missing"] = "NetworkTopologies may not be listed"
    if {"nodes", "networktopologies"} & set(facts.unread):
        # Costs that nobody has told count as 100 and every node as of no zone: figures would be wrong, not coarse.
        return document | {"network": network}
    gone = Counter(row["node"] for row in rows if row["node"] and row["node"] not in places)
    if gone:
        document["goneNodes"] = [{"name": name, "pods": count} for name, count in sorted(gone.items())]
    placed = members.places(group.key)
    total, _ = edge_totals(group, placed, places, costs)
    document["network"] = network
    routing = _routing(group.key, own, facts.services)
    sites = Sites.of(places, costs)
    summary = summarize(group, _placed(own, places), sites, routing)
    document["prices"] = price_fields(group, facts.profile, sites)

    def kind(workload: str) -> Routing:
        return routing(workload).routing

    over, _ = over_limits(group, placed, places, costs, kind)
    document |= group_figures(summary, routing) | pair_summary(total, over)
    document["dependencies"] = workload_edges(group, placed, places, costs, kind)
    calls = {(edge.caller, edge.callee): edge for edge in summary.edges}
    for row in document["dependencies"]:
        edge = calls.get((row["from"], row["to"]))
        if edge is not None:
            row |= {"routing": edge.routing.value, "cost": round(edge.cost, 6)}
            row["crossZoneShare"] = round(edge.cross_zone, 6)
    return document


def _routing(key: GroupKey, pods: Iterable[Pod], services: Iterable[Service]) -> RoutingOf:
    table = ServiceTable()
    for pod in pods:
        table.join(pod)
    for service in services:
        table.update(service)

    def routing(workload: str) -> WorkloadRouting:
        return table.routing(key, workload)

    return routing


def _placed(pods: Iterable[Pod], places: Mapping[str, Place]) -> Placed:
    """Pods by workload and node; those that are being deleted are called no more."""
    placed: dict[str, Counter[str]] = {}
    for pod in pods:
        if pod.spec.node_name in places and pod.metadata.deletion_timestamp is None:
            placed.setdefault(workload_of(pod), Counter())[pod.spec.node_name] += 1
    return placed


def _by_object(events: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Events by the uid of what they are about."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        found.setdefault(str((event.get("regarding") or {}).get("uid", "")), []).append(event)
    return found


def _pod(
    pod: Pod,
    places: Mapping[str, Place],
    events: Sequence[Mapping[str, Any]],
    *,
    schedulers: Collection[str],
    now: datetime,
    unread: Collection[str],
) -> dict[str, Any]:
    explained = pod_document(pod, events, schedulers=schedulers, now=now, unread=unread)
    place = places.get(pod.spec.node_name, Place())
    row = {
        "name": pod.metadata.name,
        "selector": workload_of(pod),
        "phase": pod.status.phase,
        "node": pod.spec.node_name,
        "region": place.region,
        "zone": place.zone,
        **({"segment": place.segment} if place.segment else {}),
        "state": explained["state"],
    }
    if explained["state"] != "placed":
        row["message"] = explained["message"]
    return row


def _conditions(obj: CustomObject) -> list[dict[str, Any]]:
    found = decoded(obj.status).get("conditions") or []
    names = ("type", "status", "reason", "message")
    return [{name: str(item.get(name, "")) for name in names} for item in found if isinstance(item, dict)]


def _network(
    namespace: str, topologies: Sequence[CustomObject], profile: Profile, now: datetime
) -> tuple[NetworkCosts, dict[str, Any]]:
    """The costs that count for a namespace, and what there is to say about them."""
    cache = Cache(clock=lambda: 0.0)
    problems = {
        f"{item.metadata.namespace}/{item.metadata.name}": problem
        for item in topologies
        if (problem := cache.update_topology(item)[0]) is not None
    }
    costs = cache.costs_for(namespace, profile)
    network: dict[str, Any] = {"problems": sorted(problems.values())}
    if not costs.available:
        network["missing"] = costs.missing
        return costs, network
    network |= {"topology": costs.source, "weights": list(costs.weight_sets)}
    moment = parse_time(costs.data_time)
    if moment is not None:
        network["dataTime"] = costs.data_time
        network["ageSeconds"] = max(0, int((now - moment).total_seconds()))
    chosen = next(item for item in topologies if f"{item.metadata.namespace}/{item.metadata.name}" == costs.source)
    network["conditions"] = _conditions(chosen)
    return costs, network
