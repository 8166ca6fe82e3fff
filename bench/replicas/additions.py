"""One more replica of many applications that are placed, where costs span three orders of magnitude.

Applications with call graphs of production's shape (a tree of services with some shared callees, sizes of a long tail)
fill most of a cluster of many zones in several regions. Then one workload of each gets a replica more, which is placed
alone. The cheapest node that has room for it is found by trying every one; room that another of them took is not free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any, Final

from bench.replicas.cluster import GROUP_LABEL, REGION, WORKLOAD_LABEL, ZONE, Cluster, Manifest, Pod, read_cluster
from bench.replicas.growth import by_berth_plan
from bench.replicas.problems import HOSTNAME, SCHEDULER, cheapest_paths, origins_of
from bench.replicas.rules import requests

Planner = Callable[[Sequence[Manifest]], Mapping[str, str]]
CLOSE: Final = 1.1
"""A replica is well placed at no more than this times the cheapest cost."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is and what is placed on it."""

    applications: int = 150
    nodes: int = 350
    regions: int = 10
    zones: int = 3
    """zones of each region"""


@dataclass(frozen=True, slots=True)
class Addition:
    """A replica that came later."""

    pod: str
    cost: float
    """of its own calls and of those to it, each edge its mean; where it was placed"""
    best: float
    """the same on the cheapest node with room, the other later replicas being where they are"""
    outside: bool
    """whether no other pod of its application is in its zone"""


