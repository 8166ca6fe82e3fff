"""What calls with bandwidth take from nodes and from pairs of nodes: a caller's demand, split over whom it reaches.

A dependency of workload a on workload b with minBandwidth w means that every pod of a needs w towards b. Calls to all
endpoints are spread over the live replicas of b (waiting ones included: they are about to be placed), calls that a
Service keeps in a zone over the placed endpoints of the zone, and those that stay on the node take nothing. Shares are
rounded up to whole bit/s: sums of whole numbers are exact in whatever order they are added and taken away.

Nodes are names or slots. Sums are taken over counts of pods by node, never over pairs of pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from berth.network.costs import Place
from berth.network.routing import Routing

Node = TypeVar("Node", str, int)
Demand = Mapping[int, Mapping[Node, int]]
"""callers on each node, by the bit/s that each of them needs"""


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
class Endpoints(Generic[Node]):
    """Those of one workload, as its Service chooses among them; made by :meth:`of`."""

    routing: Routing
    """how it chooses"""
    counts: Mapping[Node, int]
    """endpoints on each node"""
    live: int
    """replicas that calls to all are spread over, waiting ones included"""
    by_zone: Mapping[object, Mapping[Node, int]]
    """endpoints by zone and node where zones count, otherwise nothing"""

    @classmethod
    def of(
        cls, routing: Routing, counts: Mapping[Node, int], live: int, zone: Callable[[Node], object]
    ) -> Endpoints[Node]:
        """Sort endpoints by zone; `zone` is that of a node, None or an empty text where it has none."""
        by_zone: defaultdict[object, dict[Node, int]] = defaultdict(dict)
        if routing in (Routing.SAME_ZONE, Routing.SAME_NODE):
            for node, count in counts.items():
                by_zone[zone(node)][node] = count
            if None in by_zone or "" in by_zone:
                by_zone.clear()  # one endpoint without a zone: zones no longer count
        return cls(routing, counts, live, by_zone)

    def with_one(self, node: Node, zone: object) -> Endpoints[Node]:
        """With one more, on a node that has none; None for a node without a zone."""
        by_zone: Mapping[object, Mapping[Node, int]] = {}
        if zone is not None and (self.by_zone or not self.counts):
            by_zone = {**self.by_zone, zone: {**self.by_zone.get(zone, {}), node: 1}}
        return replace(self, counts={**self.counts, node: 1}, by_zone=by_zone)

    def bundles(self, demand: Demand[Node], zone: Callable[[Node], object]) -> Iterator[Bundle[Node]]:
        """Put calls together by whom they reach; those that stay on their node are left out."""
        if not self.counts or self.routing is Routing.LOCAL:
            return
        if self.routing is Routing.ALL:
            yield Bundle(_shares(demand, None, self.live), self.counts)
            return
        stay = self.counts if self.routing is Routing.SAME_NODE else ()
        calling: defaultdict[object, list[Node]] = defaultdict(list)
        for node in set[Node]().union(*demand.values()):
            if node not in stay:
                home = zone(node)
                calling[home if home in self.by_zone else None].append(node)
        for home, nodes in calling.items():
            near = self.by_zone.get(home)
            if near is None:
                yield Bundle(_shares(demand, nodes, self.live), self.counts)
            else:
                yield Bundle(_shares(demand, nodes, sum(near.values())), near)


@dataclass(frozen=True, slots=True)
class Calls(Generic[Node]):
    """Calls to one workload."""

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
        return Endpoints.of(self.routing, self.endpoints, self.live, zone).bundles(self.demand, zone)


def _shares(demand: Demand[Node], among: Collection[Node] | None, over: int) -> dict[Node, int]:
    """bit/s towards each endpoint, of callers `among` these nodes or of all; one demand after another is faster."""
    shares: dict[Node, int] = {}
    for amount, callers in demand.items():
        each = pair_bandwidth(amount, over)
        for node in callers if among is None else [node for node in among if node in callers]:
            shares[node] = shares.get(node, 0) + each * callers[node]
    return shares


def node_usage(bundles: Iterable[Bundle[Node]]) -> Counter[Node]:
    """bit/s that calls between different nodes take from the budget of each node.

    More callers add exactly what they take themselves, so callers that have gone may be counted below 0: their usage is
    what is given back.
    """
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


def place_usage(bundles: Iterable[Bundle[Node]], place: Callable[[Node], Place]) -> Counter[tuple[Place, Place]]:
    """bit/s of calls between different nodes, by pair of their places in order; two nodes may be in one place."""
    usage: Counter[tuple[Place, Place]] = Counter()
    for bundle in bundles:
        calling, called = _by_place(bundle.callers, place), _by_place(bundle.endpoints, place)
        for here, amount in calling.items():
            for there, count in called.items():
                usage[min(here, there), max(here, there)] += amount * count
        for node, amount in bundle.callers.items():
            if count := bundle.endpoints.get(node, 0):
                usage[place(node), place(node)] -= amount * count
    return usage


def _by_place(amounts: Mapping[Node, int], place: Callable[[Node], Place]) -> Counter[Place]:
    total: Counter[Place] = Counter()
    for node, amount in amounts.items():
        total[place(node)] += amount
    return total
