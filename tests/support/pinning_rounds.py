"""Rounds of pinning without an API server: real processes in real cgroups, and a runtime that a test scripts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agents.node.pinning.cgroup_paths import Driver
from agents.node.pinning.containers import Containers
from agents.node.pinning.hierarchy import Hierarchy
from agents.node.pinning.journal import Journal
from agents.node.pinning.pinner import Pinner
from agents.node.pinning.reconciler import Reconciler
from agents.node.pinning.wanted import PodWish
from agents.node.pinning.whose import container_name
from agents.node.pinning.writer import CpusetWriter
from berth.api.interference import InterferenceClass
from hack.harness.cluster import eventually
from tests.support.cpusets import SLEEP, Machine, machine, pod_uid
from tests.support.pinning_stand import SOCKETS
from tests.support.scripted_runtime import Known, ScriptedClient, ScriptedRuntime

MOUNTED: Final = (
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mkdir -p "${0%/*}" && touch "$0" && mount --bind "$0" "$0" && exec sleep 600',
)
"""What a container runs, with a file that is mounted for it alone."""


@dataclass
class Container:
    """A container with a process."""

    id: str
    known: Known

    @property
    def cpus(self) -> frozenset[int]:
        """CPUs that its process may use, by the kernel."""
        return frozenset(os.sched_getaffinity(self.known.pid))

    def set_cpus(self, cpus: frozenset[int]) -> None:
        """Write its cpuset, as somebody else does."""
        (self.known.cgroup / "cpuset.cpus").write_text(",".join(map(str, sorted(cpus))))


@dataclass
class Rounds:
    """A machine and what pins on it."""

    room: Machine
    runtime: ScriptedRuntime
    directory: Path
    now: float = 1000.0
    """monotonic seconds, by the test"""
    opened: list[tuple[Journal, ScriptedClient, Containers]] = field(default_factory=list)

    def container(self, number: int, *, mounted: bool = False) -> Container:
        """Start the container of pod `number`; `mounted`: with a file of the pod's directory, as by the kubelet."""
        log = self.directory / "pods" / pod_uid(number) / "containers" / "main" / "log"
        identity, cgroup = self.room.container(number, command=(*MOUNTED, str(log)) if mounted else SLEEP)
        if mounted:
            eventually(lambda: container_name(cgroup, pod_uid(number)), what="a file that is mounted")
        path = str(self.room.hierarchy.path_of(cgroup))
        known = Known(pod_uid(number), cgroup, path, self.room.processes[-1].pid)
        self.runtime.containers[identity] = known
        return Container(identity, known)

    def sandbox(self, number: int) -> Path:
        """Start what holds the namespaces of pod `number`, which the runtime names as no container; its cgroup."""
        _, cgroup = self.room.container(number)
        return cgroup

    def agent(
        self, hierarchy: Hierarchy | None = None, *, patience: float | None = None, hurry: float | None = None
    ) -> Pinner:
        """What pins, with the journal of the one before.

        Args:
            hierarchy: where cgroups are.
            patience: seconds that it waits for the runtime to say what runs.
            hurry: seconds that it waits for an answer about a container while there is more to do.
        """
        self.leave()
        found = hierarchy or self.room.hierarchy
        client = ScriptedClient(self.runtime, clock=lambda: self.now, patience=hurry)
        journal = Journal.open(self.directory / "journal")
        containers = Containers(client, found, clock=lambda: self.now, patience=patience)
        self.opened.append((journal, client, containers))
        writer = CpusetWriter(client, found.version)
        return Pinner(found, containers, writer, journal, Reconciler(), clock=lambda: self.now)

    @property
    def journal(self) -> Journal:
        """The open journal."""
        return self.opened[-1][0]

    @property
    def containers(self) -> Containers:
        """What the agent finds containers with."""
        return self.opened[-1][2]

    @property
    def client(self) -> ScriptedClient:
        """What the agent asks the runtime with."""
        return self.opened[-1][1]

    async def runtime_ends(self) -> None:
        """Have nobody listen at the runtime's socket any more."""
        self.opened[-1][1].close()
        await self.runtime.stop()

    def leave(self) -> None:
        """Let go of journal and connection, as a process that ends."""
        if self.opened:
            journal, client, containers = self.opened.pop()
            containers.close()
            client.close()
            journal.close()


def wish(number: int, socket: int | None = 0) -> PodWish:
    """A pod that is to be on a socket; on none for None."""
    return PodWish(
        uid=pod_uid(number),
        runtime_uid=pod_uid(number),
        namespace="shop",
        name=f"web-{number}",
        interference_class=InterferenceClass.B,
        socket=socket,
        cpus=SOCKETS[socket] if socket is not None else frozenset(),
        running=True,
    )


@asynccontextmanager
async def rounds(name: str, directory: Path, driver: Driver = Driver.CGROUPFS) -> AsyncIterator[Rounds]:
    """A machine and a runtime of the test's own; all of it is gone afterwards."""
    with machine(name, driver) as room:
        runtime = ScriptedRuntime(directory / "runtime.sock")
        await runtime.start()
        found = Rounds(room, runtime, directory)
        try:
            yield found
        finally:
            found.leave()
            await runtime.settle()
            await runtime.stop()
