"""Dependency edges between pods: what a group's workload edges become when workloads have replicas.

A dependency of workload a on workload b with minBandwidth w means that every pod of a needs w towards b;
its calls are spread over the live replicas of b (waiting ones included: they are about to be placed), so each
pair of pods is charged w divided by b's replicas, rounded up to whole bit/s: sums of whole numbers are exact in
whatever order they are added and taken away.
Every pair counts once in the network cost, as in the NetworkOverhead plugin. All pairs of two workloads between the
same two nodes are alike, so sums are taken over counts of pods by workload and node, never over pairs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from berth.network.costs import SAME_ZONE_COST
from berth.network.groups import Group, GroupEdge, GroupKey
from berth.network.members import GroupMembers, Member
from berth.network.workload_places import WorkloadPlaces


@dataclass(frozen=True, slots=True)
class PodEdge:
    """One dependency between two pods of a group."""

    dependent: Member
    """the pod that calls"""
    dependency: Member
    """the pod that is called"""
    bandwidth: float
    """bit/s"""
    max_cost: float
    """limit on the network cost, at least the cost inside a zone: same zone always satisfies
    (so a limit of 0 also admits another zone at that cost)"""


def pod_edges(group: Group, members: Sequence[Member]) -> Iterator[PodEdge]:
    """All pod pairs that the group's dependencies connect, waiting and placed ones alike."""
    by_workload: defaultdict[str, list[Member]] = defaultdict(list)
    for member in members:
        by_workload[member.workload].append(member)
    for edge in group.edges:
        callees = by_workload.get(edge.dependency, ())
        if not callees:
            continue
        share = pair_bandwidth(edge, len(callees))
        limit = effective_limit(edge)
        for caller in by_workload.get(edge.dependent, ()):
            for callee in callees:
                yield PodEdge(caller, callee, share, limit)


def pair_bandwidth(edge: GroupEdge, callees: int) -> float:
    """bit/s that each pair of pods takes, with so many live replicas of the dependency."""
    return float(math.ceil(edge.bandwidth / callees))


def effective_limit(edge: GroupEdge) -> float:
    """The limit on the network cost of each pair, infinite for none; see :attr:`PodEdge.max_cost`."""
    return max(edge.max_cost, SAME_ZONE_COST)


NodePair = tuple[str, str]
"""Two different nodes, in alphabetical order."""


Key = TypeVar("Key")


class BandwidthAllocations:
    """Bandwidth that the placed dependency edges of all groups take, kept up to date group by group."""

    def __init__(self, members: GroupMembers) -> None:
        """Start empty; `members` says where pods are."""
        # Integers: what a group gives back is exactly what it took, however large.
        self.nodes: defaultdict[str, int] = defaultdict(int)
        """bit/s taken from each node's budget."""
        self._pairs: defaultdict[NodePair, int] = defaultdict(int)
        self._members = members
        self._groups: Mapping[GroupKey, Group] = {}
        self._nodes_of: dict[GroupKey, dict[str, int]] = {}
        self._pairs_of: dict[GroupKey, dict[NodePair, int]] = {}
        self._dirty: set[GroupKey] = set()
        self._dirty_pairs: set[GroupKey] = set()

    def mark(self, key: GroupKey | None) -> None:
        """Note that a group or the place of one of its pods changed."""
        if key is not None:
            self._dirty.add(key)

    def refresh(self, groups: Mapping[GroupKey, Group]) -> None:
        """Recompute the groups that changed since the last call."""
        self._groups = groups
        self._dirty_pairs |= self._dirty
        for key in self._dirty:
            fresh = node_bandwidth(groups[key], self._members.places(key)) if key in groups else {}
            _replace(self.nodes, self._nodes_of, key, fresh)
        self._dirty.clear()

    @property
    def pairs(self) -> Mapping[NodePair, int]:
        """bit/s between two nodes as of the last `refresh`, for links that several pairs share.

        Worked out on demand: few clusters have such links, and pairs of nodes are many.
        """
        for key in self._dirty_pairs:
            known = self._groups.get(key)
            fresh = pair_bandwidths(known, self._members.places(key)) if known is not None else {}
            _replace(self._pairs, self._pairs_of, key, fresh)
        self._dirty_pairs.clear()
        return self._pairs


def _replace(
    total: defaultdict[Key, int], parts: dict[GroupKey, dict[Key, int]], group: GroupKey, fresh: dict[Key, float]
) -> None:
    """Put a group's amounts in the place of its former ones."""
    changes = [(key, -amount) for key, amount in parts.pop(group, {}).items()]
    amounts = {key: int(amount) for key, amount in fresh.items()}
    if amounts:
        parts[group] = amounts
    for key, amount in (*changes, *amounts.items()):
        total[key] += amount
        if not total[key]:
            del total[key]


def _reserving(group: Group, places: WorkloadPlaces) -> Iterator[tuple[float, Mapping[str, int], Mapping[str, int]]]:
    """Bandwidth of a pair of pods with the callers and the callees by node, for every edge that reserves some."""
    for edge in group.edges:
        callees = places.replicas(edge.dependency)
        if edge.bandwidth and callees:
            yield pair_bandwidth(edge, callees), places.nodes(edge.dependent), places.nodes(edge.dependency)


def node_bandwidth(group: Group, places: WorkloadPlaces) -> dict[str, float]:
    """bit/s that edges between placed pods on different nodes take from the budget of each node."""
    usage: defaultdict[str, float] = defaultdict(float)
    for share, callers, callees in _reserving(group, places):
        for ends, others in ((callers, callees), (callees, callers)):
            total = sum(others.values())
            for node, count in ends.items():
                if away := total - others.get(node, 0):
                    usage[node] += share * count * away
    return dict(usage)


def pair_bandwidths(group: Group, places: WorkloadPlaces) -> dict[NodePair, float]:
    """bit/s that edges between placed pods on different nodes take, by pair of nodes."""
    usage: defaultdict[NodePair, float] = defaultdict(float)
    for share, callers, callees in _reserving(group, places):
        for first, count in callers.items():
            for second, others in callees.items():
                if first != second:
                    usage[min(first, second), max(first, second)] += share * count * others
    return dict(usage)
