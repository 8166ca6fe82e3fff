"""What calls with bandwidth take from nodes and from pairs of nodes: a caller's demand, split over whom it reaches.

A dependency of workload a on workload b with minBandwidth w means that every pod of a needs w towards b. Calls to all
endpoints are spread over the live replicas of b (waiting ones included: they are about to be placed), calls that a
Service keeps in a zone over the placed endpoints of the zone, and those that stay on the node take nothing. Shares are
rounded up to whole bit/s: sums of whole numbers are exact in whatever order they are added and taken away.

Nodes are names or slots. Sums are taken over counts of pods by node, never over pairs of pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from berth.network.routing import Routing

Node = TypeVar("Node", str, int)
Demand = Mapping[Node, Sequence[tuple[int, int]]]
"""(bit/s, callers that need as much) by node"""


def pair_bandwidth(demand: int, callees: int) -> int:
    """bit/s that each pair of pods takes if a caller's `demand` is spread over so many."""
    return -(-demand // callees)


@dataclass(frozen=True, slots=True)
class Bundle(Generic[Node]):
    """Calls that all go to the same endpoints."""

    callers: Mapping[Node, int]
    """bit/s of the callers on each node towards each endpoint"""
    endpoints: Mapping[Node, int]
    """endpoints on each node"""


@dataclass(frozen=True, slots=True)
class Calls(Generic[Node]):
    """Calls from one workload to another."""

    routing: Routing
    """how the called workload's Service routes"""
    demand: Demand[Node]
    """of the callers"""
    endpoints: Mapping[Node, int]
    """endpoints on each node"""
    live: int
    """replicas that calls to all are spread over, waiting ones included"""

    def bundles(self, zone: Callable[[Node], object]) -> Iterator[Bundle[Node]]:
        """Put calls together by whom they reach; those that stay on their node are left out.

        Args:
            zone: a node's zone; None, or an empty text, where it has none.
        """
        if not self.endpoints or self.routing is Routing.LOCAL:
            return
        callers: Iterable[Node] = self.demand
        if self.routing is Routing.ALL:
            yield Bundle(self._shares(callers, self.live), self.endpoints)
            return
        if self.routing is Routing.SAME_NODE:
            callers = [node for node in callers if node not in self.endpoints]
        by_zone: defaultdict[object, dict[Node, int]] = defaultdict(dict)
        for node, count in self.endpoints.items():
            by_zone[zone(node)][node] = count
        if None in by_zone or "" in by_zone:
            by_zone.clear()  # one endpoint without a zone: zones no longer count
        calling: defaultdict[object, list[Node]] = defaultdict(list)
        for node in callers:
            home = zone(node)
            calling[home if home in by_zone else None].append(node)
        for home, nodes in calling.items():
            near = by_zone.get(home)
            if near is None:
                yield Bundle(self._shares(nodes, self.live), self.endpoints)
            else:
                yield Bundle(self._shares(nodes, sum(near.values())), near)

    def _shares(self, nodes: Iterable[Node], over: int) -> dict[Node, int]:
        return {node: sum(pair_bandwidth(each, over) * count for each, count in self.demand[node]) for node in nodes}


def node_usage(bundles: Iterable[Bundle[Node]]) -> Counter[Node]:
    """bit/s that calls between different nodes take from the budget of each node."""
    usage: Counter[Node] = Counter()
    for bundle in bundles:
        for ends, others in ((bundle.callers, bundle.endpoints), (bundle.endpoints, bundle.callers)):
            total = sum(others.values())
            for node, amount in ends.items():
                if away := total - others.get(node, 0):
                    usage[node] += amount * away
    return usage


def pair_usage(bundles: Iterable[Bundle[Node]]) -> Counter[tuple[Node, Node]]:
    """bit/s of calls between two different nodes, by pair in order."""
    usage: Counter[tuple[Node, Node]] = Counter()
    for bundle in bundles:
        for first, amount in bundle.callers.items():
            for second, count in bundle.endpoints.items():
                if first != second:
                    usage[min(first, second), max(first, second)] += amount * count
    return usage
