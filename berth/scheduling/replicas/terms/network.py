"""The network term: what the calls between workloads cost, by how the callee's Service routes them.

Callers and endpoints enter as counts by column and by location, so an edge costs one evaluation per pair of locations
whatever the number of replicas. All callers of one target add up to one distribution (`q`), each caller workload
with sum 1; what a caller would pay on each column is kept per target (`reach`) until the endpoints move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from berth.network.routing import Routing
from berth.scheduling.replicas.model import Model, Target
from berth.scheduling.replicas.problem import Floats

MANY = 100
"""Locations from which on it pays to look for those where somebody is."""


class Network:
    """Calls of all workloads, kept up to date with their counts."""

    def __init__(self, model: Model, x: Floats, by_location: Floats, total: list[float]) -> None:
        """Share the counts with the books: float64[W, K], float64[W, L] and replicas per workload."""
        self._model, self._x, self._by_location, self._total = model, x, by_location, total
        self._location = model.location
        count = len(model.targets)
        self.share: Floats = np.zeros_like(x)
        """float64[W, K], replicas by column as shares of all"""
        self.location_share: Floats = np.zeros_like(by_location)
        """float64[W, L], likewise by location"""
        self._q: Floats = np.zeros((count, model.size))
        self._by_place: Floats = np.zeros((count, model.locations))
        self._reach: Floats = np.zeros((count, model.size))
        self._known = [False] * count
        self._calls = [np.array(targets, dtype=np.intp) for targets in model.calls]
        diagonals = {
            id(cost): cost.diagonal()[self._location] for cost in (target.spread_cost for target in model.targets)
        }
        self._spread_diagonal = [diagonals[id(target.spread_cost)] for target in model.targets]
        """float64[K] per target, shared by those with the same costs"""

    def sync(self, workload: int) -> Floats:
        """Take over a workload's changed counts; returns the change of its shares by column."""
        total = self._total[workload] or 1.0
        share, by_location = self._x[workload] / total, self._by_location[workload] / total
        change: Floats = share - self.share[workload]
        location_change = by_location - self.location_share[workload]
        self.share[workload], self.location_share[workload] = share, by_location
        calls = self._model.calls[workload]
        for target in calls:
            self._q[target] += change
            self._by_place[target] += location_change
        for target in self._model.called[workload]:
            self._known[target] = False
        return change

    def reach(self, number: int) -> Floats:
        """float64[K], what a caller of this target pays on each column."""
        if not self._known[number]:
            self._reach[number] = self.reached(self._model.targets[number])
            self._known[number] = True
        reach: Floats = self._reach[number]
        return reach

    def callers(self, number: int) -> Floats:
        """float64[K], all callers of a target, each workload with sum 1."""
        callers: Floats = self._q[number]
        return callers

    def reached(self, target: Target) -> Floats:
        """float64[K], what a caller pays on each column for the endpoints that it reaches there."""
        total = self._total[target.callee]
        if not total:
            return np.zeros(self._model.size)
        return paid(self._model, target, self._x[target.callee], self._by_location[target.callee], total)

    def add(self, workload: int) -> Floats | float:
        """float64[K], exact change of the term for one more replica of the workload on each column.

        The workload's own counts may differ from what `sync` last saw, those of others may not.
        """
        model, total = self._model, self._total[workload]
        calls, called = model.calls[workload], model.called[workload]
        if not calls and not called:
            return 0.0
        for number in calls:
            if not self._known[number]:
                self.reach(number)
        paid: Floats
        if len(calls) == 1:
            paid = self._reach[calls[0]].copy()
        elif calls:
            paid = np.add.reduce(self._reach[self._calls[workload]], axis=0)
        else:
            paid = np.zeros(model.size)
        routed: Floats | None = None
        for number in called:
            target = model.targets[number]
            place = self._by_place[number]
            paid += carried(target.spread_cost.T, place).take(self._location)
            paid -= self._spread_diagonal[number] * self._q[number]
            if target.near_cost is not None:
                change = self._endpoint(number, target)
                routed = change if routed is None else routed + change
        if total:
            paid -= (self._x[workload] @ paid) / total
            paid /= total + 1
        if routed is not None:
            paid += routed
        return paid

    def _endpoint(self, number: int, target: Target) -> Floats:
        """Change of what the Service's routing costs its callers for one more endpoint on each column."""
        model, cost = self._model, target.near_cost
        if cost is None:
            raise TypeError("target without routing of its own")
        total = self._total[target.callee]
        x, here = self._x[target.callee], self._by_location[target.callee]
        q: Floats = self._q[number]
        place: Floats = self._by_place[number]
        if target.routing is Routing.LOCAL:
            alone = q * (x == 0)
            lost: Floats = -model.lost * alone if total else model.lost * (q.sum() - q)
            return lost
        on_node = target.routing is Routing.SAME_NODE
        if on_node:
            q = q * (x == 0)
            place = model.located(q)
            together: Floats = np.zeros(model.locations)
        else:
            together = model.located(q * x)
        calls = _Calls(total, here, place, together, cost, on_node)
        kept = model.gathered(here)
        if model.all_zoned:
            now, level, slope = _kept_in_zones(model, calls, kept)
        else:
            # One endpoint without a zone makes kube-proxy ignore the zones of all others.
            now, level, slope = _everywhere(calls)
            if not kept[~model.zoned].any():
                named = model.by_location(model.zoned)
                now, inside, less = _kept_in_zones(model, calls, kept)
                level, slope = np.where(named, inside, level), np.where(named, less, slope)
        change: Floats = (level - now).take(self._location)
        change -= slope.take(self._location) * q
        return change

    def edge_value(self, caller: int, number: int) -> float:
        """What a workload's calls to one target cost."""
        return float(self.share[caller] @ self.reach(number))

    def target_value(self, number: int) -> float:
        """What all calls to one target cost."""
        return float(self._q[number] @ self.reach(number))


