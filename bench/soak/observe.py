"""What is looked at once a second: who leads, how much memory each process has, how long pods waited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bench.soak.ordinary import Waits
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.resources import LEASES
from hack.harness.processes import ControllerProcess

MIB = 2**20
QUARTERS = 4
"""Parts of a run whose memory is compared."""


@dataclass(frozen=True, slots=True)
class Period:
    """Figures of one minute (or of the whole run)."""

    minute: int
    """number of the minute, from 1"""
    bound: int
    """ordinary pods that got a node"""
    p50: float
    """median seconds from creation to binding"""
    p99: float
    """99th percentile of the same"""
    longest: float
    """the longest"""
    waiting: float
    """seconds that the oldest pod without a node has waited at the end"""
    leaders: int
    """different holders of the Lease"""
    mib: dict[str, float]
    """resident memory by process at the end"""
    cpu: float
    """CPU seconds of the leader"""
    act: str
    """what the hostile tenant did at the end"""

    def row(self) -> dict[str, Any]:
        """All figures by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Growth:
    """Memory of a process over the run."""

    quarters: tuple[float, ...]
    """mean MiB of each quarter of the run"""
    slope: float
    """MiB a minute over the last half, fitted to all of its minutes"""

    @property
    def ratio(self) -> float:
        """The last quarter by the second: the first is for caches to fill."""
        return self.quarters[-1] / self.quarters[1]


def growth(mib: Sequence[float]) -> Growth:
    """How memory, read once a minute for at least QUARTERS minutes, has grown."""
    half = np.array(mib[len(mib) // 2 :])
    slope = np.polyfit(np.arange(len(half)), half, 1)[0]
    return Growth(tuple(float(part.mean()) for part in np.array_split(np.array(mib), QUARTERS)), float(slope))


@dataclass(slots=True)
class Leadership:
    """Who has held the Lease."""

    holders: list[str] = field(default_factory=list)
    """in order, without repetition of neighbours"""

    async def look(self, client: ApiClient, namespace: str, name: str) -> None:
        """Read the Lease once; not being able to says nothing about it."""
        try:
            lease = await client.get(LEASES, name, namespace=namespace)
        except (ApiError, *TRANSPORT_ERRORS):
            return
        holder = lease["spec"].get("holderIdentity") or "nobody"
        if self.holders[-1:] != [holder]:
            self.holders.append(holder)


def period(
    minute: int, waits: Waits, since: float, *, leaders: int, mib: dict[str, float], cpu: float, act: str
) -> Period:
    """Figures of the bindings since a monotonic time."""
    seconds = [wait for when, wait in waits.seconds if when >= since]
    p50, p99, longest = np.percentile(seconds, [50, 99, 100]) if seconds else (float("nan"),) * 3
    return Period(minute, len(seconds), float(p50), float(p99), float(longest), waits.oldest(), leaders, mib, cpu, act)


def resident(processes: Mapping[str, ControllerProcess]) -> dict[str, float]:
    """MiB by process."""
    return {name: process.resident_bytes() / MIB for name, process in processes.items()}
