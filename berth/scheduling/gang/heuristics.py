"""Terms that steer the default strategy towards the applications still to come; none is part of the objective.

All of them are 0 by their weight, and none costs more than a few passes over the shortlist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from berth.scheduling.gang.instance import Floats, Indices, Instance


def static_heuristics(instance: Instance, columns: Indices, spare: Floats) -> Floats | float:
    """Return float64[J, K] (or 0.0), the charges that do not depend on what else the application places.

    `spare` is float64[R, K], the room of each node before the search.
    """
    weights, state = instance.weights, instance.state
    total: Floats | float = 0.0
    if weights.fit:
        capacity = instance.infrastructure.capacity[columns].T
        total = total + weights.fit * (spare / np.where(capacity > 0, capacity, 1.0)).mean(axis=0)
    selective = state.has_named or instance.application.named is not None
    if weights.scarcity and selective:
        room = np.where(spare > 0, spare, np.inf)
        open_to_all = instance.infrastructure.threshold[columns] >= 1
        total = total + weights.scarcity * open_to_all * (instance.requests[:, :, None] / room).max(axis=1)
    if weights.avoid_named and selective:
        total = total + weights.avoid_named * _named(instance, columns)
    if weights.opportunity_cost and state.has_price and state.typical.any():
        total = total + _opportunity_cost(instance, columns, spare)
    return total


def _named(instance: Instance, columns: Indices) -> Floats:
    """Return how strongly other components' selectors claim each node, 0 for a component that names it itself.

    A node with a usage threshold keeps room for them by itself and needs no avoiding.
    """
    score = instance.state.named_score[columns]
    guarded = instance.infrastructure.threshold[columns] < 1
    masks = instance.application.named
    if masks is None:
        return np.where(guarded, 0.0, np.minimum(score, 1.0))
    mine = masks.masks[:, columns][masks.group]
    selective = masks.masks.sum(axis=1) <= instance.state.selective
    claims = mine[selective[masks.group]].any(axis=0)
    return np.where(mine | guarded, 0.0, np.minimum(score + claims, 1.0))


def _opportunity_cost(instance: Instance, columns: Indices, spare: Floats) -> Floats:
    """Return what a component takes from cheap nodes, at the value of that room to the applications to come.

    The marginal node is the dearest that the next `Weights.lookahead` applications need if nodes fill in price order. A
    node cheaper than that is worth the difference per typical component, charged on the resource it runs out of first.
    So memory-hungry components leave nodes alone whose memory is dear or scarce.
    """
    weights, typical = instance.weights, instance.state.typical
    price = instance.infrastructure.price[columns]
    known = np.flatnonzero(typical > 0)
    each = price @ typical
    rooms = spare[known] / typical[known][:, None]
    scarce = rooms.argmin(axis=0)
    room = rooms.min(axis=0)
    order = each.argsort(kind="stable")
    at = int(room[order].cumsum().searchsorted(weights.lookahead * instance.components))
    marginal = each[order[min(at, len(order) - 1)]]
    worth = (weights.opportunity_cost * weights.price) * np.maximum(marginal - each, 0.0)
    share = instance.requests[:, known] / typical[known]
    charge: Floats = share[:, scarce] * worth
    return charge


class Waste:
    """Charge for leftovers that no known component fits: their price times `Weights.waste`."""

    def __init__(self, instance: Instance, columns: Indices) -> None:
        """Take prices of the nodes and the smallest requests seen so far."""
        smallest = instance.state.smallest
        self.smallest: Floats = (np.where(np.isfinite(smallest), smallest, 0.0) * (1 - 1e-9))[:, None]
        self._least: list[float] = self.smallest[:, 0].tolist()
        self.value: Floats = np.ascontiguousarray(instance.infrastructure.price[columns].T) * instance.weights.waste

    @staticmethod
    def wanted(instance: Instance) -> bool:
        """Return whether the charge can be anything but 0."""
        return (
            bool(instance.weights.waste)
            and instance.state.has_price
            and bool(np.isfinite(instance.state.smallest).any())
        )

    def everywhere(self, rest: Floats) -> Floats:
        """Return the charge float64[..., K] for leftovers float64[R, ..., K] of all nodes."""
        small, value = (self.smallest, self.value) if rest.ndim == 2 else (self.smallest[:, None], self.value[:, None])
        charge: Floats = np.add.reduce((rest < small) * rest * value, axis=0)
        return charge

    def at(self, rest: Floats, columns: Indices) -> Floats:
        """Return the charge float64[M] for leftovers float64[R, M], the m-th on the m-th of `columns`."""
        charge: Floats = np.add.reduce((rest < self.smallest) * rest * self.value[:, columns], axis=0)
        return charge

    def on(self, rest: list[float], column: int) -> float:
        """Return the charge for the leftovers (R amounts) of one node."""
        value = self.value[:, column].tolist()
        charge = 0.0
        for amount, worth, least in zip(rest, value, self._least, strict=True):
            if amount < least:
                charge += amount * worth
        return charge


class Balance:
    """Charge for the typical components a node can no longer take: `Weights.balance` times their mean price.

    A component that asks for the resource a node has most of costs nothing, one that asks for the scarcer one does.
    """

    def __init__(self, instance: Instance, columns: Indices) -> None:
        """Take the typical component seen so far."""
        typical = instance.state.typical
        self.share: Floats = np.divide(1.0, typical, where=typical > 0, out=np.zeros_like(typical))
        self.known: Indices = np.flatnonzero(typical > 0)
        price = instance.infrastructure.price[columns].mean(axis=0)
        self.cost = instance.weights.balance * float(typical @ price)

    @staticmethod
    def wanted(instance: Instance, spare: Floats) -> bool:
        """Return whether the charge can tell nodes apart: not all of them run out of the same resource first."""
        state = instance.state
        if not instance.weights.balance or not state.has_price:
            return False
        known = np.flatnonzero(state.typical > 0)
        if known.size < 2:
            return False
        scarce = (spare[known] / state.typical[known][:, None]).argmin(axis=0)
        return bool((scarce != scarce[0]).any())

    def worth(self, rest: Floats) -> Floats:
        """Return the value of leftovers float64[R, ...]: how many typical components they hold, priced."""
        share = self.share[self.known].reshape(-1, *([1] * (rest.ndim - 1)))
        value: Floats = self.cost * (rest[self.known] * share).min(axis=0)
        return value
