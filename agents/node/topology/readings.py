"""What files of sysfs say about CPUs, before it is known to fit together.

None means that the file is missing or cannot be right; an assumption tells where that is not ordinary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from agents.node.topology.machine import Assumption


class CacheReading(NamedTuple):
    """One cache of a CPU, instruction caches left out."""

    level: int
    """1 for an L1"""
    size_bytes: int | None
    """size; None: not stated"""
    cpus: frozenset[int]
    """CPUs that share it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuReading:
    """What sysfs says about one online CPU."""

    package: int | None = None
    """physical_package_id"""
    die: int | None = None
    """die_id; kernels and architectures without dies have no such file"""
    core: int | None = None
    """core_id, unique within the die alone"""
    siblings: frozenset[int] | None = None
    """CPUs of the same core, itself among them"""
    caches: tuple[CacheReading, ...] = ()
    """data and unified caches"""
    capacity: int | None = None
    """cpu_capacity: relative speed, 1024 for the fastest"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReading:
    """What sysfs says about one NUMA node."""

    cpus: frozenset[int]
    """its CPUs"""
    memory_bytes: int | None = None
    """MemTotal; None: not stated"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What a whole sysfs says."""

    cpus: dict[int, CpuReading]
    """online CPUs"""
    offline: frozenset[int] = frozenset()
    """CPUs that are present but not online"""
    isolated: frozenset[int] = frozenset()
    """CPUs over which the kernel spreads no load"""
    nodes: dict[int, NodeReading] = field(default_factory=dict)
    """NUMA nodes"""
    core_types: dict[str, frozenset[int]] = field(default_factory=dict)
    """CPUs by the performance counters that a hybrid machine has for each kind of core"""
    assumptions: tuple[Assumption, ...] = ()
    """files that are missing or cannot be right"""
