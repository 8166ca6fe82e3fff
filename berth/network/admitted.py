"""What a placed pod's calls were admitted with: the bandwidth towards each dependency as its AppGroup stated it then.

That is what is charged until the pod goes away, whatever the AppGroup states later: an edit is no admission. It is
written into an annotation of the pod by the Binding itself, so that the next controller charges the same. Whoever may
change the pod may change the annotation too. So it is read once, when a controller first sees the pod bound, and it
counts for no more than a Binding could have written: towards workloads of the pod's own AppGroup, MAX_EDGE_BANDWIDTH
each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from berth.api.labels import ANNOTATION_ADMITTED_BANDWIDTH
from berth.network.groups import MAX_EDGE_BANDWIDTH, Group

if TYPE_CHECKING:
    from berth.network.members import Member

Admitted = tuple[tuple[str, int], ...]
"""(dependency, bit/s > 0) in order of the dependencies' selectors."""

MAX_DEPENDENCIES = 128
"""Dependencies in the annotation: what pods carry in memory is bounded. With more, it is neither written nor read."""
MAX_LENGTH = 16 * 1024
"""Characters of the annotation; a longer one is neither written nor read."""
MAX_KINDS = 1024
"""Different annotations that count in one AppGroup: what its pods take is summed up whenever one of them moves."""


def stated(group: Group | None, workload: str) -> Admitted:
    """What a pod of a workload is admitted with now; nothing without its AppGroup."""
    edges = group.edges_of.get(workload, ()) if group is not None else ()
    return tuple(
        sorted((edge.dependency, edge.bandwidth) for edge in edges if edge.dependent == workload and edge.bandwidth)
    )


def write_admitted(admitted: Admitted) -> str:
    """Text of the annotation; empty when it would be too long."""
    text = msgspec.json.encode(dict(admitted)).decode()
    return text if len(text) <= MAX_LENGTH and len(admitted) <= MAX_DEPENDENCIES else ""


def read_admitted(annotations: Mapping[str, str]) -> Admitted | None:
    """What the annotation of a bound pod says; None without one that could be Berth's."""
    text = annotations.get(ANNOTATION_ADMITTED_BANDWIDTH, "")
    return _read(text) if 0 < len(text) <= MAX_LENGTH else None


@lru_cache(maxsize=256)
def _read(text: str) -> Admitted | None:
    try:
        found = msgspec.json.decode(text, type=dict[str, int])
    except msgspec.MsgspecError:
        return None
    if len(found) > MAX_DEPENDENCIES:
        return None
    return tuple(sorted((name, min(amount, MAX_EDGE_BANDWIDTH)) for name, amount in found.items() if amount > 0))


class Callers:
    """Placed pods of a group by workload and by what they were admitted with, counted by node."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self._nodes: dict[str, dict[Admitted | None, Counter[str]]] = {}
        self._towards: dict[str, dict[tuple[str, Admitted], int]] = {}
        """workloads and what they were admitted with, by dependency: bit/s"""
        self._kinds = 0

    def __iter__(self) -> Iterator[str]:
        """Workloads that have placed pods."""
        return iter(self._nodes)

    def of(self, workload: str) -> Mapping[Admitted | None, Mapping[str, int]]:
        """Pods of a workload by node, by what they were admitted with (None: what the AppGroup states now)."""
        return self._nodes.get(workload, {})

    def towards(self, group: Group | None, dependency: str) -> Iterator[tuple[str, int, Mapping[str, int]]]:
        """Workload, bit/s that each of its pods needs towards a dependency, and how many of them are where.

        Those without demand are left out, and so are the dependency's own pods.
        """
        for (workload, admitted), amount in self._towards.get(dependency, {}).items():
            if workload != dependency:
                yield workload, amount, self._nodes[workload][admitted]
        for edge in group.edges_of.get(dependency, ()) if group is not None else ():
            if edge.dependency == dependency != edge.dependent and edge.bandwidth:
                nodes = self.of(edge.dependent).get(None)
                if nodes:
                    yield edge.dependent, edge.bandwidth, nodes

    def takes(self, workload: str, admitted: Admitted) -> bool:
        """Whether what an annotation says of a pod of a workload may count; not what is one more than MAX_KINDS."""
        return self._kinds < MAX_KINDS or admitted in self.of(workload)

    def add(self, member: Member) -> None:
        """Count a pod, if it has a node."""
        if not member.node:
            return
        kinds = self._nodes.setdefault(member.workload, {})
        if member.admitted not in kinds:
            kinds[member.admitted] = Counter()
            self._kinds += 1
            for dependency, amount in member.admitted or ():
                self._towards.setdefault(dependency, {})[member.workload, member.admitted or ()] = amount
        kinds[member.admitted][member.node] += 1

    def remove(self, member: Member) -> None:
        """Count a pod no longer; it is as it was when it was added."""
        if not member.node:
            return
        kinds = self._nodes[member.workload]
        nodes = kinds[member.admitted]
        nodes[member.node] -= 1
        if nodes[member.node]:
            return
        del nodes[member.node]
        if nodes:
            return
        del kinds[member.admitted]
        self._kinds -= 1
        for dependency, _ in member.admitted or ():
            ends = self._towards[dependency]
            del ends[member.workload, member.admitted or ()]
            if not ends:
                del self._towards[dependency]
        if not kinds:
            del self._nodes[member.workload]
