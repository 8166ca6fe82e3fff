"""Generated pod-and-node situations: a few nodes, pods on them, and one pod to place.

A situation is drawn by hypothesis as API manifests in which "@" stands for the situation's name.
Topology keys, namespaces, volumes and classes carry that name, and the pods to place select their own
nodes, so that any number of situations live in one cluster without touching each other.

Each situation has one to three *topics* (resources, taints, spread, ...); nodes, existing pods and the
pod are drawn so that the topic decides on some nodes and not on others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Manifest = dict[str, Any]
Draw = st.DrawFn

ZONE = "@.test/zone"
RACK = "@.test/rack"
DISK = "@.test/disk"
LEVEL = "@.test/level"
OVERHEAD = {"cpu": "250m", "memory": "64Mi"}
RUNTIME_CLASS: Manifest = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "weighty"},
    "handler": "weighty",
    "overhead": {"podFixed": OVERHEAD},
}


@dataclass
class Situation:
    """A small cluster and a pod to place in it, as manifests."""

    nodes: list[Manifest] = field(default_factory=list)
    namespaces: list[Manifest] = field(default_factory=list)
    pods: list[Manifest] = field(default_factory=list)
    storage: list[Manifest] = field(default_factory=list)
    pod: Manifest = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)

    def named(self, name: str) -> Situation:
        """The situation with its name filled in."""
        return Situation(**json.loads(json.dumps(self.__dict__).replace("@", name)))

    def text(self) -> str:
        """All manifests, for a report."""
        return json.dumps({key: value for key, value in self.__dict__.items() if value}, indent=1)


def node(number: int) -> Manifest:
    """A node with room for everything."""
    name = f"@-n{number}"
    allocatable = {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "50Gi", "pods": "20"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "situation": "@"}},
        "spec": {},
        "status": {
            "capacity": allocatable,
            "allocatable": dict(allocatable),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, *, on: str = "", namespace: str = "@-a", labels: dict[str, str] | None = None) -> Manifest:
    """A pod with one container and no wishes, bound when ``on`` names a node."""
    spec: Manifest = {"containers": [container("main")], "terminationGracePeriodSeconds": 3600}
    if on:
        spec["nodeName"] = on
    else:
        spec["nodeSelector"] = {"situation": "@"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"@-{name}", "namespace": namespace, "labels": labels or {}},
        "spec": spec,
    }


def container(name: str, **requests: str) -> Manifest:
    """A container with these requests."""
    return {"name": name, "image": "registry.invalid/main:1", "resources": {"requests": requests} if requests else {}}


def namespace(name: str, labels: dict[str, str] | None = None) -> Manifest:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}


def labels_of(draw: Draw) -> dict[str, str]:
    """Labels of a pod: an app, and perhaps a version."""
    labels = {"app": draw(st.sampled_from(["x", "y"]))}
    if draw(st.booleans()):
        labels["version"] = draw(st.sampled_from(["1", "2"]))
    return labels


def selector_of(draw: Draw) -> Manifest:
    """A label selector over the labels that pods here have."""
    return draw(
        st.sampled_from(
            [
                {"matchLabels": {"app": "x"}},
                {"matchLabels": {"app": "y"}},
                {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]},
                {"matchExpressions": [{"key": "version", "operator": "NotIn", "values": ["1"]}]},
                {"matchExpressions": [{"key": "version", "operator": "Exists"}]},
                {
                    "matchLabels": {"app": "x"},
                    "matchExpressions": [{"key": "version", "operator": "DoesNotExist"}],
                },
            ]
        )
    )


def chance(draw: Draw, of: int) -> bool:
    """True once in ``of`` times."""
    return draw(st.integers(1, of)) == 1
