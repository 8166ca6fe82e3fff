"""NetworkTopologies and their ConfigMaps on a real API server, for the tests of the networktopology controller."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from berth.api.labels import LABEL_REGION, LABEL_ZONE
from hack.harness.cluster import PATIENCE, Kubectl, eventually
from hack.localcluster import LocalCluster
from tests.support.topologies import Stated, weight_set

EIGHT_NODES: Mapping[str, tuple[str, str]] = {
    "n-1": ("us-west-1", "Z1"),
    "n-2": ("us-west-1", "Z1"),
    "n-3": ("us-west-1", "Z2"),
    "n-4": ("us-west-1", "Z2"),
    "n-5": ("us-east-1", "Z3"),
    "n-6": ("us-east-1", "Z3"),
    "n-7": ("us-east-1", "Z4"),
    "n-8": ("us-east-1", "Z4"),
}
"""Conformance example of the network-aware plugins: node to region and zone."""

REGION_COSTS: Stated = {"us-west-1>us-east-1": 20, "us-east-1>us-west-1": 20}
"""Region costs of the same example."""
ZONE_COSTS: Stated = {"Z1>Z2": 5, "Z2>Z1": 5, "Z3>Z4": 10, "Z4>Z3": 10}
"""Zone costs of the same example."""

CostTable = dict[str, int]
"""``{"a>b": 5}``, of one level of one weight set."""


def create_nodes(cluster: LocalCluster, nodes: Mapping[str, tuple[str, str]] = EIGHT_NODES) -> None:
    """Create nodes without kubelets."""
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {LABEL_REGION: region, LABEL_ZONE: zone}},
        }
        for name, (region, zone) in nodes.items()
    ]
    cluster.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def latency_key(origin: str, destination: str) -> str:
    """Key of the upstream ConfigMap."""
    return f"netperf.p90.latency.milliseconds.origin.{origin}.destination.{destination}"


def user_defined(regions: Stated | None = None, zones: Stated | None = None) -> dict[str, Any]:
    """The weight set that people write."""
    return weight_set("UserDefined", regions=regions, zones=zones)


def table(topology: Mapping[str, Any], name: str, key: str = LABEL_ZONE) -> CostTable | None:
    """Costs of one level of a weight set, in the object's order; None when the object has no such set."""
    for weights in topology["spec"]["weights"]:
        if weights["name"] == name:
            return {
                f"{origin['origin']}>{cost['destination']}": cost["networkCost"]
                for level in weights["topologyList"]
                if level["topologyKey"] == key
                for origin in level["originList"]
                for cost in origin["costList"]
            }
    return None


def names(topology: Mapping[str, Any]) -> list[str]:
    """Names of the weight sets, in the object's order."""
    return [weights["name"] for weights in topology["spec"]["weights"]]


def condition(topology: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The condition of a type, empty when there is none."""
    conditions = topology.get("status", {}).get("conditions", [])
    return next((item for item in conditions if item["type"] == kind), {})


def settled(topology: Mapping[str, Any]) -> bool:
    """Whether the status belongs to the spec as it is."""
    observed = topology.get("status", {}).get("observedGeneration")
    return bool(observed == topology["metadata"]["generation"])


class Costs:
    """NetworkTopology ``net`` and ConfigMap ``netperf`` of one namespace."""

    def __init__(self, kubectl: Kubectl) -> None:
        """Work with ``kubectl``."""
        self.kubectl = kubectl

    def manifest(self, *weights: dict[str, Any], configmap: str = "netperf") -> dict[str, Any]:
        """The NetworkTopology as people write it."""
        return {
            "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
            "kind": "NetworkTopology",
            "metadata": {"name": "net", "namespace": self.kubectl.namespace},
            "spec": {"configmapName": configmap, "weights": list(weights)},
        }

    def create(self, *weights: dict[str, Any], configmap: str = "netperf") -> None:
        """``kubectl apply`` the NetworkTopology."""
        self.kubectl("apply", "-f", "-", input=json.dumps(self.manifest(*weights, configmap=configmap)))

    def publish(self, name: str = "netperf", **latencies: int | str) -> None:
        """Write the ConfigMap; ``n1_n3=5`` is a cost of 5 from n-1 to n-3, which is 0.5 ms; a text stays as it is."""
        data = {}
        for pair, value in latencies.items():
            origin, destination = (node.replace("n", "n-", 1) for node in pair.split("_"))
            data[latency_key(origin, destination)] = value if isinstance(value, str) else f"{value / 10:g}"
        self.publish_data(data, name=name)

    def publish_data(self, data: Mapping[str, str], *, name: str = "netperf") -> None:
        """Write the ConfigMap with exactly this data."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(data)}
        self.kubectl("apply", "-f", "-", input=json.dumps(body))

    def get(self) -> dict[str, Any]:
        """The NetworkTopology as it is."""
        found: dict[str, Any] = self.kubectl.get("networktopology", "net")
        return found

    def version(self) -> str:
        """Its resourceVersion."""
        return str(self.get()["metadata"]["resourceVersion"])

    def wait(self, accept: Callable[[dict[str, Any]], bool], *, what: str, timeout: float = PATIENCE) -> dict[str, Any]:
        """Wait until the status belongs to the spec and ``accept`` takes the NetworkTopology; return it."""
        return eventually(
            self.get, accept=lambda topology: settled(topology) and accept(topology), what=what, timeout=timeout
        )

    def wait_names(self, *expected: str) -> dict[str, Any]:
        """Wait until the NetworkTopology has exactly these weight sets, in this order."""
        return self.wait(lambda topology: names(topology) == list(expected), what=f"weight sets {expected}")

    def wait_settled(self, *expected: str) -> dict[str, Any]:
        """Wait for these weight sets and for the status that names them, the last write of a pass."""
        return self.wait(
            lambda topology: (
                names(topology) == list(expected)
                and topology.get("status", {}).get("weightSets", "").replace(" ", "") == ",".join(expected)
                and topology["status"].get("observedGeneration") == topology["metadata"]["generation"]
            ),
            what=f"weight sets {expected} in spec and status",
        )

    def wait_zones(self, name: str, expected: Stated) -> dict[str, Any]:
        """Wait until a weight set has exactly these zone costs."""
        return self.wait(lambda topology: table(topology, name) == expected, what=f"zone costs {expected} in {name}")

    def wait_reason(self, kind: str, reason: str) -> dict[str, Any]:
        """Wait until a condition has a reason and return the condition."""
        topology = self.wait(
            lambda topology: condition(topology, kind).get("reason") == reason, what=f"condition {kind} {reason}"
        )
        return condition(topology, kind)

    def events(self) -> list[tuple[str, str]]:
        """(type, reason) of the Events about the NetworkTopology."""
        found = self.kubectl.get("events", "--field-selector=involvedObject.kind=NetworkTopology")
        return [(item["type"], item["reason"]) for item in found["items"]]
