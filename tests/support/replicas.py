"""Clusters and applications as plain manifests, for the evaluator of bench/replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from bench.replicas.cluster import Cluster, Pod, read_cluster

Manifest = dict[str, Any]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GROUP = ("default", "shop")
HOST, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


def node(name: str, zone: str = "", region: str = "", *, cpu: str = "4", **labels: str) -> Manifest:
    """A node; the region is the zone's first letter unless it is stated."""
    places = {HOST: name, ZONE: zone, REGION: region or zone[:1]}
    known = {key: value for key, value in places.items() if value}
    room = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {"kind": "Node", "metadata": {"name": name, "labels": known | labels}, "status": {"allocatable": room}}


def pod(workload: str, on: str, number: int = 1, *, group: str = "shop", cpu: str = "100m", **spec: Any) -> Manifest:
    """A pod of a workload with the label ``app``, bound to a node."""
    labels = {"app": workload}
    if group:
        labels |= {"appgroup.diktyo.x-k8s.io": group, "appgroup.diktyo.x-k8s.io.workload": workload}
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": f"{workload}-{number}", "namespace": "default", "labels": labels}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": on, "containers": [container], **spec}}


def placed(spec: Mapping[str, Any] | None = None, **nodes: Iterable[str]) -> list[Manifest]:
    """Pods of several workloads: ``web=["n1", "n1", "n2"]``."""
    return [pod(name, on, number, **(spec or {})) for name, all_ in nodes.items() for number, on in enumerate(all_, 1)]


def group(*edges: tuple[str, str], limit: int | None = None, name: str = "shop") -> Manifest:
    """An AppGroup of the workloads that the edges name."""
    demand = {} if limit is None else {"maxNetworkCost": limit}
    selectors = dict.fromkeys(end for edge in edges for end in edge)
    workloads = [
        {
            "workload": {"selector": caller},
            "dependencies": [{"workload": {"selector": end}, **demand} for start, end in edges if start == caller],
        }
        for caller in selectors
    ]
    return {"kind": "AppGroup", "metadata": {"name": name, "namespace": "default"}, "spec": {"workloads": workloads}}


def topology(zones: Mapping[tuple[str, str], int], regions: Mapping[tuple[str, str], int] | None = None) -> Manifest:
    """A NetworkTopology with these costs in both directions."""
    levels = []
    for key, costs in ((ZONE, zones), (REGION, regions or {})):
        both = [*costs.items(), *(((end, start), cost) for (start, end), cost in costs.items())]
        origins = [
            {"origin": start, "costList": [{"destination": end, "networkCost": cost}]} for (start, end), cost in both
        ]
        levels.append({"topologyKey": key, "originList": origins})
    weights = [{"name": "UserDefined", "topologyList": levels}]
    return {
        "kind": "NetworkTopology",
        "metadata": {"name": "net", "namespace": "default"},
        "spec": {"weights": weights},
    }


def service(name: str, **spec: Any) -> Manifest:
    """A Service that selects the workload of its name."""
    body = {"selector": {"app": name}, **spec}
    return {"kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": body}


SMALL = [
    *(node(f"{zone}{number}", zone) for zone in ("a1-", "a2-", "b1-") for number in (1, 2)),
    topology({("a1-", "a2-"): 5}, {("a", "b"): 80}),
]
"""Three zones of two nodes, a1-1 to b1-2: cost 5 between a1- and a2-, 80 to b1-."""


def boutique(nodes: Iterable[str], *, prefer: str = "", spec: Mapping[str, Any] | None = None) -> Cluster:
    """Online Boutique on the 24 nodes of the examples, with a replica of every workload on each of `nodes`."""
    files = sorted(EXAMPLES.glob("0[12]*.yaml")) + sorted((EXAMPLES / "plan").glob("*.yaml"))
    documents = [item for file in files for item in yaml.safe_load_all(file.read_text())]
    (shop,) = (item for item in documents if item["kind"] == "AppGroup")
    names = [item["workload"]["selector"] for item in shop["spec"]["workloads"]]
    given = list(nodes)
    for name in names:
        replicas = [pod(name, on, number, group="online-boutique") for number, on in enumerate(given, 1)]
        for item in replicas:
            item["spec"].update(spec or {})
        documents += [*replicas, service(name, **({"trafficDistribution": prefer} if prefer else {}))]
    return read_cluster(documents)


def bound(cluster: Cluster) -> dict[str, Pod]:
    """Pods by name."""
    return {found.name: found for found in cluster.pods}
