"""A LatencyPolicy, and the pods of its workload, as placement sees them."""

from __future__ import annotations

from typing import Any

from berth.kube.objects import CustomObject, OwnerReference, Pod
from tests.support.placement import lone

TIME = "2026-01-31T12:00:00Z"


def policy(
    *, version: int = 1, uid: str = "u", name: str = "web", awaited: str | None = None, **spec: Any
) -> CustomObject:
    """A policy of web, whose next pod is awaited on a node."""
    nodes = [{"node": "a", "p50Microseconds": 20_000}, {"node": "b"}]
    move = {"pod": "p", "sourceNode": "n", "reason": "Nearer", "outcome": "Creating", "startTime": TIME}
    moves = [move | {"targetNode": awaited}] if awaited else []
    metadata = {"name": name, "namespace": "shop", "resourceVersion": str(version), "uid": uid}
    status = {"nodes": nodes, "moves": moves}
    return CustomObject.of({"metadata": metadata, "spec": {"targetRef": {"name": "web"}} | spec, "status": status})


def of(deployment: str, name: str = "p", *, on: str = "", **spec: Any) -> Pod:
    """A pod of a Deployment."""
    pod = lone(name, namespace="shop", on=on, spec=spec, cpu="100m")
    pod.metadata.labels["pod-template-hash"] = "5d"
    pod.metadata.owner_references = [OwnerReference("ReplicaSet", f"{deployment}-5d", deployment, controller=True)]
    return pod
