"""How soon the containers of a node are pinned after their start, without asking its runtime while it starts them.

A runtime that is asked which containers run takes seconds to say so while it starts a hundred, and is kept from that:
what is asked of it in a measurement would be part of what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from grpclib.client import Channel, UnaryUnaryMethod

from agents.node.pinning.cgroup_paths import container_in, pod_paths
from agents.node.pinning.cpuset import CpusetError, read_cpuset
from agents.node.pinning.cri_messages import SERVICE, Messages
from agents.node.pinning.hierarchy import find_hierarchy
from hack.harness.pinned_node import first_node
from hack.localcluster import LocalCluster

LOOK_SECONDS = 0.02
"""From one look at cgroups to the next."""
TIMEOUT_SECONDS = 400.0
"""How long is waited for all of them."""
_MESSAGES = Messages(
    {
        "ContainerStatusRequest": {"container_id": (1, "string")},
        "ContainerStatus": {"started_at": (5, "int64")},
        "ContainerStatusResponse": {"status": (1, "ContainerStatus")},
    }
)


async def seconds_until_pinned(
    cluster: LocalCluster, wanted: Mapping[str, Collection[frozenset[int]]]
) -> dict[str, float]:
    """Seconds from when the runtime started the container of each pod until it had its CPUs, seen every 20 ms or so.

    0 for one that had them before the runtime said that it was started.

    Args:
        cluster: has the node.
        wanted: CPUs by the pod's UID, one of several sets each, such as those of whatever socket it is given.

    Raises:
        TimeoutError: not all have them.
    """
    node = first_node(cluster)
    pinned: dict[str, tuple[str, float]] = {}
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while left := wanted.keys() - pinned.keys():
            for uid in left:
                container = _container_with(node.namespace, uid, wanted[uid])
                if container is not None:
                    pinned[uid] = container, time.time()
            await asyncio.sleep(LOOK_SECONDS)
    started = await _started(node.socket, [container for container, _ in pinned.values()])
    return {uid: max(at - started[container], 0.0) for uid, (container, at) in pinned.items()}


def _container_with(top: str, uid: str, wanted: Collection[frozenset[int]]) -> str | None:
    """ID of the container of a pod that has such CPUs; of the two, the one that holds its namespaces never has."""
    hierarchy = find_hierarchy()
    for path in pod_paths(uid, root=PurePosixPath("/") / top):
        # Most of these are not there, and a container may end while it is looked at.
        with contextlib.suppress(OSError, CpusetError):
            for inner in hierarchy.cgroup(path).iterdir():
                container = container_in(inner.name)
                if container and read_cpuset(inner, hierarchy.version).effective_cpus in wanted:
                    return container
    return None


async def _started(socket: Path, containers: Collection[str]) -> dict[str, float]:
    """When the runtime started each container, in seconds since 1970; asked until it says so."""
    request, answer = _MESSAGES("ContainerStatusRequest"), _MESSAGES("ContainerStatusResponse")
    channel = Channel(path=str(socket))
    ask: UnaryUnaryMethod[Any, Any] = UnaryUnaryMethod(channel, f"{SERVICE}/ContainerStatus", request, answer)
    found: dict[str, float] = {}
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while left := [each for each in containers if not found.get(each)]:
                # One that has its CPUs may be about to be started.
                found |= {each: (await ask(request(container_id=each))).status.started_at / 1e9 for each in left}
                await asyncio.sleep(LOOK_SECONDS)
        return found
    finally:
        channel.close()
