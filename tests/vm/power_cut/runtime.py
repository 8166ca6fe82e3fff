"""A containerd with its root on the disk that survives, and an agent that pins through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from grpclib.exceptions import GRPCError

from agents.node.pinning.containers import Containers
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import find_hierarchy
from agents.node.pinning.journal import Journal
from agents.node.pinning.pinner import Pinner
from agents.node.pinning.reconciler import Reconciler
from agents.node.pinning.wanted import PodWish
from agents.node.pinning.writer import CpusetWriter
from hack.harness.cluster import PATIENCE
from tests.support.cpusets import pod_uid
from tests.support.pinning_rounds import wish
from tests.support.running_runtime import RunningRuntime

DISK: Final = Path("/disk/power-cut-runtime")
"""What outlives a boot: containerd's root, and the journal."""
PODS: Final = (10, 11)
"""Numbers of its pods, one for each socket."""


@dataclass(frozen=True)
class Agent:
    """What pins, and what it is made of."""

    pinner: Pinner
    journal: Journal
    client: RuntimeClient


def runtime() -> RunningRuntime:
    """Return the runtime of this boot, whose state is in memory as everywhere below ``/run``; it does not run yet."""
    directory = Path("/run/power-cut")
    directory.mkdir()
    return RunningRuntime(directory, root="power-cut")


def wishes() -> list[PodWish]:
    """Return the pods as they are to be pinned."""
    return [wish(number, socket) for socket, number in enumerate(PODS)]


async def start(running: RunningRuntime, *, attempt: int = 0) -> list[str]:
    """Start a container of each pod, and return their IDs."""
    return [await running.start(pod_uid(number), attempt=attempt) for number in PODS]


@asynccontextmanager
async def agent(running: RunningRuntime) -> AsyncIterator[Agent]:
    """What pins through a runtime, by the journal on the disk."""
    client, hierarchy = RuntimeClient(running.socket, timeout=PATIENCE), find_hierarchy()
    journal = Journal.open(DISK / "journal")
    writer = CpusetWriter(client, hierarchy.version)
    try:
        pinner = Pinner(hierarchy, Containers(client, hierarchy), writer, journal, Reconciler())
        yield Agent(pinner, journal, client)
    finally:
        journal.close()
        client.close()


def remembered(running: RunningRuntime) -> frozenset[str]:
    """Return the IDs of containers that a runtime has, also of those that have ended; none while it does not serve."""
    try:
        return asyncio.run(running.all_containers())
    except (OSError, GRPCError):
        return frozenset()
