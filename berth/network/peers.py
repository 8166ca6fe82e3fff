"""One pod and the placed pods it has dependency edges with: what each node would cost it, and which nodes rule out.

Arrays run over N nodes, L locations, P physical links and K edges to placed pods. An edge inside a node costs nothing,
breaks no limit and takes no bandwidth. ``outward`` belongs to edges on which the pod calls its peer, ``inward`` to
those on which the peer calls the pod: costs need not be the same in both directions. Whoever asks what the network
makes of a node asks here, for a pod placed alone and for a member of a joint plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32] | npt.NDArray[np.intp]
Amounts = npt.NDArray[np.int64] | npt.NDArray[np.float64]
"""bit/s: whole numbers, which are compared exactly, or floats of the gang engine"""

_MOST = 2**62
"""bit/s at which sums saturate."""


def edge_costs(origins: Ints, targets: Ints, *, location: Ints, location_cost: Floats) -> Floats:
    """Return float64[E], the network cost of each edge from node to node, int[E] both; 0 inside a node."""
    return np.where(origins == targets, 0.0, location_cost[location[origins], location[targets]])


def cost_towards(homes: Ints, outward: Floats, inward: Floats, *, location: Ints, location_cost: Floats) -> Floats:
    """Return float64[N], the summed network cost of all edges if the pod were on each node.

    Args:
        homes: int[K], node of each peer.
        outward: float64[K], weight of the edge towards the peer, 0 for none.
        inward: float64[K], weight of the edge from the peer, 0 for none.
        location: int[N], location of each node.
        location_cost: float64[L, L], cost from location to location.
    """
    places = location[homes]
    by_location: Floats = location_cost[:, places] @ outward + inward @ location_cost[places]
    cost: Floats = by_location[location]
    np.subtract.at(cost, homes, (outward + inward) * location_cost[places, places])
    return cost


def bandwidth_cost(homes: Ints, demand: Floats, *, price: Floats) -> Floats:
    """Return float64[N], the price of all edges' bandwidth, paid at both ends, if the pod were on each node.

    Args:
        homes: int[K], node of each peer.
        demand: float64[K], bandwidth of each edge.
        price: float64[N], price per unit of bandwidth of each node.
    """
    received = np.bincount(homes, weights=demand, minlength=len(price))
    cost: Floats = (demand.sum() - 2 * received) * price + demand @ price[homes]
    return cost


def beyond_limits(homes: Ints, outward: Floats, inward: Floats, *, location: Ints, location_cost: Floats) -> Bools:
    """Return bool[N], the nodes from which some edge would cost more than its limit (maxNetworkCost).

    Arguments as for :func:`cost_towards`, but `outward` and `inward` are the limits, infinite for none.
    """
    places = location[homes]
    broken = (location_cost[:, places] > outward) | (inward < location_cost[places].T)
    count = broken.sum(axis=1)[location]
    np.subtract.at(count, homes, broken[places, np.arange(len(places))])
    beyond: Bools = count > 0
    return beyond


def _received(homes: Ints, demand: Amounts) -> dict[int, float]:
    """Bandwidth of all edges to each node that holds peers; Python's integers do not overflow."""
    received: dict[int, float] = {}
    for home, amount in zip(homes.tolist(), demand.tolist(), strict=True):
        if amount:
            received[home] = received.get(home, 0) + amount
    return received


def short_of_bandwidth(homes: Ints, demand: Amounts, *, free: Amounts, peers_free: Amounts) -> Bools:
    """Return bool[N], the nodes from which the edges' bandwidth would exceed the budget of either end.

    Args:
        homes: int[K], node of each peer.
        demand: [K], bandwidth of each edge.
        free: [N], what the pod may take from each node's budget.
        peers_free: [N], what its peers may.

    A node whose budget is overdrawn already still takes a pod that adds nothing to it.
    """
    received = _received(homes, demand)
    total = sum(received.values())
    short: Bools = free < min(total, _MOST) if total else np.zeros(len(free), dtype=np.bool_)
    for home, amount in received.items():
        short[home] = total > amount and min(total - amount, _MOST) > free[home].item()
    full = [home for home, amount in received.items() if amount > peers_free[home].item()]
    if full:
        # A peer's node that cannot carry its end takes the pod itself, or nobody does.
        elsewhere = np.ones(len(free), dtype=np.bool_)
        if len(full) == 1:
            elsewhere[full] = False
        short |= elsewhere
    return short


class LinkShortage(NamedTuple):
    """Nodes from which calls would take more of a link than it has left."""

    link: int
    """its number"""
    wanted: float
    """bit/s that they would take more of it"""
    nodes: Bools
    """bool[N]"""


def over_links(
    homes: Ints,
    demand: Amounts,
    *,
    path: Callable[[int, int], Iterable[int]],
    kind: Ints,
    free: Sequence[float],
    among: Bools,
) -> list[LinkShortage]:
    """Return the nodes of `among` from which the edges' bandwidth would exceed a link on its way, by the first such.

    Args:
        homes: int[K], node of each peer.
        demand: [K], bandwidth of each edge.
        path: the links that traffic between two nodes uses, none inside a node.
        kind: int[N]; towards other nodes, nodes of one kind use the same links.
        free: P amounts, what is left of each link.
        among: bool[N], the nodes to look at.
    """
    found: list[LinkShortage] = []
    peers = _received(homes, demand).items()
    for nodes in _alike([home for home, _ in peers], kind, among):
        load: dict[int, float] = {}
        for home, amount in peers:
            for link in path(int(nodes[0]), home):
                load[link] = load.get(link, 0) + amount
        found.extend(first_shortage(load, free, nodes, len(among)))
    return found


def first_shortage(
    load: Mapping[int, float], free: Sequence[float], nodes: npt.NDArray[np.intp], size: int
) -> Iterator[LinkShortage]:
    """Yield the first link that cannot carry a load more, which only grows; for nodes that are slots of `size`.

    A link that is overdrawn already takes what adds nothing to it.
    """
    link = min((link for link, amount in load.items() if amount > 0 and amount > free[link]), default=None)
    if link is not None:
        rows = np.zeros(size, dtype=np.bool_)
        rows[nodes] = True
        yield LinkShortage(link, load[link], rows)


def _alike(homes: Sequence[int], kind: Ints, among: Bools) -> Iterator[npt.NDArray[np.intp]]:
    """Nodes that nothing tells apart: each that holds peers, the others by kind."""
    others = among.copy()
    others[homes] = False
    for home in homes:
        if among[home]:
            yield np.array([home], dtype=np.intp)
    for each in np.unique(kind[others]).tolist():
        yield np.flatnonzero(others & (kind == each))
