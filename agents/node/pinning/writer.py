"""Gives one container other CPUs: through its runtime, else by its cgroup; and looks whether it has them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from agents.node.pinning.cpuset import read_cpuset, strays, write_cpuset
from agents.node.pinning.cri import CriError, RuntimeClient
from agents.node.pinning.hierarchy import Version
from berth.api.cpulist import format_cpulist

RETRY_SECONDS: Final = 30.0
"""How long a runtime that did not answer is left alone: each time costs two seconds."""


class Way(StrEnum):
    """How a container got its CPUs."""

    RUNTIME = "runtime"
    """by UpdateContainerResources; the runtime knows the value and applies it again with later updates"""
    DIRECT = "direct"
    """written to the cgroup; a later update by the runtime reverts it"""


class NotInEffectError(Exception):
    """A container has other CPUs than it was given, or some of its processes run elsewhere; the text says which."""


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
    pid: int = 0
    """its first process; 0: not known"""


class CpusetWriter:
    """Writes one cpuset at a time."""

    def __init__(
        self, runtime: RuntimeClient, version: Version, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepare without I/O.

        Args:
            runtime: connection to the container runtime.
            version: of the hierarchy that cgroups are in.
            clock: monotonic seconds.
        """
        self._runtime = runtime
        self._version = version
        self._clock = clock
        self._silent_until = 0.0

    async def write(self, target: Target) -> Way:
        """Give a container its CPUs and NUMA nodes, and return how it got them.

        Raises:
            CpusetError: the kernel refuses; or the container has ended (:attr:`CpusetError.gone`).
            NotInEffectError: nobody refused, and the container has other CPUs all the same.
        """
        refused = await self._by_runtime(target)
        found = await asyncio.to_thread(read_cpuset, target.cgroup, self._version)
        way = Way.RUNTIME
        if refused is not None or found.effective_cpus != target.cpus or not found.effective_mems <= target.mems:
            way = Way.DIRECT
            await asyncio.to_thread(write_cpuset, target.cgroup, self._version, target.cpus, target.mems)
            found = await asyncio.to_thread(read_cpuset, target.cgroup, self._version)
        if found.effective_cpus != target.cpus:
            wanted, has = format_cpulist(target.cpus), format_cpulist(found.effective_cpus)
            raise NotInEffectError(f"{target.cgroup}: asked for CPUs {wanted}, has {has or 'none'}")
        elsewhere = await asyncio.to_thread(strays, target.cgroup, target.cpus, first=target.pid)
        if elsewhere:
            raise NotInEffectError(
                f"{target.cgroup}: process {elsewhere[0]} may run on other CPUs; it has left the container's cgroup"
            )
        return way

    async def _by_runtime(self, target: Target) -> CriError | None:
        """Ask the runtime; what it answers if it does not do so."""
        if self._clock() < self._silent_until:
            return CriError("not asked", answered=False)
        try:
            cpus, mems = format_cpulist(target.cpus), format_cpulist(target.mems)
            await self._runtime.set_cpuset(target.container, cpus, mems)
        except CriError as error:
            if not error.answered:
                self._silent_until = self._clock() + RETRY_SECONDS
            return error
        return None
