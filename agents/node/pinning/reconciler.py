"""What to do about one container, from what is wanted of it, what is seen of it and what was done before. No I/O.

A container passes through these states::

    left alone --wanted--> written --seen in effect--> in effect --seen changed--> written again, after a pause
        ^                     |                           |                             |
        +--- restored <-------+------- not wanted --------+        more than `limit` writes without a quiet minute:
                                                                   given up, until something else is wanted
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from agents.node.pinning.cpuset import Cpuset
from berth.api.cpulist import format_cpulist

QUIET_SECONDS: Final = 60.0
"""A container whose cpuset has held for so long is taken for quiet: its writes are counted from none again."""
MAX_PAUSE_SECONDS: Final = 4.0
"""Longest pause before a container is written again; with the time until it is seen, drift lasts less than 10 s."""
WRITES: Final = 10
"""Writes without a quiet minute between them after which a container is given up."""


class Action(StrEnum):
    """What to do about a container."""

    LEAVE = "leave"
    """nothing: it is not wanted, or has what is wanted, or its pause is not over"""
    PIN = "pin"
    """write its cpuset"""
    RESTORE = "restore"
    """give it back what it had"""


class Finding(StrEnum):
    """What there is to say about a container."""

    NONE = "none"
    """not wanted"""
    IN_EFFECT = "in effect"
    """it has what is wanted"""
    PENDING = "pending"
    """it does not, yet"""
    DRIFTED = "drifted"
    """somebody else changed it after it had what is wanted"""
    GIVEN_UP = "given up"
    """somebody else changes it again and again, or it cannot be written"""
    FOREIGN = "foreign"
    """another agent has pinned it"""
    IMPOSSIBLE = "impossible"
    """its pod's cgroup has none of the CPUs that are wanted"""
    UNREADABLE = "unreadable"
    """its cpuset cannot be read"""
    OBSERVED = "observed"
    """the kubelet manages it; what it has is told, and nothing else"""
    STRAYED = "strayed"
    """its cgroup has what is wanted, and a process of it has left that cgroup"""


class Decision(NamedTuple):
    """What to do about a container, and why."""

    action: Action
    """what to do"""
    finding: Finding
    """what there is to say"""
    cpus: frozenset[int] = frozenset()
    """CPUs that it is to have"""
    mems: frozenset[int] = frozenset()
    """NUMA nodes that it is to have"""
    text: str = ""
    """why it does not have what is wanted, for people"""


@dataclass(slots=True)
class _Memory:
    """What was done about a container."""

    cpus: frozenset[int]
    mems: frozenset[int]
    writes: int = 0
    last: float = 0.0
    reached: bool = False
    problem: str = ""


def observed(seen: Cpuset) -> Decision:
    """Return what there is to say about a container that the kubelet manages: what it has."""
    return Decision(Action.LEAVE, Finding.OBSERVED, text=f"it has CPUs {format_cpulist(seen.effective_cpus)}")


class Reconciler:
    """Decides about containers, and remembers what was done."""

    def __init__(self, *, limit: int = WRITES) -> None:
        """Begin without memory; `limit` is the number of writes after which a container is given up."""
        self._limit = limit
        self._memories: dict[str, _Memory] = {}

    def decide(
        self,
        container: str,
        seen: Cpuset,
        cpus: frozenset[int],
        mems: frozenset[int],
        *,
        ours: bool,
        now: float,
        given: frozenset[int] = frozenset(),
    ) -> Decision:
        """Return what to do about a container that is seen.

        Args:
            container: its ID.
            seen: its cpuset.
            cpus: CPUs that are wanted; empty: it is not to be pinned.
            mems: NUMA nodes that are wanted; empty: those that it has.
            ours: whether the journal has it: somebody of Berth's has written it.
            now: monotonic seconds.
            given: CPUs that it was given back when it was last wanted no more; empty: none, or in its own words.
        """
        if not cpus:
            self._memories.pop(container, None)
            return Decision(Action.RESTORE if ours else Action.LEAVE, Finding.NONE)
        target = cpus & seen.allowed_cpus
        nodes = mems & seen.allowed_mems or seen.effective_mems
        if not target:
            has, lets = format_cpulist(cpus), format_cpulist(seen.allowed_cpus)
            text = f"its socket has CPUs {has}, and the cgroup of its pod has {lets} alone"
            return Decision(Action.LEAVE, Finding.IMPOSSIBLE, text=text)
        memory = self._memories.get(container)
        if memory is None or (memory.cpus, memory.mems) != (target, nodes):
            memory = self._memories[container] = _Memory(target, nodes)
        if seen.effective_cpus == target and seen.effective_mems == nodes:
            memory.reached = True
            if now - memory.last >= QUIET_SECONDS:
                memory.writes = 0
            return Decision(Action.LEAVE, Finding.IN_EFFECT, target, nodes)
        has = format_cpulist(seen.effective_cpus)
        fewer = seen.effective_cpus < seen.allowed_cpus and seen.effective_cpus != given & seen.allowed_cpus
        if not ours and (fewer or seen.partition):
            return Decision(Action.LEAVE, Finding.FOREIGN, target, nodes, f"somebody else has given it CPUs {has}")
        text = memory.problem or f"it has CPUs {has}, not {format_cpulist(target)}"
        if memory.writes >= self._limit:
            text = f"given up after {memory.writes} writes: {text}"
            return Decision(Action.LEAVE, Finding.GIVEN_UP, target, nodes, text)
        finding = Finding.DRIFTED if memory.reached else Finding.PENDING
        pause = min(2.0 ** (memory.writes - 1), MAX_PAUSE_SECONDS) if memory.writes else 0.0
        action = Action.PIN if now - memory.last >= pause or not memory.writes else Action.LEAVE
        return Decision(action, finding, target, nodes, text)

    def written(self, container: str, now: float, problem: str = "") -> None:
        """Take in that a container was written; `problem` says why it does not have what is wanted all the same."""
        memory = self._memories[container]
        memory.writes += 1
        memory.last, memory.problem = now, problem
        memory.reached = memory.reached or not problem

    def keep(self, containers: frozenset[str]) -> None:
        """Forget all containers but these."""
        for gone in self._memories.keys() - containers:
            del self._memories[gone]
