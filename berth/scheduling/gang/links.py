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
        between = self._between(int(location[first]), int(location[second]))
        return tuple(sorted({*self.by_node.get(first, ()), *self.by_node.get(second, ()), *between}))

    def _between(self, here: int, there: int) -> tuple[int, ...]:
        return self.by_location.get((here, there), self.by_location.get((there, here), ()))

    def incidence(self, nodes: Ints, location: Ints) -> Bools:
        """Return bool[K, K, P]: does traffic between the k-th and the l-th of `nodes` use link p?"""
        count = len(nodes)
        table = np.zeros((count, count, len(self.names)), dtype=np.bool_)
        places = location[nodes]
        for here in np.unique(places):
            for there in np.unique(places):
                used = self._between(int(here), int(there))
                if used:
                    rows, columns = np.flatnonzero(places == here), np.flatnonzero(places == there)
                    table[np.ix_(rows, columns, np.asarray(used))] = True
        index = {int(node): position for position, node in enumerate(nodes)}
        for node, used in self.by_node.items():
            if node in index:
                table[index[node], :, list(used)] = True
                table[:, index[node], list(used)] = True
        table[np.arange(count), np.arange(count)] = False
        return table
