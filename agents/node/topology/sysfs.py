"""Reads the CPUs of a sysfs directory: the machine's own, or a copy of another machine's.

Every file may be missing or broken in a copy, a container or a virtual machine. Only a directory without any CPU is
an error; of everything else it is said which file is wrong and what is assumed instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from agents.node.topology.machine import Assumption
from agents.node.topology.readings import CacheReading, CpuReading, NodeReading, Readings
from berth.api.cpulist import parse_cpulist

T = TypeVar("T")

SYSFS: Final = Path("/sys")
"""Where the kernel's is."""
CPUS: Final = "devices/system/cpu"
"""Directory of CPUs below it."""
NODES: Final = "devices/system/node"
"""Directory of NUMA nodes below it."""
_CORE_TYPES: Final = ("core", "atom", "lowpower")
"""Kinds of cores for which hybrid x86 machines have performance counters, in ``devices/cpu_<kind>``."""
_LONGEST: Final = 2**17
"""Bytes of a file that are read; a list of all CPUs there can be has fewer."""
_MISSING: Final = "not there"
_UNKNOWN: Final = -1
"""The kernel's number of a socket, die or core that firmware does not tell."""
_GREATEST: Final = 2**31 - 1
"""Numbers of sockets, dies and cores have so many bits in the kernel."""
_UNITS: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


class SysfsError(ValueError):
    """A directory holds no sysfs with CPUs; the text names it."""


def read_sysfs(root: Path = SYSFS) -> Readings:
    """Return what the files below ``root`` say about CPUs.

    Raises:
        SysfsError: there are no CPUs.
    """
    return _Reader(root).read()


def online_cpus(root: Path = SYSFS) -> str:
    """Return the list of online CPUs as the kernel writes it, to see whether it changes; empty if it cannot be read."""
    try:
        return (root / CPUS / "online").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


