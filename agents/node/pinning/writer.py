"""Gives one container other CPUs: through its runtime, else by its cgroup; and looks whether it has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from agents.node.pinning.cpuset import has_inside, read_cpuset, write_cpuset
from agents.node.pinning.cri import CriError, RuntimeClient
from agents.node.pinning.hierarchy import Version
from berth.api.cpulist import format_cpulist


class Way(StrEnum):
    """How a container got its CPUs."""

    RUNTIME = "runtime"
    """by UpdateContainerResources; the runtime knows the value and applies it again with later updates"""
    DIRECT = "direct"
    """written to the cgroup; a later update by the runtime reverts it"""


class NotInEffectError(Exception):
    """A container has other CPUs than it was given; the text says which."""


class Target(NamedTuple):
    """A container, and where it is to run."""

    container: str
    """its ID"""
    cgroup: Path
    """directory of its cgroup"""
    cpus: frozenset[int]
    """CPUs, not empty"""
    mems: frozenset[int]
    """NUMA nodes, not empty"""


class Written(NamedTuple):
    """A container that has its CPUs."""

    way: Way
    """how it got them"""
    unsettled: str = ""
    """why the runtime may set others with a later update; empty: it will not"""
    answered: bool = True
    """whether the runtime has heard of it, and said something"""
    awaited: bool = False
    """whether it may still say something"""


class CpusetWriter:
    """Writes one cpuset at a time."""

    def __init__(self, runtime: RuntimeClient, version: Version, *, beat: Callable[[], None] = lambda: None) -> None:
        """Prepare without I/O.

        Args:
            runtime: connection to the container runtime.
            version: of the hierarchy that cgroups are in.
            beat: called after each write, which shows that work goes on.
        """
        self._runtime = runtime
        self._version = version
        self._beat = beat

    async def write(self, target: Target, *, ask: bool = True, hurry: bool = False) -> Written:
        """Give a container its CPUs and NUMA nodes, and return how it got them.

        Args:
            target: the container, and what it is to have.
            ask: whether to ask the runtime, which may take seconds; otherwise the cgroup is written.
            hurry: wait a short time for the runtime before the cgroup is written; whoever writes the same soon gets
                the answer that came later.

        Raises:
            CpusetError: the kernel refuses; or the container has ended (:attr:`CpusetError.gone`).
            NotInEffectError: nobody refused, and the container has other CPUs all the same.
        """
        try:
            return await self._write(target, ask=ask, hurry=hurry)
        finally:
            self._beat()

    async def settled(self) -> None:
        """Wait until the runtime gives no container other CPUs any more that it was asked to give."""
        await self._runtime.settled()

    async def _write(self, target: Target, *, ask: bool, hurry: bool) -> Written:
        if self._version is Version.V1 and await asyncio.to_thread(has_inside, target.cgroup):
            # Runtimes write the container's cgroup alone: those inside keep it from fewer CPUs, and do not get more.
            await asyncio.to_thread(write_cpuset, target.cgroup, self._version, target.cpus, target.mems)
        fresh, refused = False, CriError("there was no time to ask", answered=False) if not ask else None
        while ask and not fresh:
            fresh, refused = await self._by_runtime(target, hurry=hurry)
            found = await asyncio.to_thread(read_cpuset, target.cgroup, self._version)
            if refused is None and found.effective_cpus == target.cpus and found.effective_mems <= target.mems:
                return Written(Way.RUNTIME)
        await asyncio.to_thread(write_cpuset, target.cgroup, self._version, target.cpus, target.mems)
        found = await asyncio.to_thread(read_cpuset, target.cgroup, self._version)
        if found.effective_cpus != target.cpus:
            wanted, has = format_cpulist(target.cpus), format_cpulist(found.effective_cpus)
            raise NotInEffectError(f"{target.cgroup}: asked for CPUs {wanted}, has {has or 'none'}")
        unsettled = "" if refused is None or refused.unknown else str(refused)
        answered, awaited = (True, False) if refused is None else (refused.answered, refused.awaited)
        return Written(Way.DIRECT, unsettled, answered=answered, awaited=awaited)

    async def _by_runtime(self, target: Target, *, hurry: bool) -> tuple[bool, CriError | None]:
        """Ask the runtime; whether it says no more than before, and what it answers if it does not do so.

        It may have done so a while ago, when it was asked the same and took its time, and others something else since.
        """
        try:
            cpus, mems = format_cpulist(target.cpus), format_cpulist(target.mems)
            return await self._runtime.set_cpuset(target.container, cpus, mems, hurry=hurry), None
        except CriError as error:
            return True, error
