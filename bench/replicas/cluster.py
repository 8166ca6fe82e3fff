"""Nodes, pods as bound, AppGroups, Services and network costs, read from plain manifests.

Pods are those of the manifests that have a node, and the ones that ``berth plan -o json`` placed: each of these has the
template of the workload that the plan names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Manifest = Mapping[str, Any]

GROUP_LABEL: Final = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL: Final = "appgroup.diktyo.x-k8s.io.workload"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
SAME_ZONE_COST: Final = 1.0
UNKNOWN_COST: Final = 100.0
_UNITS: Final = {
    "": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50,
}  # fmt: skip


def deletion_cost(pod: Manifest) -> int:
    """What a ReplicaSet goes by first among its pods that are ready."""
    return int(pod["metadata"].get("annotations", {}).get(DELETION_COST, "0"))


def amount(text: Any) -> float:
    """Read a quantity such as ``500m``, ``2`` or ``16Gi``."""
    text = str(text)
    number = text.rstrip("".join({letter for unit in _UNITS for letter in unit}))
    return float(number) * _UNITS[text[len(number) :]]


@dataclass(frozen=True, slots=True)
class Node:
    """A node."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    allocatable: Mapping[str, float]

    @property
    def zone(self) -> str:
        """Its zone, empty without the label."""
        return self.labels.get(ZONE, "")

    @property
    def failure_domain(self) -> str:
        """What fails together with it: its zone, or the node alone where it has none."""
        return self.zone or f"node {self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    """A pod that has a node."""

    namespace: str
    name: str
    node: str
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    stateful: bool = False
    """whether it is a member of a StatefulSet"""

    @property
    def group(self) -> tuple[str, str]:
        """Namespace and name of its AppGroup, the name empty without one."""
        return self.namespace, self.labels.get(GROUP_LABEL, "")

    @property
    def workload(self) -> str:
        """Selector of its workload."""
        return self.labels.get(WORKLOAD_LABEL, "")


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependency of one workload on another."""

    caller: str
    callee: str
    limit: float | None = None
    """maxNetworkCost"""


