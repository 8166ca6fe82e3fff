"""What pinning needs of the machine, found when it is there and looked for again while it is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from agents.node.pinning import kubelet_state, sockets
from agents.node.pinning.containers import LIST_SECONDS, Containers
from agents.node.pinning.cri import PATIENCE_SECONDS, RuntimeClient
from agents.node.pinning.hierarchy import HierarchyError, find_hierarchy
from agents.node.pinning.journal import Journal, JournalError, JournalLockedError
from agents.node.pinning.pinner import Pinner
from agents.node.pinning.reconciler import Reconciler
from agents.node.pinning.settings import PinningSettings
from agents.node.pinning.writer import CpusetWriter
from agents.node.topology.assembly import assemble
from agents.node.topology.machine import Machine
from agents.node.topology.sysfs import SysfsError, online_cpus, read_sysfs

TOPOLOGY_SECONDS: Final = 60.0
"""How often sysfs is read; which CPUs are online, which changes while a machine runs, is looked at each time."""
RETRY_SECONDS: Final = 10.0
"""Seconds to the next attempt at what was not there."""


class Workplace:
    """The machine: its sockets, cgroups, journal, runtime and kubelet."""

    def __init__(
        self,
        settings: PinningSettings,
        *,
        beat: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare without I/O.

        Args:
            settings: where everything is.
            beat: called for each container that something is done about, which shows that work goes on.
            clock: monotonic seconds.
        """
        self.machine: Machine | None = None
        """Sockets; None: they cannot be told."""
        self.topology_problem = ""
        """Why they cannot."""
        self.pinner: Pinner | None = None
        """Pins; None: cgroups or the journal cannot be used."""
        self.unable = ""
        """Why they cannot."""
        self.occupied = False
        """Whether another process has the journal, and pins."""
        self.kubelet_pins = ""
        """Why the kubelet is taken for one that pins; empty: it is not."""
        self._settings = settings
        self._beat = beat
        self._clock = clock
        self._runtime = RuntimeClient(settings.runtime, patience=PATIENCE_SECONDS)
        self._journal: Journal | None = None
        self._containers: Containers | None = None
        self._online = ""
        self._topology_due = self._pinner_due = 0.0

    async def look(self, *, last: bool = False) -> None:
        """Find what is there; what is not there is looked for again when it is time, and in any case the `last` time.

        Whoever had the journal may have ended since, and left something to give back.
        """
        now = self._clock()
        self.kubelet_pins, online = await asyncio.to_thread(self._glance)
        if now >= self._topology_due or online != self._online:
            await asyncio.to_thread(self._read_topology)
            self._online = online
            self._topology_due = now + (TOPOLOGY_SECONDS if self.machine else RETRY_SECONDS)
        if self.pinner is None and (last or now >= self._pinner_due):
            await asyncio.to_thread(self._open)
            # Whoever ends has given everything back, and pods have no CPUs of their own until this one has the journal.
            self._pinner_due = now + (0.0 if self.occupied else RETRY_SECONDS)

    def close(self) -> None:
        """Let go of the journal and of the runtime."""
        if self._containers is not None:
            self._containers.close()
        self._runtime.close()
        if self._journal is not None:
            self._journal.close()
        self._journal = self.pinner = None

    def _glance(self) -> tuple[str, str]:
        """Why the kubelet pins, and the list of CPUs that are online: what may be another with each look."""
        return kubelet_state.pins(self._settings.kubelet), online_cpus(self._settings.sysfs)

    def _read_topology(self) -> None:
        try:
            machine = assemble(read_sysfs(self._settings.sysfs))
        except SysfsError as error:
            self.machine, self.topology_problem = None, str(error)
            return
        self.topology_problem = sockets.unknown(machine)
        self.machine = None if self.topology_problem else machine

    def _open(self) -> None:
        try:
            hierarchy = find_hierarchy(self._settings.cgroups)
            self._journal = Journal.open(self._settings.journal)
        except (HierarchyError, JournalError) as error:
            self.unable, self.occupied = str(error), isinstance(error, JournalLockedError)
            return
        self.unable, self.occupied = "", False
        writer = CpusetWriter(self._runtime, hierarchy.version, beat=self._beat)
        self._containers = containers = Containers(self._runtime, hierarchy, beat=self._beat, patience=LIST_SECONDS)
        reconciler = Reconciler(limit=self._settings.writes)
        self.pinner = Pinner(hierarchy, containers, writer, self._journal, reconciler)