class _Reader:
    """One pass over a directory; collects what it had to assume."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._assumptions: list[Assumption] = []

    def read(self) -> Readings:
        there = self._numbers(CPUS, "cpu")
        online = self._online(there)
        present = self._value(f"{CPUS}/present", parse_cpulist, "CPUs that have a directory are all there are") or there
        isolated = self._value(f"{CPUS}/isolated", parse_cpulist, "no CPU is isolated", required=False)
        return Readings(
            cpus={cpu: self._cpu(f"{CPUS}/cpu{cpu}") for cpu in sorted(online)},
            offline=present - online,
            isolated=isolated or frozenset(),
            nodes=dict(self._nodes()),
            core_types=dict(self._core_types()),
            assumptions=tuple(self._assumptions),
        )

    def _online(self, there: frozenset[int]) -> frozenset[int]:
        assumed = "CPUs that have a topology are online"
        online = self._value(f"{CPUS}/online", _some_cpus, assumed)
        if online is None:
            online = frozenset(cpu for cpu in there if (self._root / f"{CPUS}/cpu{cpu}/topology").is_dir())
        if not online:
            inner = self._root / "sys"
            hint = f"; did you mean {inner}?" if (inner / CPUS).is_dir() else "; name a copy of /sys, or leave it out"
            raise SysfsError(f"{self._root / CPUS}: no CPUs{hint}")
        return online

    def _cpu(self, directory: str) -> CpuReading:
        topology = f"{directory}/topology"
        assumed = "it is in the first socket"
        return CpuReading(
            package=self._number(f"{topology}/physical_package_id", assumed, required=True),
            die=self._number(f"{topology}/die_id", "it is in the first die of its socket", required=False),
            core=self._number(f"{topology}/core_id", "", required=False),
            siblings=self._siblings(topology),
            caches=tuple(self._caches(f"{directory}/cache")),
            capacity=self._value(
                f"{directory}/cpu_capacity", _whole(0, _GREATEST), "its speed is not compared", required=False
            ),
        )

    def _siblings(self, topology: str) -> frozenset[int] | None:
        newer = self._value(f"{topology}/core_cpus_list", parse_cpulist, "thread_siblings_list holds", required=False)
        assumed = "CPUs of the die with the same core_id are one core; without core_id, each is its own"
        # The older name of the same, and the only one before Linux 5.3.
        return newer or self._value(f"{topology}/thread_siblings_list", parse_cpulist, assumed)

    def _caches(self, directory: str) -> Iterator[CacheReading]:
        assumed = "this cache is left out"
        for index in sorted(self._numbers(directory, "index")):
            cache = f"{directory}/index{index}"
            if self._value(f"{cache}/type", str, "", required=False) == "Instruction":
                continue
            level = self._value(f"{cache}/level", _whole(1, 9), assumed)
            shared = self._value(f"{cache}/shared_cpu_list", parse_cpulist, assumed)
            size = self._value(f"{cache}/size", _size, "its size is not known", required=False)
            if level is not None and shared:
                yield CacheReading(level, size, shared)

    def _nodes(self) -> Iterator[tuple[int, NodeReading]]:
        for node in sorted(self._numbers(NODES, "node")):
            cpus = self._value(f"{NODES}/node{node}/cpulist", parse_cpulist, "the node has no CPUs")
            memory = self._value(f"{NODES}/node{node}/meminfo", _memory, "the node's memory is not known")
            yield node, NodeReading(cpus=cpus or frozenset(), memory_bytes=memory)

    def _core_types(self) -> Iterator[tuple[str, frozenset[int]]]:
        for name in _CORE_TYPES:
            file = f"devices/cpu_{name}/cpus"
            cpus = self._value(file, parse_cpulist, "cores of this type are not told apart", required=False)
            if cpus:
                yield name, cpus

    def _numbers(self, directory: str, prefix: str) -> frozenset[int]:
        """Numbers of the entries ``<prefix><number>`` of a directory; none if it cannot be read."""
        try:
            names = [path.name for path in (self._root / directory).iterdir()]
        except OSError:
            return frozenset()
        return frozenset(int(match[1]) for name in names if (match := re.fullmatch(rf"{prefix}([0-9]{{1,5}})", name)))

    def _number(self, file: str, assumed: str, *, required: bool) -> int | None:
        found = self._value(file, _whole(_UNKNOWN, _GREATEST), assumed, required=required)
        if found == _UNKNOWN:
            # Of dies that is ordinary: most architectures have none.
            if required:
                self._assumptions.append(Assumption(file, "-1, which says that it is not known", assumed))
            return None
        return found

    def _value(self, file: str, read: Callable[[str], T], assumed: str, *, required: bool = True) -> T | None:
        """The value of a file; None with an assumption if it is broken, or missing although it is required."""
        try:
            with (self._root / file).open("rb") as stream:
                # Tools that copy sysfs fill files up to the length that it states for them, a page, with zeros.
                text = stream.read(_LONGEST).decode("ascii", "replace").strip("\0 \t\n")
            return read(text)
        except FileNotFoundError:
            if not required:
                return None
            problem = _MISSING
        except OSError as error:
            problem = (error.strerror or str(error)).lower()
        except ValueError as error:
            problem = str(error)
        if assumed:
            self._assumptions.append(Assumption(file, problem, assumed))
        return None


def _some_cpus(text: str) -> frozenset[int]:
    """Reader of a list that is not empty: a tool that copies sysfs may leave files without text."""
    cpus = parse_cpulist(text)
    if not cpus:
        raise ValueError("it names no CPU")
    return cpus


def _whole(least: int, greatest: int) -> Callable[[str], int]:
    """Reader of a whole number within bounds."""

    def read(text: str) -> int:
        if re.fullmatch("-?[0-9]+", text, re.ASCII) is None:
            raise ValueError(f"{text[:40]!r} is no whole number")
        if len(text) > len(str(greatest)) or not least <= int(text) <= greatest:
            raise ValueError(f"{text[:40]!r} is not between {least} and {greatest}")
        return int(text)

    return read


def _size(text: str) -> int:
    # A number of more digits would be beyond what the API server takes, which is 2^63.
    match = re.fullmatch("([0-9]{1,9})([KMG]?)", text, re.ASCII)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no size such as 32768K")
    return int(match[1]) * _UNITS[match[2]]


def _memory(text: str) -> int:
    match = re.search(r"MemTotal:\s+([0-9]{1,12}) kB", text, re.ASCII)
    if match is None:
        raise ValueError("no line with MemTotal")
    return int(match[1]) * _UNITS["K"]
