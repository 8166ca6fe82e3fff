"""Berth on three real nodes, for tests: what of it runs, what costs it has measured, and where applications go."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hack.harness.cluster import eventually
from hack.localcluster import LocalCluster
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from tests.support.placing import Stage, chain
from tests.support.real_nodes import address_of

NAMESPACE = "berth-system"
CONTROLLERS = ("appgroup", "networktopology", "placement")
WORKLOADS = [*(f"deployment/berth-{name}" for name in CONTROLLERS), "daemonset/berth-node"]
REPORTS = "/apis/berth.dev/v1alpha1/probereports"
NODES = {"node-1": "local-a", "node-2": "local-b", "node-3": "local-c"}
TOPOLOGIES = "/apis/networktopology.diktyo.x-k8s.io/v1alpha1"
HOLDING = {
    "name": "main",
    "image": PAUSE_IMAGE,
    "imagePullPolicy": "Never",
    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
}
DELAY_MILLISECONDS = 80
"""What tests delay a node by."""
FAR = 500
"""Cost that 50 ms have: less than the delay, more than what the kernel measures between namespaces while a responder
waits for a processor. An acknowledgement is then held back for up to 40 ms."""


def roll_out(cluster: LocalCluster) -> None:
    """Return when every part of Berth is available."""
    for workload in WORKLOADS:
        cluster.kubectl("-n", NAMESPACE, "rollout", "status", workload, "--timeout=240s", timeout=300)


def get(cluster: LocalCluster, path: str) -> Any:
    """Objects, or the object, that the API server has at `path`."""
    api = cluster.api()
    found = api.request("GET", path)
    api.close()
    return found.get("items", found)


def pods(cluster: LocalCluster) -> list[dict[str, Any]]:
    """Berth's pods."""
    found: list[dict[str, Any]] = get(cluster, f"/api/v1/namespaces/{NAMESPACE}/pods")
    return found


def restarts(cluster: LocalCluster) -> dict[str, int]:
    """How often the container of each of Berth's pods began again."""
    return {
        pod["metadata"]["name"]: sum(status["restartCount"] for status in pod["status"].get("containerStatuses", []))
        for pod in pods(cluster)
    }


def agent_on(cluster: LocalCluster, node: str) -> str:
    """Name of the pod of the node's agent."""
    (name,) = (
        pod["metadata"]["name"]
        for pod in pods(cluster)
        if pod["spec"].get("nodeName") == node and pod["metadata"]["name"].startswith("berth-node-")
    )
    return str(name)


def agent_metric(cluster: LocalCluster, node: str, name: str) -> float:
    """A metric without labels, of the node's agent."""
    with urllib.request.urlopen(f"http://{address_of(cluster, node)}:9471/metrics", timeout=5) as answer:
        found = re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)
    assert found, name
    return float(found[1])


@contextmanager
def changed(cluster: LocalCluster, path: str, *operations: dict[str, Any]) -> Iterator[None]:
    """Inside the block the workload at `path` is changed by a JSON patch; afterwards its spec is as it was.

    Its controller has seen either. One that has lost the API server may hear of pods a minute before it hears of
    workloads again, and makes pods of the template that it knows.
    """
    before = get(cluster, path)["spec"]
    _patch(cluster, path, operations)
    try:
        yield
    finally:
        _patch(cluster, path, ({"op": "replace", "path": "/spec", "value": before},))


def _patch(cluster: LocalCluster, path: str, operations: tuple[dict[str, Any], ...]) -> None:
    api = cluster.api()
    patched = api.request("PATCH", path, list(operations), content_type="application/json-patch+json")
    api.close()
    eventually(
        lambda: get(cluster, path)["status"].get("observedGeneration", 0),
        accept=lambda seen: seen >= patched["metadata"]["generation"],
        what=f"the controller's look at {path}",
        timeout=180.0,
    )


def topology(stage: Stage, name: str = "net") -> dict[str, Any]:
    """A NetworkTopology of the stage as it is now."""
    found: dict[str, Any] = get(stage.cluster, f"{TOPOLOGIES}/namespaces/{stage.name}/networktopologies/{name}")
    return found


def zone_costs(stage: Stage, name: str = "net") -> dict[tuple[str, str], int]:
    """Costs between zones by the shortest paths over what is measured."""
    return {
        (origin["origin"], cost["destination"]): cost["networkCost"]
        for weights in topology(stage, name)["spec"]["weights"]
        if weights["name"] == "Dijkstra"
        for level in weights["topologyList"]
        if level["topologyKey"] == "topology.kubernetes.io/zone"
        for origin in level["originList"]
        for cost in origin["costList"]
    }


def far_zones(stage: Stage, name: str = "net") -> set[str]:
    """Zones that are far from every other."""
    costs = zone_costs(stage, name)
    zones = set(NODES.values())
    return {one for one in zones if all(costs.get((one, other), 0) >= FAR for other in zones - {one})}


def all_near(stage: Stage, name: str = "net") -> bool:
    """Whether costs between all zones are known and small."""
    costs = zone_costs(stage, name)
    return len(costs) == len(NODES) * (len(NODES) - 1) and max(costs.values()) < FAR


def place_application(stage: Stage, name: str, *, timeout: float = 90.0) -> str:
    """Zone to which the caller of an application goes whose other workload must be in local-a, where it must not be."""
    stage.api.close()
    stage.apply(chain("web", "db", name=name))
    elsewhere = {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["local-a"]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [elsewhere]}]}
        }
    }
    here = {"topology.kubernetes.io/zone": "local-a"}
    stage.pod(f"{name}-db", group=name, workload="db", nodeSelector=here, containers=[HOLDING])
    stage.pod(f"{name}-web", group=name, workload="web", nodeSelector={}, affinity=affinity, containers=[HOLDING])
    return NODES[stage.wait_bound(f"{name}-db", f"{name}-web", timeout=timeout)[f"{name}-web"]]
