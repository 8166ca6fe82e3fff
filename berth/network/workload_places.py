"""Where the pods of a group are, counted by workload and node.

All pods of a workload have the same edges, so what edges cost and take is worked out from these counts: never pod by
pod, whose pairs grow with the square of the replicas.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from berth.network.members import Member

_NOWHERE: Mapping[str, int] = {}


class WorkloadPlaces:
    """Live pods of a group by workload, and by node those that have one."""

    def __init__(self, members: Iterable[Member] = ()) -> None:
        """Count these pods."""
        self._replicas: Counter[str] = Counter()
        self._nodes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._terminating: dict[str, Counter[str]] = {}
        for member in members:
            self.add(member)

    def replicas(self, workload: str) -> int:
        """Number of live pods of a workload, waiting ones included."""
        return self._replicas[workload]

    def workloads(self) -> list[str]:
        """Workloads with a pod that has a node."""
        return list(self._nodes)

    def nodes(self, workload: str) -> Mapping[str, int]:
        """Number of a workload's pods by the node that they are bound to or assumed on."""
        return self._nodes.get(workload, _NOWHERE)

    def staying(self, workload: str) -> Mapping[str, int]:
        """Number of a workload's pods that are not being deleted, by node."""
        nodes, terminating = self.nodes(workload), self._terminating.get(workload)
        return nodes if terminating is None else Counter(nodes) - terminating

    def add(self, member: Member) -> None:
        """Count a pod."""
        self._replicas[member.workload] += 1
        if member.node:
            self._nodes[member.workload][member.node] += 1
            if member.terminating:
                self._terminating.setdefault(member.workload, Counter())[member.node] += 1

    def remove(self, member: Member) -> None:
        """Count a pod no longer; it is as it was when it was added."""
        self._replicas[member.workload] -= 1
        if not self._replicas[member.workload]:
            del self._replicas[member.workload]
        if member.node:
            nodes = self._nodes[member.workload]
            nodes[member.node] -= 1
            if not nodes[member.node]:
                del nodes[member.node]
            if not nodes:
                del self._nodes[member.workload]
            if member.terminating:
                leaving = self._terminating[member.workload]
                leaving[member.node] -= 1
                if not leaving.total():
                    del self._terminating[member.workload]
