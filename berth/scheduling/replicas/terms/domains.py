"""Counts of pods by topology domain, read by column.

Tables have one entry more than there are domains: the last one belongs to nodes without the key (domain -1) and stays
0, so that indexing with a column's domain never needs a bounds check.
"""

from __future__ import annotations

import numpy as np

from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Floats, Ints


class DomainCounts:
    """The domains of one topology key."""

    def __init__(self, model: Model, domain: Ints) -> None:
        """Take the domain of every node, int64[N]."""
        self._domain = domain
        self.size = int(domain.max(initial=-1)) + 1
        self.column: Ints = domain[model.columns]
        """int64[K], domain of each column"""

    def table(self, by_node: Ints | None) -> Floats:
        """float64[D + 1]: pods by node, int64[N], added up by domain."""
        table: Floats = np.zeros(self.size + 1)
        if by_node is not None:
            keyed = self._domain >= 0
            table[: self.size] = np.bincount(self._domain[keyed], weights=by_node[keyed], minlength=self.size)
        return table