def manifests(size: Size, seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Everything but the pods, and the pods of all applications without a node."""
    random = Random(f"additions {seed}")
    zones = {f"z{number}": f"r{number // size.zones}" for number in range(size.regions * size.zones)}
    documents = [_node(number, list(zones.items()), random) for number in range(size.nodes)]
    documents.append(_topology(zones, random))
    pods: list[dict[str, Any]] = []
    for number in range(size.applications):
        group, own = _application(f"app{number}", random)
        documents.append(group)
        pods += own
    return documents, pods


def _node(number: int, zones: list[tuple[str, str]], random: Random) -> dict[str, Any]:
    zone, region = zones[number % len(zones)]
    labels = {HOSTNAME: f"n{number}", ZONE: zone, REGION: region}
    room = {"cpu": str(random.choice((1, 2, 4))), "memory": "64Gi", "pods": "110"}
    metadata = {"name": f"n{number}", "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": room}}


def _topology(zones: Mapping[str, str], random: Random) -> dict[str, Any]:
    """Costs of 4 to 30 within a region, of 30 to 3000 between regions: a few are near each other, one is far away."""
    near = {pair: random.randint(4, 30) for pair in combinations(zones, 2) if zones[pair[0]] == zones[pair[1]]}
    regions = list(dict.fromkeys(zones.values()))
    place = {region: 30 * 100 ** (number / (len(regions) - 1)) for number, region in enumerate(regions)}
    far = {(one, two): max(30, round(place[two] - place[one])) for one, two in combinations(regions, 2)}
    levels = []
    for key, costs in ((ZONE, near), (REGION, far)):
        both = costs | {(end, start): cost for (start, end), cost in costs.items()}
        levels.append({"topologyKey": key, "originList": origins_of(cheapest_paths(both))})
    spec = {"configmapName": "", "weights": [{"name": "UserDefined", "topologyList": levels}]}
    version, kind = "networktopology.diktyo.x-k8s.io/v1alpha1", "NetworkTopology"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "net", "namespace": "default"}, "spec": spec}


def _application(name: str, random: Random) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """An AppGroup and its pods: every workload but the first is called by an earlier one, some by two."""
    size = min(40, 2 + int(3 * random.paretovariate(1.1)))
    selectors = [f"{name}-w{number}" for number in range(size)]
    calls: dict[str, list[str]] = {selector: [] for selector in selectors}
    for number in range(1, size):
        for caller in {random.randrange(number), *([random.randrange(number)] if random.random() < 0.2 else [])}:
            calls[selectors[caller]].append(selectors[number])
    workloads = [
        {"workload": _reference(selector), "dependencies": [{"workload": _reference(end)} for end in ends]}
        for selector, ends in calls.items()
    ]
    spec = {"numMembers": size, "topologySortingAlgorithm": "KahnSort", "workloads": workloads}
    version, metadata = "appgroup.diktyo.x-k8s.io/v1alpha1", {"name": name, "namespace": "default"}
    group = {"apiVersion": version, "kind": "AppGroup", "metadata": metadata, "spec": spec}
    pods = [
        pod_of(name, selector, number, random.choice((100, 200, 500)))
        for selector in selectors
        for number in range(random.choice((1, 1, 2, 3)))
    ]
    return group, pods


def _reference(selector: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": selector, "selector": selector}


def pod_of(group: str, selector: str, number: int, milli: int) -> dict[str, Any]:
    """A pod that waits."""
    labels = {"app": selector, GROUP_LABEL: group, WORKLOAD_LABEL: selector}
    container = {"name": "main", "resources": {"requests": {"cpu": f"{milli}m", "memory": "64Mi"}}}
    metadata = {"name": f"{selector}-{number}", "namespace": "default", "labels": labels}
    spec = {"schedulerName": SCHEDULER, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


DEFAULT_SIZE: Final = Size()


def add_replicas(size: Size = DEFAULT_SIZE, *, seed: int = 0, planner: Planner = by_berth_plan) -> list[Addition]:
    """Place all applications, then one replica more of each, and judge these."""
    documents, pods = manifests(size, seed)
    nodes = planner([*documents, *pods])
    bound = [_bound(pod, nodes[pod["metadata"]["name"]]) for pod in pods if pod["metadata"]["name"] in nodes]
    random, new = Random(f"chosen {seed}"), []
    for number in range(size.applications):
        own = [pod for pod in bound if pod["metadata"]["labels"][GROUP_LABEL] == f"app{number}"]
        if own:
            chosen = random.choice(own)
            selector = chosen["metadata"]["labels"][WORKLOAD_LABEL]
            new.append({**chosen, "metadata": {**chosen["metadata"], "name": f"{selector}-more"}})
            new[-1]["spec"] = {key: value for key, value in chosen["spec"].items() if key != "nodeName"}
            new[-1].pop("status")
    later = planner([*documents, *bound, *new])
    cluster = read_cluster([*documents, *bound])
    room = free_room(cluster)
    placed = [(pod, later[pod["metadata"]["name"]]) for pod in new if pod["metadata"]["name"] in later]
    for pod, node in placed:
        _take(room, pod, node, 1)
    found = []
    for pod, node in placed:
        _take(room, pod, node, -1)
        found.append(_judge(cluster, room, pod, node))
        _take(room, pod, node, 1)
    return found


def _take(room: Mapping[str, dict[str, float]], item: Manifest, node: str, times: int) -> None:
    """Take what a pod requests from a node, or give it back (-1)."""
    labels, name = item["metadata"]["labels"], item["metadata"]["name"]
    for kind, value in requests(Pod("default", name, node, labels, item["spec"])).items():
        room[node][kind] = room[node].get(kind, 0.0) - times * value


def _bound(pod: Manifest, node: str) -> dict[str, Any]:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Running"}}


def free_room(cluster: Cluster) -> dict[str, dict[str, float]]:
    """What is left of every node."""
    room = {name: dict(node.allocatable) for name, node in cluster.nodes.items()}
    for pod in cluster.pods:
        for kind, value in requests(pod).items():
            room[pod.node][kind] = room[pod.node].get(kind, 0.0) - value
    return room


def _judge(cluster: Cluster, room: Mapping[str, Mapping[str, float]], item: Manifest, node: str) -> Addition:
    labels, spec = item["metadata"]["labels"], item["spec"]
    group = ("default", labels[GROUP_LABEL])
    pod = Pod("default", item["metadata"]["name"], node, labels, spec)
    members = cluster.members(group)
    need = requests(pod)
    fits = [
        name for name, free in room.items() if all(free.get(kind, 0.0) >= value - 1e-9 for kind, value in need.items())
    ]
    costs = {name: own_cost(cluster, group, members, pod.workload, name) for name in {*fits, node}}
    zones = {cluster.nodes[other.node].zone for others in members.values() for other in others}
    return Addition(pod.name, costs[node], min(costs.values()), cluster.nodes[node].zone not in zones)


def own_cost(
    cluster: Cluster, group: tuple[str, str], members: Mapping[str, Sequence[Pod]], workload: str, node: str
) -> float:
    """What calls of a replica on a node cost, and those of every caller to it: the mean of each edge, all added up."""
    total = 0.0
    for edge in cluster.groups[group]:
        if workload not in (edge.caller, edge.callee):
            continue
        outward = edge.caller == workload
        others = members.get(edge.callee if outward else edge.caller, ())
        for other in others:
            ends = (node, other.node) if outward else (other.node, node)
            total += cluster.cost(*ends) / len(others)
    return total


def lines(found: Sequence[Addition]) -> list[str]:
    """For people."""
    cost, best = sum(item.cost for item in found), sum(item.best for item in found)
    close = sum(item.cost <= CLOSE * item.best + 1e-9 for item in found)
    rows = [
        ("replicas added", f"{len(found)}"),
        ("cost of their calls, all together", f"{cost:.0f}"),
        ("on the cheapest node with room, all together", f"{best:.0f}"),
        (f"at no more than {CLOSE} times the cheapest", f"{close}"),
        ("outside every zone of their application", f"{sum(item.outside for item in found)}"),
    ]
    return [f"| {words} | {number} |" for words, number in rows]
