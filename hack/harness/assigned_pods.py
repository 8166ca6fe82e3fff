"""Pods of a class that are assigned to sockets before they may start, and how soon they are pinned.

What a scheduler's decision writes at once, the socket of a pod that is about to start, is written while a scheduling
gate holds the pod.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from agents.node.pinning.cgroup_paths import container_path
from agents.node.pinning.cpuset import read_cpuset
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import find_hierarchy
from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.api.socketstatus import API_VERSION, KIND
from hack.harness.pinned_node import apply, first_node
from hack.localcluster import LocalCluster
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE

APP = "pinned"
"""Value of the label ``app`` of these pods."""
LOOK_SECONDS = 0.02
"""From one look at runtime and cgroups to the next."""


def start(
    cluster: LocalCluster, sockets: Mapping[str, int], *, letter: str = "B", manager: str = "kubectl"
) -> dict[str, str]:
    """Make pods of a class, by name and socket, that are assigned by a field manager; UIDs of all by name."""
    container = {"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}
    spec = {
        "containers": [container],
        "schedulingGates": [{"name": "assigned"}],
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
    }
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {LABEL_INTERFERENCE_CLASS: letter, "app": APP}},
            "spec": spec,
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


async def seconds_until_pinned(cluster: LocalCluster, wanted: Mapping[str, frozenset[int]]) -> dict[str, float]:
    """Seconds from when each pod's container was first seen running until it had its CPUs, seen every 20 ms or so.

    Args:
        cluster: has the node.
        wanted: CPUs by the pod's UID.
    """
    hierarchy = find_hierarchy()
    seen: dict[str, tuple[float, Path]] = {}
    pinned: dict[str, float] = {}
    # Beside each other: a runtime that starts a hundred containers takes seconds to say which run.
    listing = asyncio.create_task(_see_running(cluster, wanted.keys(), seen))
    try:
        async with asyncio.timeout(400):
            while len(pinned) < len(wanted):
                if listing.done():
                    listing.result()
                for uid, (begun, cgroup) in list(seen.items()):
                    if uid not in pinned and read_cpuset(cgroup, hierarchy.version).effective_cpus == wanted[uid]:
                        pinned[uid] = time.monotonic() - begun
                await asyncio.sleep(LOOK_SECONDS)
    finally:
        listing.cancel()
        await asyncio.wait({listing})
    return pinned


async def _see_running(cluster: LocalCluster, uids: Collection[str], seen: dict[str, tuple[float, Path]]) -> None:
    """Take in when a container of each of these pods is first listed as running, and its cgroup, until all are."""
    client = RuntimeClient(first_node(cluster).socket, timeout=10.0)
    try:
        while len(seen) < len(uids):
            found = await client.containers()
            now = time.monotonic()
            for container in found:
                if container.pod_uid in uids and container.pod_uid not in seen:
                    place = await client.place(container.id)
                    seen[container.pod_uid] = (now, find_hierarchy().cgroup(container_path(place.cgroups_path)))
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        client.close()
