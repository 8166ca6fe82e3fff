"""Budgets of nodes and links under a plan, judged once for all of its pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.units import LIMIT

Amounts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BudgetName:
    """One budget, whatever slot or number it has at the moment."""

    node: str = ""
    """name of the node whose budget it is, empty for a link"""
    link: str = ""
    """name of the link, empty for a node"""


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of all budgets at one moment."""

    nodes: Sequence[str]
    """node names, N of them; empty where a slot holds none"""
    links: Sequence[str]
    """link names, P of them"""
    amounts: Amounts
    """int64[N + P], bit/s of each node for pods that do not name it, then of each link"""

    @classmethod
    def of(cls, infrastructure: InfrastructureState) -> Left:
        """Read it off the cluster."""
        model, exact = infrastructure.infrastructure, infrastructure.exact
        links = np.array([min(max(amount, -LIMIT), LIMIT) for amount in exact.link_free], dtype=np.int64)
        names = model.links.names if model.links is not None else ()
        return cls(model.names, names, np.concatenate([exact.bandwidth_free - exact.bandwidth_kept, links]))

    def name(self, number: int) -> BudgetName:
        """The budget at a place of `amounts`."""
        nodes = len(self.nodes)
        return BudgetName(node=self.nodes[number]) if number < nodes else BudgetName(link=self.links[number - nodes])


class SharedBudgets:
    """What a plan's calls take of budgets, in its own turns.

    A call takes from a budget whichever of its pods comes last, and a caller's share depends on where all endpoints
    are. So a plan is judged as a whole, by the account that is kept of placed pods: a look at every pod would ask the
    same of all others again and again. Budgets go by name, for nodes come, go and change in the turns of others.
    """

    def __init__(self, left: Callable[[], Left]) -> None:
        """Begin before the first pod of the plan is assumed; `left` tells what is left as of now."""
        self._left = left
        self._began = left()
        self._taken = Counter[BudgetName]()

    def end_turn(self) -> None:
        """Others have a turn from now on: what they take is theirs."""
        now = self._left()
        for number in np.flatnonzero(self._began.amounts != now.amounts).tolist():
            self._taken[now.name(number)] += int(self._began.amounts[number]) - int(now.amounts[number])
        self._began = now

    def begin_turn(self) -> None:
        """The turn of others is over."""
        self._began = self._left()

    def exceeded(self) -> list[BudgetName]:
        """Budgets that are overdrawn, and of which the plan takes some; those of nodes that have gone are none."""
        self.end_turn()
        over = (self._began.name(number) for number in np.flatnonzero(self._began.amounts < 0).tolist())
        return [name for name in over if self._taken[name] > 0]

    def exceeds(self, name: BudgetName) -> bool:
        """Whether the plan exceeds one budget."""
        return name in self.exceeded()
