"""The network term: what the calls between workloads cost, by how the callee's Service routes them.

Callers and endpoints enter as counts by column and by location, so an edge costs one evaluation per pair of locations
whatever the number of replicas. All callers of one target add up to one distribution (`q`), each caller workload
with sum 1; what a caller would pay on each column is kept per target (`reach`) until the endpoints move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

from berth.network.routing import Routing
from berth.scheduling.replicas.model import Model, Target
from berth.scheduling.replicas.problem import Floats

MANY = 100
"""Locations from which on it pays to look for those where somebody is."""
AT_ONCE = 50_000
"""Figures by column that are worked out at once, of several targets."""


class Network:
    """Calls of all workloads, kept up to date with their counts."""

    def __init__(self, model: Model, counts: Floats, total: list[float]) -> None:
        """Share the counts with the books: float64[W, K + L + S] and replicas per workload."""
        self._model, self._counts, self._total = model, counts, total
        self._x, self._by_location, _ = model.split(counts)
        self._location = model.location
        count = len(model.targets)
        self.shares: Floats = np.zeros_like(counts)
        """float64[W, K + L + S], the counts as shares of all replicas"""
        self.share: Floats = model.split(self.shares)[0]
        """float64[W, K], those by column"""
        self._callers: Floats = np.zeros((count, counts.shape[1]))
        self._q, self._by_place, _ = model.split(self._callers)
        self._reach: Floats = np.zeros((count, model.size))
        self._known = [False] * count
        self._calls = [np.array(targets, dtype=np.intp) for targets in model.calls]
        alike: dict[object, int] = {}
        self._alike = [
            alike.setdefault((target.routing, id(target.spread_cost), id(target.near_cost)), len(alike))
            for target in model.targets
        ]
        """a number per target, the same for those with the same costs and routing"""
        diagonals = {
            id(cost): cost.diagonal()[self._location] for cost in (target.spread_cost for target in model.targets)
        }
        self._spread_diagonal = [diagonals[id(target.spread_cost)] for target in model.targets]
        """float64[K] per target, shared by those with the same costs"""

    def sync(self, workload: int) -> Floats:
        """Take over a workload's changed counts; returns the change of its shares, float64[K + L + S]."""
        share = self._counts[workload] / (self._total[workload] or 1.0)
        change: Floats = share - self.shares[workload]
        self.shares[workload] = share
        for target in self._model.calls[workload]:
            self._callers[target] += change
        for target in self._model.called[workload]:
            self._known[target] = False
        return change

    def reach(self, number: int) -> Floats:
        """float64[K], what a caller of this target pays on each column."""
        if not self._known[number]:
            self._find_out((number,))
        reach: Floats = self._reach[number]
        return reach

    def _find_out(self, numbers: Iterable[int]) -> None:
        """Work out what is not known of these targets, at once for those that are alike."""
        unknown: dict[int, list[int]] = {}
        for number in numbers:
            if not self._known[number]:
                self._known[number] = True
                if self._total[self._model.targets[number].callee]:
                    unknown.setdefault(self._alike[number], []).append(number)
                else:
                    self._reach[number] = 0.0
        most = max(1, AT_ONCE // max(1, self._model.size))
        for alike in unknown.values():
            for first in range(0, len(alike), most):
                self._pay(alike[first : first + most])

    def _pay(self, alike: list[int]) -> None:
        """Work out what callers of some targets pay, all of one routing and the same costs."""
        model, first = self._model, self._model.targets[alike[0]]
        if len(alike) == 1:
            self._reach[alike[0]] = self.reached(first)
            return
        ends = [model.targets[number].callee for number in alike]
        total = np.array([[self._total[end]] for end in ends])
        self._reach[alike] = paid(model, first, self._x[ends], self._by_location[ends], total)

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
                self._find_out(calls)
                break
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

    def value(self, targets: Collection[int]) -> float:
        """What all calls to these targets cost."""
        self._find_out(targets)
        return float(sum(self._q[number] @ self._reach[number] for number in targets))


def paid(model: Model, target: Target, x: Floats, here: Floats, total: float | Floats) -> Floats:
    """What a caller pays on each column for the endpoints that it reaches there.

    Args:
        model: locations and what dropped calls cost.
        target: the callee as the caller sees it.
        x: float64[..., K], its endpoints by column.
        here: float64[..., L], by location.
        total: how many there are, at least one; or float64[..., 1].

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
            cost = mean.take(place, axis=-1) - own.take(place, axis=-1) * x
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
    if len(cost) < MANY:
        return amounts @ cost.T
    some = np.flatnonzero(amounts.reshape(-1, len(cost)).any(axis=0))
    total: Floats = amounts[..., some] @ cost[:, some].T
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
    inside, fresh = model.within(cost, here), model.within(cost.T, place)
    # Where nothing serves there is nothing inside, and no pair on one node.
    each = model.gathered(place * inside - near * together) / np.maximum(kept, 1.0)
    already, more = float(each.sum()), count + 1
    level = (fresh - model.by_location(each)) / more
    level += already
    less = (inside + near if on_node else near) / more
    outside = place * ~served
    if not outside.any():
        return already, level, less
    spilled = carried(cost.T, outside)
    beyond = float(spilled @ here)
    # A zone of which all calls leave keeps them once it has an endpoint.
    leaving = model.by_location(model.gathered(outside * carried(cost, here)))
    level += (beyond + spilled - (leaving + fresh) * ~served) / step
    return already + beyond / total if total else 0.0, level, less
