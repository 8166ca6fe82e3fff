"""What nodes and links have left as whole numbers: milli-cores, bytes, bit/s.

The gang engine computes with float64, whose sums of whole numbers are exact below 2**53. Filters compare these amounts,
and so does whoever carries out a joint plan, for :func:`fits` is asked about each of its decisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.pod_templates import PodTemplateInfo
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.framework.cycle_state import names_nodes
from berth.scheduling.units import LIMIT

Amounts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

UNLIMITED = 2 * LIMIT
"""Stands for no limit: more than any amount that is counted."""
WIDEST = 2**52
"""bit/s that the gang engine takes for free at the most, on a node or a link: sums with it are exact floats."""
_LARGEST_DENOMINATOR = 10**9


def share_of(capacity: Amounts, share: Floats) -> Amounts:
    """Return int64[N, ...], the whole part of each node's share (float64[N], in (0, 1]) of its capacity.

    A share is the decimal that it is written as, of up to nine digits: 0.7 of 10 is 7.
    """
    part = capacity.copy()
    for value in np.unique(share[share < 1]).tolist():
        rows, ratio = share == value, Fraction(repr(value)).limit_denominator(_LARGEST_DENOMINATOR)
        # Divided first, so that nothing overflows.
        whole, rest = np.divmod(capacity[rows], ratio.denominator)
        part[rows] = whole * ratio.numerator + rest * ratio.numerator // ratio.denominator
    return part


@dataclass(slots=True)
class ExactAmounts:
    """Amounts of N nodes, R resources and P links; sums saturate at LIMIT."""

    open: Amounts
    """int64[N, R], what of a node is open to pods that do not name it"""
    max_unit: Amounts
    """int64[N, R], largest single pod an opaque node takes; UNLIMITED for ordinary nodes"""
    bandwidth: Amounts
    """int64[N], network budget; UNLIMITED where there is none"""
    bandwidth_kept: Amounts
    """int64[N], what of it is kept back from pods that do not name the node"""
    bandwidth_free: Amounts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64[N], what of it is left; UNLIMITED where there is none"""
    link_free: tuple[int, ...] = ()
    """P amounts, what is left of each link"""

    @property
    def limited(self) -> Bools:
        """bool[N], nodes that have a network budget."""
        return self.bandwidth < UNLIMITED

    def take(self, requested: Amounts | None, by_edges: Iterable[tuple[int, int]]) -> None:
        """Set what is left of network budgets.

        Args:
            requested: int64[N], what pods on the nodes request of it as a resource; None for nothing.
            by_edges: (node slot, bit/s) of what dependency edges take.
        """
        left = self.bandwidth.copy()
        limited = self.limited
        if limited.any():
            if requested is not None:
                left -= requested
            for slot, amount in by_edges:
                left[slot] = max(int(left[slot]) - amount, -LIMIT)
            left[~limited] = UNLIMITED
        self.bandwidth_free = left

    @property
    def bandwidth_left(self) -> Floats:
        """float64[N], what is left of network budgets for the gang engine; infinite where there is none."""
        return np.where(self.limited, np.minimum(self.bandwidth_free, WIDEST), np.inf)


def fits(state: ClusterState, exact: ExactAmounts, slot: int, template: PodTemplateInfo) -> bool:
    """Whether a node has room for one more pod of a template, with everything that is assumed by now."""
    columns, used, allocatable = state.resources, state.used[slot], state.allocatable[slot]
    wanted = {columns[name]: amount for name, amount in template.requests if name in columns and amount > 0}
    named = names_nodes(template)
    wanted[columns["pods"]] = 1
    for column, amount in wanted.items():
        total = int(used[column]) + amount
        if total > allocatable[column] or amount > exact.max_unit[slot, column]:
            return False
        if not named and total > exact.open[slot, column]:
            return False
    return True
