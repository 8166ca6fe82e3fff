"""Budgets of nodes and links under a plan, judged once for all of its pods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.units import LIMIT
from berth.scheduling.gang.exact import ExactAmounts

Amounts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Left:
    """What is left of budgets at one moment."""

    nodes: ExactAmounts
    """which nodes: another object once any of them is another"""
    amounts: Amounts
    """int64[N + P], bit/s of each node for pods that do not name it, then of each link"""

    @classmethod
    def of(cls, exact: ExactAmounts) -> _Left:
        links = np.array([min(max(amount, -LIMIT), LIMIT) for amount in exact.link_free], dtype=np.int64)
        return cls(exact, np.concatenate([exact.bandwidth_free - exact.bandwidth_kept, links]))

    def alike(self, other: _Left) -> bool:
        """Whether both are about the same budgets."""
        return self.nodes is other.nodes and len(self.amounts) == len(other.amounts)


class SharedBudgets:
    """What a plan's calls may take: what is free without it.

    A call takes from a budget whichever of its pods comes last, and a caller's share depends on where all endpoints
    are. So a plan is judged as a whole, by the account that is kept of placed pods: a look at every pod would ask the
    same of all others again and again.
    """

    def __init__(self, amounts: Callable[[], ExactAmounts]) -> None:
        """Begin before the first pod of the plan is assumed; `amounts` are those of nodes and links as of now."""
        self._amounts = amounts
        self._free = self._left()

    def _left(self) -> _Left:
        return _Left.of(self._amounts())

    def others_turn(self) -> Callable[[], None]:
        """Others have a turn from now on; returns what is to be called when it is over: what they took is theirs."""
        before = self._left()

        def over() -> None:
            after, free = self._left(), self._free
            if after.alike(free):
                self._free = _Left(free.nodes, free.amounts + (after.amounts - before.amounts))

        return over

    @property
    def kept(self) -> bool:
        """Whether no budget is exceeded; one that is overdrawn without the plan takes nothing of it.

        False, too, if budgets themselves have changed meanwhile.
        """
        now = self._left()
        return now.alike(self._free) and bool((now.amounts >= np.minimum(self._free.amounts, 0)).all())
