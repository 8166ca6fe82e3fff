"""Random problems, small enough for brute force, as manifests that ``berth plan`` and ``kubectl apply`` take.

Three to five workloads of one to three replicas on four to six nodes in two or three zones, with every way of routing
and every hard and soft rule. A seed gives the same problem every time. Costs are metric: no way through another place
is cheaper, so that computed weight sets say what the stated ones do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise, product
from random import Random
from typing import Any

from bench.replicas.cluster import GROUP_LABEL, REGION, WORKLOAD_LABEL, ZONE, Manifest, Pod, flatten, read_cluster
from bench.replicas.rules import violations

HOSTNAME = "kubernetes.io/hostname"
GROUP = ("default", "shop")
SCHEDULER = "berth-scheduler"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SCALES = ((5, 80), (2, 20), (30, 3000), (4, 30))
"""Highest costs within and between regions."""


def problem(seed: int, *, grown: bool = False, preferences: bool = False) -> list[dict[str, Any]]:
    """The manifests of one problem.

    Args:
        seed: which one.
        grown: whether some replicas have a node already.
        preferences: whether pods prefer nodes, and nodes keep pods off softly; all else stays as it is.
    """
    documents = _Maker(Random(f"replicas {seed}"), grown=grown).make()
    if preferences:
        _prefer(documents, Random(f"preferences {seed}"))
    return documents


def _prefer(documents: Iterable[dict[str, Any]], random: Random) -> None:
    """Give some workloads preferred node affinity, to their placed pods as well, and some nodes a soft taint."""
    wishes: dict[str, list[dict[str, Any]]] = {}
    for item in documents:
        if item["kind"] == "Node" and random.randrange(100) < 25:
            item["spec"].setdefault("taints", []).append({"key": "soft", "effect": "PreferNoSchedule"})
        spec = item["spec"]["template"] if "template" in item.get("spec", ()) else item
        name = spec["metadata"].get("labels", {}).get(WORKLOAD_LABEL)
        if name is None:
            continue
        if name not in wishes:
            wishes[name] = [
                {"weight": random.choice((1, 50, 100)), "preference": {"matchExpressions": [expression]}}
                for expression in (
                    {"key": "disk", "operator": "Exists"},
                    {"key": ZONE, "operator": "In", "values": [random.choice(("z0", "z1"))]},
                )
                if random.randrange(100) < 30
            ]
        if wishes[name]:
            affinity = spec["spec"].setdefault("affinity", {})
            affinity.setdefault("nodeAffinity", {})[_PREFERRED] = wishes[name]


def waiting_pods(documents: Iterable[Manifest]) -> list[Pod]:
    """The pods that workloads would create, named as ``berth plan`` names them, and pods without a node."""
    found: list[Pod] = []
    for item in flatten(documents):
        meta, spec = item["metadata"], item.get("spec") or {}
        namespace = meta.get("namespace") or "default"
        if item["kind"] in ("Deployment", "StatefulSet"):
            template, stateful = spec["template"], item["kind"] == "StatefulSet"
            labels = template["metadata"].get("labels") or {}
            first = 0 if stateful else 1
            found += [
                Pod(namespace, f"{meta['name']}-{first + number}", "", labels, template["spec"], stateful)
                for number in range(spec.get("replicas", 1))
            ]
        elif item["kind"] == "Pod" and not spec.get("nodeName"):
            found.append(Pod(namespace, meta["name"], "", meta.get("labels") or {}, spec))
    return found


class _Maker:
    """Makes one problem."""

    def __init__(self, random: Random, *, grown: bool) -> None:
        self.random = random
        self.grown = grown
        self.zones: dict[str, str] = {}
        self.nodes: list[str] = []

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def make(self) -> list[dict[str, Any]]:
        random = self.random
        count = random.randint(3, 5)
        names = [f"w{number}" for number in range(count)]
        edges = [(one, other) for one, other in pairwise(names) if self.chance(80)]
        edges += [(one, other) for one, other in product(names, names) if one < other and self.chance(20)]
        edges = list(dict.fromkeys(edges)) or [(names[0], names[1])]
        documents = [*self._nodes(), self._topology(), self._group(names, edges)]
        placed: list[dict[str, Any]] = []
        for name in names:
            replicas = random.choice((1, 2, 2, 3, 3))
            template = self._template(name, names)
            there = random.randint(0, replicas - 1) if self.grown and self.chance(40) else 0
            documents.append(self._workload(name, template, replicas - there))
            placed += [self._pod(f"{name}-old-{number}", template) for number in range(there)]
            documents += self._services(name)
        if self.chance(30):
            placed += self._strangers(names)
        for pod in placed:
            # What has a node came there by the rules; one that cannot have is left out.
            if not violations(read_cluster([*documents, pod])):
                documents.append(pod)
        return documents

    def _nodes(self) -> list[dict[str, Any]]:
        """Nodes of at most two sizes, so that some are alike; now and then one with a taint or without a zone."""
        random = self.random
        zones = random.choice((2, 2, 3))
        regions = random.choice((1, 2)) if zones == 2 else random.choice((1, 2, 2))
        self.zones = {f"z{number}": f"r{min(number, regions - 1)}" for number in range(zones)}
        sizes = random.choice(((1000,), (2000,), (500, 1000), (4000,)))
        made = []
        for number in range(random.randint(4, 6)):
            zone = f"z{number % zones}"
            name = f"n{number}"
            labels = {HOSTNAME: name, ZONE: zone, REGION: self.zones[zone]}
            if self.chance(3):
                del labels[ZONE]
            if self.chance(15):
                labels["disk"] = "ssd"
            spec = {"taints": [{"key": "special", "effect": "NoSchedule"}]} if self.chance(6) else {}
            room = {"cpu": f"{random.choice(sizes)}m", "memory": "8Gi", "pods": "110"}
            self.nodes.append(name)
            metadata = {"name": name, "labels": labels}
            made.append(_manifest("v1", "Node", metadata, spec=spec, status={"allocatable": room, "capacity": room}))
        return made

    def _topology(self) -> dict[str, Any]:
        """Costs between zones of a region and between regions, in both directions not always equal."""
        near, far = self.random.choice(_SCALES)
        zones = {
            pair: self.random.randint(2, near)
            for pair in product(self.zones, self.zones)
            if pair[0] != pair[1] and self.zones[pair[0]] == self.zones[pair[1]]
        }
        names = sorted(set(self.zones.values()))
        regions = {pair: self.random.randint(near + 1, far) for pair in product(names, names) if pair[0] != pair[1]}
        levels = [
            {"topologyKey": key, "originList": origins_of(costs)}
            for key, costs in ((ZONE, cheapest_paths(zones)), (REGION, cheapest_paths(regions)))
            if costs
        ]
        spec = {"configmapName": "", "weights": [{"name": "UserDefined", "topologyList": levels}]}
        return _manifest("networktopology.diktyo.x-k8s.io/v1alpha1", "NetworkTopology", {"name": "net"}, spec=spec)

    def _group(self, names: list[str], edges: list[tuple[str, str]]) -> dict[str, Any]:
        limits = self.chance(25)
        workloads = []
        for name in names:
            dependencies = []
            for _, callee in (edge for edge in edges if edge[0] == name):
                demand: dict[str, Any] = {"workload": _reference(callee)}
                if limits and self.chance(40):
                    demand["maxNetworkCost"] = self.random.choice((1, 4, 20, 100))
                dependencies.append(demand)
            workloads.append({"workload": _reference(name), "dependencies": dependencies})
        spec = {"numMembers": len(names), "topologySortingAlgorithm": "KahnSort", "workloads": workloads}
        return _manifest("appgroup.diktyo.x-k8s.io/v1alpha1", "AppGroup", {"name": GROUP[1]}, spec=spec)

    def _services(self, name: str) -> list[dict[str, Any]]:
        spec: dict[str, Any] = {"selector": {"app": name}, "ports": [{"port": 80}]}
        kind = self.random.choice(("none", "all", "zone", "zone", "close", "node", "local", "headless"))
        if kind == "none":
            return []
        distribution = {"zone": "PreferSameZone", "close": "PreferClose", "node": "PreferSameNode"}.get(kind)
        if distribution:
            spec["trafficDistribution"] = distribution
        if kind == "local":
            spec["internalTrafficPolicy"] = "Local"
        if kind == "headless":
            spec["clusterIP"] = "None"
        return [_manifest("v1", "Service", {"name": name}, spec=spec)]

    def _template(self, name: str, names: list[str]) -> dict[str, Any]:
        container: dict[str, Any] = {
            "name": "main",
            "image": "example/image:1",
            "resources": {"requests": {"cpu": f"{self.random.choice((100, 200, 300, 450))}m", "memory": "64Mi"}},
        }
        if self.chance(8):
            container["ports"] = [{"containerPort": 80, "hostPort": self.random.choice((8080, 8081))}]
        spec: dict[str, Any] = {"schedulerName": SCHEDULER, "containers": [container]}
        affinity = self._affinity(name, names)
        if affinity:
            spec["affinity"] = affinity
        spread = [self._constraint(name, key) for key, percent in ((HOSTNAME, 15), (ZONE, 25)) if self.chance(percent)]
        if spread:
            spec["topologySpreadConstraints"] = spread
        if self.chance(5):
            spec["nodeSelector"] = {"disk": "ssd"}
        if self.chance(10):
            spec["tolerations"] = [{"key": "special", "operator": "Exists"}]
        labels = {"app": name, GROUP_LABEL: GROUP[1], WORKLOAD_LABEL: name}
        return {"metadata": {"labels": labels}, "spec": spec}

    def _affinity(self, name: str, names: list[str]) -> dict[str, Any]:
        """Required and preferred terms towards the own replicas, another workload, or several."""
        found: dict[str, Any] = {}
        for kind, strength, percent in (
            ("podAntiAffinity", _REQUIRED, 20),
            ("podAntiAffinity", _PREFERRED, 25),
            ("podAffinity", _REQUIRED, 8),
            ("podAffinity", _PREFERRED, 12),
        ):
            if not self.chance(percent):
                continue
            meant = name if self.chance(70) else self.random.choice(names)
            selector: dict[str, Any] = {"matchLabels": {"app": meant}}
            if self.chance(10):
                values = sorted({name, self.random.choice(names)})
                selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}
            keys = (HOSTNAME, HOSTNAME, ZONE) if kind == "podAntiAffinity" else (ZONE, ZONE, HOSTNAME)
            term = {"topologyKey": self.random.choice(keys), "labelSelector": selector}
            preferred = {"weight": self.random.choice((1, 50, 100)), "podAffinityTerm": term}
            found.setdefault(kind, {})[strength] = [term if strength == _REQUIRED else preferred]
        return found

    def _constraint(self, name: str, key: str) -> dict[str, Any]:
        hard = self.chance(50)
        made: dict[str, Any] = {
            "topologyKey": key,
            "maxSkew": self.random.choice((1, 1, 2)),
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": name}},
        }
        if hard and self.chance(25):
            made["minDomains"] = self.random.randint(1, 4)
        if self.chance(15):
            made["nodeTaintsPolicy"] = "Honor"
        if self.chance(15):
            made["nodeAffinityPolicy"] = "Ignore"
        return made

    def _strangers(self, names: list[str]) -> list[dict[str, Any]]:
        """Pods outside the group: they take room, and some keep a workload away."""
        made = []
        for number in range(self.random.randint(1, 3)):
            container = {
                "name": "main",
                "image": "example/image:1",
                "resources": {"requests": {"cpu": f"{self.random.choice((100, 300))}m"}},
            }
            spec: dict[str, Any] = {"schedulerName": "default-scheduler", "containers": [container]}
            if self.chance(30):
                selector = {"matchLabels": {"app": self.random.choice(names)}}
                term = {"topologyKey": self.random.choice((HOSTNAME, ZONE)), "labelSelector": selector}
                spec["affinity"] = {"podAntiAffinity": {_REQUIRED: [term]}}
            template = {"metadata": {"labels": {"app": self.random.choice(["stranger", *names])}}, "spec": spec}
            made.append(self._pod(f"stranger-{number}", template))
        return made

    def _pod(self, name: str, template: Manifest) -> dict[str, Any]:
        """A pod on any node."""
        metadata = {"name": name, "labels": template["metadata"]["labels"]}
        spec = {**template["spec"], "nodeName": self.random.choice(self.nodes)}
        return _manifest("v1", "Pod", metadata, spec=spec, status={"phase": "Running"})

    @staticmethod
    def _workload(name: str, template: Manifest, replicas: int) -> dict[str, Any]:
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        return _manifest("apps/v1", "Deployment", {"name": name}, spec=spec)


def _manifest(version: str, kind: str, metadata: dict[str, Any], **fields: Any) -> dict[str, Any]:
    if kind != "Node":
        metadata["namespace"] = GROUP[0]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def _reference(name: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "selector": name}


def origins_of(costs: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    """Costs by (origin, destination) as a NetworkTopology's originList."""
    return [
        {
            "origin": origin,
            "costList": [
                {"destination": end, "networkCost": cost} for (start, end), cost in costs.items() if start == origin
            ],
        }
        for origin in dict.fromkeys(start for start, _ in costs)
    ]


def cheapest_paths(costs: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Costs of the cheapest paths."""
    found = dict(costs)
    places = dict.fromkeys(place for pair in costs for place in pair)
    for middle, start, end in product(places, places, places):
        first, second = found.get((start, middle)), found.get((middle, end))
        if start != end and first is not None and second is not None:
            found[start, end] = min(found.get((start, end), first + second), first + second)
    return found
