"""Dependency edges between pods: what a group's workload edges become when workloads have replicas.

A dependency of workload a on workload b with minBandwidth w means that every pod of a needs w towards b;
its calls are spread over the live replicas of b (waiting ones included: they are about to be placed), so each
pair of pods is charged w divided by b's replicas, rounded up to whole bit/s: sums of whole numbers are exact in
whatever order they are added and taken away.
Every pair counts once in the network cost, as in the NetworkOverhead plugin.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from berth.network.costs import SAME_ZONE_COST
from berth.network.groups import Group, GroupKey
from berth.network.members import GroupMembers, Member


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
        share = float(math.ceil(edge.bandwidth / len(callees)))
        limit = max(edge.max_cost, SAME_ZONE_COST)
        for caller in by_workload.get(edge.dependent, ()):
            for callee in callees:
                yield PodEdge(caller, callee, share, limit)


NodePair = tuple[str, str]
"""Two different nodes, in alphabetical order."""


class BandwidthAllocations:
    """Bandwidth that the placed dependency edges of all groups take, kept up to date group by group."""

    def __init__(self, members: GroupMembers) -> None:
        """Start empty; `members` says where pods are."""
        self.nodes: defaultdict[str, float] = defaultdict(float)
        """bit/s taken from each node's budget."""
        self.pairs: defaultdict[NodePair, float] = defaultdict(float)
        """bit/s between two nodes, for links that several pairs share."""
        self._members = members
        self._by_group: dict[GroupKey, dict[NodePair, float]] = {}
        self._dirty: set[GroupKey] = set()

    def mark(self, key: GroupKey | None) -> None:
        """Note that a group or the place of one of its pods changed."""
        if key is not None:
            self._dirty.add(key)

    def refresh(self, groups: Mapping[GroupKey, Group]) -> None:
        """Recompute the groups that changed since the last call."""
        for key in self._dirty:
            for pair, amount in self._by_group.pop(key, {}).items():
                self._add(pair, -amount)
            group = groups.get(key)
            if group is None or not any(edge.bandwidth for edge in group.edges):
                continue
            fresh = group_bandwidth(pod_edges(group, self._members.of(key)))
            self._by_group[key] = fresh
            for pair, amount in fresh.items():
                self._add(pair, amount)
        self._dirty.clear()

    def _add(self, pair: NodePair, amount: float) -> None:
        self.pairs[pair] += amount
        if not self.pairs[pair]:
            del self.pairs[pair]
        for node in pair:
            self.nodes[node] += amount
            if not self.nodes[node]:
                del self.nodes[node]


def group_bandwidth(edges: Iterable[PodEdge]) -> dict[NodePair, float]:
    """bit/s that edges between placed pods on different nodes take, by pair of nodes."""
    usage: defaultdict[NodePair, float] = defaultdict(float)
    for edge in edges:
        first, second = edge.dependent.node, edge.dependency.node
        if edge.bandwidth and first and second and first != second:
            usage[min(first, second), max(first, second)] += edge.bandwidth
    return dict(usage)
