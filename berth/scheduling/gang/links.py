"""Links that several pairs of nodes share: physical ones, and budgets between places.

A virtual link between two nodes may run through switches and uplinks that other pairs use too; using the virtual
link uses every physical link in it (PHARE's model). Each node's own access budget is not listed here: it is
`Infrastructure.bandwidth_capacity`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from berth.network.peers import LinkShortage
from berth.scheduling.framework import reasons

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

_NAMED = 3
"""Links that the reasons of one pod name at the most: a full network would be a page of them."""


@dataclass(frozen=True)
class LinkModel:
    """Which physical links traffic between two different nodes uses, and what each link can carry.

    The links of a pair of nodes are the `by_node` links of both and the `by_location` links of their two locations; a
    pair of locations counts in either order. Two components on one node use no link.
    """

    names: tuple[str, ...]
    """Link names, in the order of the link axis."""
    capacity: Floats
    """float64[P], what each link can carry."""
    free: Floats
    """float64[P], what is left of it."""
    by_location: Mapping[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    """Links between two locations (or inside one, key (l, l)), as indices into `names`."""
    by_node: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Links that all traffic of a node uses, e.g. the uplink of its rack."""

    def path(self, first: int, second: int, location: Ints) -> tuple[int, ...]:
        """Return the sorted link indices that traffic between two nodes uses; empty for one and the same node."""
        if first == second:
            return ()
        between = self.between(int(location[first]), int(location[second]))
        return tuple(sorted({*self.by_node.get(first, ()), *self.by_node.get(second, ()), *between}))

    def kinds(self, location: Ints) -> Ints:
        """Return int[N]; nodes of one kind use the same links towards other nodes."""
        kind = location.copy()
        kind[list(self.by_node)] = int(location.max(initial=0)) + 1 + np.arange(len(self.by_node))
        return kind

    def between(self, here: int, there: int) -> tuple[int, ...]:
        """Return the link indices that traffic between nodes of two locations uses, whichever nodes these are."""
        return self.by_location.get((here, there), self.by_location.get((there, here), ()))

    def among(self, nodes: Indices, location: Ints, links: Indices) -> Indices:
        """Return those of `links` that traffic between some of `nodes` uses."""
        places = np.unique(location[nodes]).tolist()
        used = {link for here in places for there in places for link in self.between(here, there)}
        used.update(link for node in nodes.tolist() for link in self.by_node.get(node, ()))
        return np.array([link for link in links.tolist() if link in used], dtype=np.intp)

    def incidence(self, nodes: Ints, location: Ints, among: Indices) -> Bools:
        """Return bool[K, K, P']: does traffic between the k-th and the l-th of `nodes` use the p-th link of `among`?"""
        count = len(nodes)
        position = {int(link): number for number, link in enumerate(among)}
        table = np.zeros((count, count, len(among)), dtype=np.bool_)
        places = location[nodes]
        for here in np.unique(places):
            for there in np.unique(places):
                used = [position[link] for link in self.between(int(here), int(there)) if link in position]
                if used:
                    rows, columns = np.flatnonzero(places == here), np.flatnonzero(places == there)
                    table[np.ix_(rows, columns, np.asarray(used))] = True
        index = {int(node): position for position, node in enumerate(nodes)}
        for node, links in self.by_node.items():
            used = [position[link] for link in links if link in position]
            if node in index and used:
                table[index[node], :, used] = True
                table[:, index[node], used] = True
        table[np.arange(count), np.arange(count)] = False
        return table

    def rejections(self, short: Sequence[LinkShortage], free: Sequence[float]) -> Iterator[tuple[str, Bools]]:
        """Yield reason and bool[N] of the nodes that links rule out; `free` is what is left of each link."""
        found: dict[str, list[Bools]] = {}
        for link, wanted, nodes in short:
            reason = reasons.link_too_narrow(self.names[link], int(wanted), int(free[link]))
            found.setdefault(reason if reason in found or len(found) < _NAMED else reasons.LINK_TOO_NARROW, []).append(
                nodes
            )
        for reason, rows in found.items():
            yield reason, np.logical_or.reduce(rows)