@dataclass(slots=True)
class Cluster:
    """Everything that an evaluation looks at."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    services: list[Manifest] = field(default_factory=list)
    groups: dict[tuple[str, str], list[Edge]] = field(default_factory=dict)
    """edges by namespace and name of the AppGroup"""
    zone_costs: dict[tuple[str, str], float] = field(default_factory=dict)
    region_costs: dict[tuple[str, str], float] = field(default_factory=dict)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """labels by name"""

    def cost(self, origin: str, destination: str) -> float:
        """Network cost from node to node."""
        if origin == destination:
            return 0.0
        here, there = self.nodes[origin].labels, self.nodes[destination].labels
        regions, zones = (here.get(REGION, ""), there.get(REGION, "")), (here.get(ZONE, ""), there.get(ZONE, ""))
        if regions[0] == regions[1] and zones[0] == zones[1] and (regions[0] or zones[0]):
            return SAME_ZONE_COST
        if zones in self.zone_costs:
            return self.zone_costs[zones]
        if regions[0] != regions[1] and regions in self.region_costs:
            return self.region_costs[regions]
        return self.unknown_cost

    @property
    def unknown_cost(self) -> float:
        """What a way costs of which nothing is known: more than every known one, and 100 at least."""
        known = (*self.zone_costs.values(), *self.region_costs.values())
        return max(UNKNOWN_COST, 1 + max(known, default=0.0))

    def worst_cost(self) -> float:
        """The dearest way in the cluster, at least the unknown one: what a call costs that reaches nothing."""
        places: dict[tuple[str | None, str | None], list[str]] = {}
        for name, node in self.nodes.items():
            found = places.setdefault((node.labels.get(REGION), node.labels.get(ZONE)), [])
            if len(found) < 2:
                found.append(name)
        some = [name for names in places.values() for name in names]
        return max([UNKNOWN_COST, *(self.cost(one, other) for one in some for other in some)])

    def members(self, group: tuple[str, str]) -> dict[str, list[Pod]]:
        """Pods of an AppGroup by workload."""
        found: dict[str, list[Pod]] = {}
        for pod in self.pods:
            if pod.group == group:
                found.setdefault(pod.workload, []).append(pod)
        return found


def flatten(documents: Iterable[Manifest]) -> Iterator[Manifest]:
    """Objects one by one, those of lists too."""
    for document in documents:
        if "items" in document:
            kind = str(document.get("kind", "")).removesuffix("List")
            for item in document["items"]:
                yield item if "kind" in item else {"kind": kind, **item}
        elif document:
            yield document


def read_cluster(documents: Iterable[Manifest], plan: Manifest | None = None) -> Cluster:
    """Read manifests; with a plan, its pods count too, with the nodes that they would get.

    Args:
        documents: nodes, pods, workloads, AppGroups, Services, NetworkTopologies; other kinds are passed over.
        plan: output of ``berth plan -o json`` over these manifests.
    """
    cluster = Cluster()
    templates: dict[tuple[str, str], Manifest] = {}
    waiting: dict[tuple[str, str], Manifest] = {}
    for item in flatten(documents):
        kind, meta, spec = item.get("kind"), item.get("metadata") or {}, item.get("spec") or {}
        name, namespace = meta.get("name", ""), meta.get("namespace") or "default"
        if kind == "Node":
            cluster.nodes[name] = _node(item)
        elif kind == "Pod" and spec.get("nodeName"):
            cluster.pods.append(_pod(item, namespace, name, spec["nodeName"]))
        elif kind == "Pod":
            waiting[namespace, name] = item
        elif kind == "Service":
            cluster.services.append(item)
        elif kind == "AppGroup":
            cluster.groups[namespace, name] = list(_edges(spec))
        elif kind == "NetworkTopology":
            cluster.zone_costs |= _costs(spec, ZONE)
            cluster.region_costs |= _costs(spec, REGION)
        elif kind == "Namespace":
            cluster.namespaces[name] = meta.get("labels") or {}
        elif "template" in spec:
            templates[namespace, f"{kind}/{name}"] = spec["template"]
    for planned in (plan or {}).get("pods", ()):
        namespace, name, workload = planned["namespace"], planned["name"], planned.get("workload") or ""
        template = waiting.get((namespace, name)) or templates[namespace, workload]
        stateful = workload.startswith("StatefulSet/")
        cluster.pods.append(_pod(template, namespace, name, planned["node"], stateful=stateful))
    return cluster


def _node(item: Manifest) -> Node:
    status, spec = item.get("status") or {}, item.get("spec") or {}
    taints = [*(spec.get("taints") or ())]
    if spec.get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    room = status.get("allocatable") or status.get("capacity") or {}
    amounts = {"pods": 110.0} | {name: amount(value) for name, value in room.items()}
    return Node(item["metadata"]["name"], item["metadata"].get("labels") or {}, tuple(taints), amounts)


def _pod(item: Manifest, namespace: str, name: str, node: str, *, stateful: bool = False) -> Pod:
    meta = item.get("metadata") or {}
    owners = [owner.get("kind") for owner in meta.get("ownerReferences") or ()]
    return Pod(namespace, name, node, meta.get("labels") or {}, item["spec"], stateful or "StatefulSet" in owners)


def _edges(spec: Manifest) -> Iterator[Edge]:
    """Each edge once, however often it is listed, with its lowest limit."""
    known = {item["workload"]["selector"] for item in spec.get("workloads") or ()}
    limits: dict[tuple[str, str], float | None] = {}
    for item in spec.get("workloads") or ():
        for dependency in item.get("dependencies") or ():
            edge = item["workload"]["selector"], dependency["workload"]["selector"]
            if edge[1] in known:
                stated = (limits.get(edge), dependency.get("maxNetworkCost"))
                limits[edge] = min((float(limit) for limit in stated if limit is not None), default=None)
    for (caller, callee), limit in limits.items():
        yield Edge(caller, callee, limit)


def _costs(spec: Manifest, key: str) -> dict[tuple[str, str], float]:
    """Costs of one level; measured ones before stated ones, computed paths before both."""
    sets: dict[str, dict[tuple[str, str], float]] = {}
    for weights in spec.get("weights") or ():
        table = sets.setdefault(weights["name"], {})
        for level in weights.get("topologyList") or ():
            for origin in level.get("originList") or () if level["topologyKey"] == key else ():
                for entry in origin.get("costList") or ():
                    if entry.get("networkCost") is not None:
                        table[origin["origin"], entry["destination"]] = float(entry["networkCost"])
    direct = "NetperfCosts" if sets.get("NetperfCosts") else "UserDefined"
    return sets.get(direct, {}) | sets.get("Dijkstra", {})
