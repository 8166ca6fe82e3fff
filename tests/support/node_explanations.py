"""A small cluster around one node, for tests of what is explained about it."""

from __future__ import annotations

from typing import Any

from berth.cli.explain.node import NodeFacts, node_document
from berth.kube.objects import CustomObject, Node, Pod
from berth.scheduling.cache.socket_choice import Outlook
from berth.scheduling.configuration import PlacementConfiguration
from tests.support import builders, explanations, plans

ZONE = "topology.kubernetes.io/zone"
NODES = [builders.node(name, labels={ZONE: zone}) for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"))]


def custom(manifest: dict[str, Any]) -> CustomObject:
    return CustomObject.of({**manifest, "metadata": {"namespace": "default", "uid": "u", **manifest["metadata"]}})


GROUP = custom(plans.appgroup("shop", {"front": ["back"], "back": []}, maxNetworkCost=5))
TOPOLOGY = custom(plans.topology({("a", "b"): 10}))


def pod(name: str, workload: str = "", *, on: str = "", scheduler: str = "berth-scheduler", **more: Any) -> Pod:
    labels = plans.labels("shop", workload) if workload else {}
    found = builders.pod(name, on=on, labels=labels, **more)
    found.spec.scheduler_name = scheduler
    return found


def placed(name: str, workload: str = "", *, on: str = "n1", outlook: Outlook | None = None, **more: Any) -> Pod:
    return explanations.decided(pod(name, workload, on=on, **more), outlook)


def explained(node: Node = NODES[0], **facts: Any) -> dict[str, Any]:
    facts = {"here": (), "nodes": NODES, "groups": [GROUP], "topologies": [TOPOLOGY], **facts}
    return node_document(NodeFacts(node, **facts), PlacementConfiguration(), now=explanations.NOW)
