"""Dependency edges between pods: what a group's workload edges become when workloads have replicas.

A dependency of workload a on workload b with minBandwidth w means that every pod of a needs w towards b;
its calls are spread over the live replicas of b (waiting ones included: they are about to be placed), so each
pair of pods is charged w divided by b's replicas, rounded up to whole bit/s: sums of whole numbers are exact in
whatever order they are added and taken away. For a placed pod of a, w is what it was admitted with.
Every pair counts once in the network cost, as in the NetworkOverhead plugin. All pairs of two workloads between the
same two nodes are alike, so sums are taken over counts of pods by workload and node, never over pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from berth.network.admitted import Callers, all_stated
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
    bandwidth: int
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
        limit = effective_limit(edge)
        for caller in by_workload.get(edge.dependent, ()):
            demand = edge.bandwidth if caller.admitted is None else dict(caller.admitted).get(edge.dependency, 0)
            share = pair_bandwidth(demand, len(callees))
            for callee in callees:
                yield PodEdge(caller, callee, share, limit)


def pair_bandwidth(demand: int, callees: int) -> int:
    """bit/s that each pair of pods takes if a caller needs `demand` towards so many live replicas."""
    return -(-demand // callees)


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
        for key in self._dirty:
            _replace(self.nodes, self._nodes_of, key, node_bandwidth(groups.get(key), *self._of(key)))
            # Groups come and go for ever, and pairs may never be asked for: noted are those alone that have some.
            if key in self._nodes_of or key in self._pairs_of:
                self._dirty_pairs.add(key)
            else:
                self._dirty_pairs.discard(key)
        self._dirty.clear()

    @property
    def pairs(self) -> Mapping[NodePair, int]:
        """bit/s between two nodes as of the last `refresh`, for links that several pairs share.

        Worked out on demand: few clusters have such links, and pairs of nodes are many.
        """
        for key in self._dirty_pairs:
            _replace(self._pairs, self._pairs_of, key, pair_bandwidths(self._groups.get(key), *self._of(key)))
        self._dirty_pairs.clear()
        return self._pairs

    def _of(self, key: GroupKey) -> tuple[Callers, WorkloadPlaces]:
        return self._members.callers(key), self._members.places(key)


def _replace(
    total: defaultdict[Key, int], parts: dict[GroupKey, dict[Key, int]], group: GroupKey, amounts: dict[Key, int]
) -> None:
    """Put a group's amounts in the place of its former ones."""
    changes = [(key, -amount) for key, amount in parts.pop(group, {}).items()]
    if amounts:
        parts[group] = amounts
    for key, amount in (*changes, *amounts.items()):
        total[key] += amount
        if not total[key]:
            del total[key]


def placed_demand(
    group: Group | None, callers: Callers, places: WorkloadPlaces, *, towards: str | None = None
) -> dict[tuple[str, str], dict[str, int]]:
    """bit/s that the placed callers of a workload on each node take towards every replica of a dependency.

    By dependent and dependency, whatever the AppGroup still states or has been deleted; those without demand left out.
    With `towards` only what is taken towards that dependency.
    """
    demand: dict[tuple[str, str], dict[str, int]] = {}
    for workload, nodes, shares in _shares(group, callers, places):
        for dependency, share in shares:
            if towards is not None and dependency != towards:
                continue
            by_node = demand.setdefault((workload, dependency), {})
            for node, count in nodes.items():
                by_node[node] = by_node.get(node, 0) + share * count
    return demand


def node_bandwidth(group: Group | None, callers: Callers, places: WorkloadPlaces) -> dict[str, int]:
    """bit/s that edges between placed pods on different nodes take from the budget of each node.

    Every decision waits for this while pods of the group move, so no dependency is looked at node by node: only where
    both ends share one.
    """
    usage: defaultdict[str, int] = defaultdict(int)
    arriving: defaultdict[str, int] = defaultdict(int)  # at each replica of a dependency
    for _, nodes, shares in _shares(group, callers, places):
        leaving, pods = 0, sum(nodes.values())  # leaving: from each caller
        for dependency, share in shares:
            callees = places.nodes(dependency)
            leaving += share * sum(callees.values())
            arriving[dependency] += share * pods
            for node in nodes.keys() & callees.keys():
                usage[node] -= 2 * share * nodes[node] * callees[node]  # neither leaves the node nor arrives there
        for node, count in nodes.items():
            usage[node] += leaving * count
    for dependency, amount in arriving.items():
        for node, count in places.nodes(dependency).items():
            usage[node] += amount * count
    return {node: amount for node, amount in usage.items() if amount}


def _shares(
    group: Group | None, callers: Callers, places: WorkloadPlaces
) -> Iterator[tuple[str, Mapping[str, int], list[tuple[str, int]]]]:
    """Workload, its placed pods by node, and what each takes towards every replica of each dependency."""
    now = all_stated(group)
    for workload, admitted, nodes in callers:
        demand = now.get(workload, ()) if admitted is None else admitted
        yield (
            workload,
            nodes,
            [
                (dependency, pair_bandwidth(amount, callees))
                for dependency, amount in demand
                if dependency != workload and (callees := places.replicas(dependency))
            ],
        )


def pair_bandwidths(group: Group | None, callers: Callers, places: WorkloadPlaces) -> dict[NodePair, int]:
    """bit/s that edges between placed pods on different nodes take, by pair of nodes."""
    usage: defaultdict[NodePair, int] = defaultdict(int)
    for (_, dependency), outgoing in placed_demand(group, callers, places).items():
        for first, amount in outgoing.items():
            for second, count in places.nodes(dependency).items():
                if first != second:
                    usage[min(first, second), max(first, second)] += amount * count
    return dict(usage)
