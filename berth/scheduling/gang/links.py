"""Physical links that several pairs of nodes share.

A virtual link between two nodes may run through switches and uplinks that other pairs use too; using the virtual
link uses every physical link in it (PHARE's model). Each node's own access budget is not listed here: it is
`Infrastructure.bandwidth_capacity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

__all__ = ["LinkModel"]


@dataclass(frozen=True)
class LinkModel:
    """Which physical links traffic between two different nodes uses, and what each link can carry.

    The links of a pair of nodes are: the `by_node` links of both, plus the `by_pair` links when the pair is listed
    there, otherwise the `by_location` links of their two locations. Both mappings are symmetric: a key counts in
    either order. Two components on one node use no link.
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
    by_pair: Mapping[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    """Links of one pair of nodes; replaces `by_location` for that pair."""

    def path(self, first: int, second: int, location: Ints) -> tuple[int, ...]:
        """Return the sorted link indices that traffic between two nodes uses; empty for one and the same node."""
        if first == second:
            return ()
        own = self.by_pair.get((first, second), self.by_pair.get((second, first)))
        if own is None:
            here, there = int(location[first]), int(location[second])
            own = self.by_location.get((here, there), self.by_location.get((there, here), ()))
        return tuple(sorted({*self.by_node.get(first, ()), *self.by_node.get(second, ()), *own}))

    def incidence(self, nodes: Ints, location: Ints) -> Bools:
        """Return bool[K, K, P]: does traffic between the k-th and the l-th of `nodes` use link p?"""
        count = len(nodes)
        table = np.zeros((count, count, len(self.names)), dtype=np.bool_)
        places = location[nodes]
        for here in np.unique(places):
            for there in np.unique(places):
                used = self.by_location.get((int(here), int(there)), self.by_location.get((int(there), int(here)), ()))
                if used:
                    rows, columns = np.flatnonzero(places == here), np.flatnonzero(places == there)
                    table[np.ix_(rows, columns, np.asarray(used))] = True
        index = {int(node): position for position, node in enumerate(nodes)}
        for (first, second), used in self.by_pair.items():
            if first in index and second in index:
                for row, column in ((index[first], index[second]), (index[second], index[first])):
                    table[row, column] = False
                    table[row, column, list(used)] = True
        for node, used in self.by_node.items():
            if node in index:
                table[index[node], :, list(used)] = True
                table[:, index[node], list(used)] = True
        table[np.arange(count), np.arange(count)] = False
        return table