def paid(model: Model, target: Target, x: Floats, here: Floats, total: float) -> Floats:
    """What a caller pays on each column for the endpoints that it reaches there.

    Args:
        model: locations and what dropped calls cost.
        target: the callee as the caller sees it.
        x: float64[..., K], its endpoints by column.
        here: float64[..., L], by location.
        total: how many there are, at least one.

    Returns:
        float64[..., K].
    """
    place = model.location
    mean = carried(target.spread_cost, here)
    mean /= total
    own = target.spread_cost.diagonal() / total
    cost: Floats
    if target.near_cost is not None and target.routing is not Routing.LOCAL:
        kept = model.gathered(here)
        served = model.by_location(model.served(kept))
        reached = np.where(served, model.by_location(kept), total)
        diagonal = target.near_cost.diagonal()
        near = np.where(served, model.within(target.near_cost, here), carried(target.near_cost, here)) / reached
        if target.routing is Routing.SAME_NODE:
            cost = mean.take(place, axis=-1) - own.take(place) * x
            cost += near.take(place, axis=-1) * (x == 0)
            return cost
        mean += near
        own = own + diagonal / reached
    cost = mean.take(place, axis=-1) - own.take(place, axis=-1) * x
    if target.routing is Routing.LOCAL:
        cost += model.lost * (x == 0)
    return cost


def carried(cost: Floats, amounts: Floats) -> Floats:
    """float64[..., L]: what it costs from each location to these amounts, float64[..., L]; few of many have any."""
    if amounts.ndim > 1 or len(amounts) < MANY:
        return amounts @ cost.T
    some = amounts.nonzero()[0]
    total: Floats = cost[:, some] @ amounts[some]
    return total


class _Calls(NamedTuple):
    """Callers and endpoints of one target, by location; callers that are served on their node are left out."""

    total: float
    """endpoints"""
    here: Floats
    """float64[L], endpoints"""
    place: Floats
    """float64[L], callers"""
    together: Floats
    """float64[L], pairs of callers and endpoints on one node"""
    cost: Floats
    """float64[L, L]"""
    on_node: bool
    """whether callers are served on their node if they can"""


Change = tuple[float, Floats, Floats]
"""What calls cost now; what with one more endpoint in each location; how much less per caller on its node."""


def _everywhere(calls: _Calls) -> Change:
    """Calls go to all endpoints, and to the new one."""
    total, here, place, together, cost, on_node = calls
    near, towards = cost.diagonal(), carried(cost.T, place)
    all_calls = float(towards @ here - near @ together)
    less = carried(cost, here) + near if on_node else near
    return all_calls / total if total else 0.0, (all_calls + towards) / (total + 1), less / (total + 1)


def _kept_in_zones(model: Model, calls: _Calls, kept: Floats) -> Change:
    """Calls stay in zones with endpoints, float64[S], also if the new one is the first there."""
    total, here, place, together, cost, on_node = calls
    near, step, count = cost.diagonal(), total + 1, model.by_location(kept)
    served = count > 0
    outside, inside, fresh = carried(cost, here), model.within(cost, here), model.within(cost.T, place)
    # Where nothing serves there is nothing inside, and no pair on one node.
    each = model.gathered(place * inside - near * together) / np.maximum(kept, 1.0)
    spilled = carried(cost.T, np.where(served, 0.0, place))
    already, beyond = float(each.sum()), float(spilled @ here)
    more = count + 1
    joining = (fresh - model.by_location(each)) / more
    opening = fresh - (model.by_location(model.gathered(place * outside)) + fresh) / step
    level = already + (beyond + spilled) / step + np.where(served, joining, opening)
    less = (inside + near if on_node else near) / more
    return already + beyond / total if total else 0.0, level, less
