"""Pods of a class that are assigned to sockets before they may start.

What a scheduler's decision writes at once, the socket of a pod that is about to start, is written while a scheduling
gate holds the pod.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.api.socketstatus import API_VERSION, KIND
from hack.harness.pinned_node import apply, first_node
from hack.localcluster import LocalCluster
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE

APP = "pinned"
"""Value of the label ``app`` of these pods."""


def start(
    cluster: LocalCluster,
    sockets: Mapping[str, int],
    *,
    letter: str = "B",
    manager: str = "kubectl",
    resources: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, str]:
    """Make pods of a class, by name and socket, that are assigned by a field manager; UIDs of all by name.

    `resources` is what the containers of some state, by the pod's name.
    """
    container = {"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}
    spec = {
        "schedulingGates": [{"name": "assigned"}],
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
    }
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {LABEL_INTERFERENCE_CLASS: letter, "app": APP}},
            "spec": spec | {"containers": [container | {"resources": resources.get(name, {})}]},
        }
        for name in sockets
    ]
    cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    found = json.loads(cluster.kubectl("get", "pods", f"-lapp={APP}", "-ojson").stdout)["items"]
    uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in found}
    chosen = {item["name"]: item["socket"] for item in assignments(cluster)} | dict(sockets)
    assign(
        cluster,
        [{"uid": uids[name], "namespace": "default", "name": name, "socket": chosen[name]} for name in uids],
        manager,
    )
    api = cluster.api()
    for name in sockets:
        api.raw(
            "PATCH",
            f"/api/v1/namespaces/default/pods/{name}",
            [{"op": "remove", "path": "/spec/schedulingGates"}],
            content_type="application/json-patch+json",
        )
    api.close()
    return uids


def assignments(cluster: LocalCluster) -> list[dict[str, Any]]:
    """What the node's SocketStatus asks for."""
    found = cluster.kubectl("get", "sst", first_node(cluster).name, "-ojson", check=False).stdout
    spec: list[dict[str, Any]] = json.loads(found or "{}").get("spec", {}).get("assignments", [])
    return spec


def assign(cluster: LocalCluster, items: list[dict[str, Any]], manager: str = "kubectl") -> None:
    """Have these assignments, and no others of this field manager."""
    metadata = {"name": first_node(cluster).name}
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"assignments": items}}
    apply(cluster, [document], "--force-conflicts", f"--field-manager={manager}")
