"""Berth's own choice of node and sockets: the least slowdown that all may expect, the newcomer and those beside it.

A node is judged by the best pairing that its pods would then have, for they may be pinned anew. A pod alone on a
socket is charged half of what it and a likely partner would cost, as one will come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from berth.scheduling.interference.assignment import Assignment, best_assignment
from berth.scheduling.interference.slowdown import SlowdownModel, Workload


@dataclass(frozen=True)
class LeastSlowdown:
    """Judges nodes for one more pod, and assigns pods to sockets."""

    model: SlowdownModel
    """expected slowdowns"""
    likely: Sequence[Workload] = ()
    """workloads that may come next, as often as they do; without any a pod alone costs nothing"""
    _harm: dict[tuple[Workload, ...], float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _alone: dict[Workload, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def pairing(
        self, pods: Sequence[Workload], sizes: Sequence[int], capacities: Sequence[int], *, more: bool = True
    ) -> Assignment | None:
        """Return the pairing with the least expected harm; None where the pods do not fit.

        Args:
            pods: pods of the node, or of several nodes that are planned together.
            sizes: what each takes.
            capacities: what each socket has, in the same unit.
            more: whether others will come; if not, a pod alone costs nothing.
        """

        def cost(numbers: tuple[int, ...], socket: int) -> float:
            if len(numbers) == 1 and more and sizes[numbers[0]] < capacities[socket]:
                return self._price_alone(pods[numbers[0]])
            return self._harm_of(tuple(sorted(pods[number] for number in numbers)))

        return best_assignment(sizes, capacities, cost)

    def added_harm(
        self, pod: Workload, size: int, residents: Sequence[Workload], sizes: Sequence[int], capacities: Sequence[int]
    ) -> float | None:
        """Return by how much a node's best pairing becomes worse with one more pod; None where it does not fit."""
        after = self.pairing([*residents, pod], [*sizes, size], capacities)
        if after is None:
            return None
        before = self.pairing(residents, sizes, capacities)
        return after.cost - (before.cost if before else 0.0)

    def _harm_of(self, residents: tuple[Workload, ...]) -> float:
        if residents not in self._harm:
            self._harm[residents] = self.model.harm(residents)
        return self._harm[residents]

    def _price_alone(self, pod: Workload) -> float:
        if pod not in self._alone:
            pairs = [self.model.harm((pod, other)) / 2 for other in self.likely]
            self._alone[pod] = fmean(pairs) if pairs else 0.0
        return self._alone[pod]
