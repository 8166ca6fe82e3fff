"""Calls through workloads that have no replica: who is called through them only would be placed without regard."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from berth.network.groups import Group, GroupEdge


def calls_through_absent(group: Group, workloads: Iterable[str], present: Collection[str]) -> list[GroupEdge]:
    """An edge for each of these workloads all of whose callers and dependencies are absent, to one that is beyond them.

    It has no limit and takes no bandwidth. One is enough to be near the application: where a workload that many call is
    absent, an edge for each pair of them would weigh more than their calls.

    Args:
        group: the AppGroup.
        workloads: those to look at.
        present: workloads that have a replica, placed or to be placed, those that are preferred first.
    """
    rank = {name: number for number, name in enumerate(present)}
    beyond: dict[str, list[str]] = {}
    found: list[GroupEdge] = []
    for workload in dict.fromkeys(workloads):
        others = _others(group, workload)
        if any(other in rank for other in others):
            continue
        ends = {end for other in others for end in _beyond(group, other, rank, beyond) if end != workload}
        if ends:
            end = min(ends, key=rank.__getitem__)
            found.append(GroupEdge(dependent=workload, dependency=end, bandwidth=0, max_cost=math.inf))
    return found


def _beyond(group: Group, absent: str, rank: dict[str, int], known: dict[str, list[str]]) -> list[str]:
    """The two most preferred workloads next to an absent one, or to absent ones next to that: one may be who asks."""
    if absent not in known:
        inside, queue, ends = {absent}, [absent], set[str]()
        for one in queue:
            for other in _others(group, one):
                if other in rank:
                    ends.add(other)
                elif other not in inside:
                    inside.add(other)
                    queue.append(other)
        known |= dict.fromkeys(inside, sorted(ends, key=rank.__getitem__)[:2])
    return known[absent]


def _others(group: Group, workload: str) -> list[str]:
    """Callers and dependencies of a workload."""
    edges = group.edges_of.get(workload, ())
    ends = (edge.dependency if edge.dependent == workload else edge.dependent for edge in edges)
    return [end for end in ends if end != workload]
