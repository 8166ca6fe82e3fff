"""The network term: what the calls between workloads cost, by how the callee's Service routes them.

Callers and endpoints enter as counts by column and by location, so an edge costs one evaluation per pair of locations
whatever the number of replicas. All callers of one target add up to one distribution (`q`), each caller workload
with sum 1; what a caller would pay on each column is kept per target (`reach`) until the endpoints move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from berth.network.routing import Routing
from berth.scheduling.replicas.model import Model, Target
from berth.scheduling.replicas.problem import Floats


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
        self._spread_diagonal = [target.spread_cost.diagonal()[self._location] for target in model.targets]

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
            paid += (place @ target.spread_cost).take(self._location)
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
        model, cost, kept_cost = self._model, target.near_cost, target.kept_cost
        if cost is None or kept_cost is None:
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
            place = q @ model.incidence
            together: Floats = np.zeros(model.locations)
        else:
            together = (q * x) @ model.incidence
        kept = model.gathered(here)
        served = model.served(kept)[model.service_of]
        zoned = [model.zone_list[zone] for zone in model.service_list]
        outside, inside = cost @ here, kept_cost @ here
        known = _Locations(
            total,
            here.tolist(),
            together.tolist(),
            outside.tolist(),
            inside.tolist(),
            cost.diagonal().tolist(),
            (place @ kept_cost).tolist(),
            model.service_list,
            kept.tolist(),
            model.gathered(place * inside - cost.diagonal() * together).tolist(),
            model.gathered(place * outside).tolist(),
            on_node,
        )
        towards = (np.where(served, 0.0, place) @ cost).tolist()
        if all(zoned):
            now, level, slope = _per_location(known, towards, zoned)
        else:
            # One endpoint without a zone makes kube-proxy ignore the zones of all others.
            nowhere = [False] * model.locations
            blind, far, far_slope = _per_location(known, (place @ cost).tolist(), nowhere)
            now, level, slope = blind, far, far_slope
            if not (kept[~model.zoned] > 0).any():
                now, level, slope = _per_location(known, towards, zoned)
                level = [a if z else b for a, b, z in zip(level, far, zoned, strict=True)]
                slope = [a if z else b for a, b, z in zip(slope, far_slope, zoned, strict=True)]
        change: Floats = (np.array(level) - now).take(self._location) - np.array(slope).take(self._location) * q
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
    mean = here @ target.spread_cost.T
    mean /= total
    own = target.spread_cost.diagonal() / total
    cost: Floats
    if target.near_cost is not None and target.kept_cost is not None and target.routing is not Routing.LOCAL:
        kept = model.gathered(here)
        served = model.served(kept)[..., model.service_of]
        reached = np.where(served, kept[..., model.service_of], total)
        diagonal = target.near_cost.diagonal()
        near = np.where(served, here @ target.kept_cost.T, here @ target.near_cost.T) / reached
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


@dataclass(frozen=True, slots=True)
class _Locations:
    """Endpoints and callers of one target by location and by service zone, in plain numbers.

    There are few locations, and an array operation costs as much as a loop over them. Callers that are served on their
    node are left out.
    """

    total: float
    """endpoints"""
    here: list[float]
    """endpoints by location"""
    together: list[float]
    """pairs of callers and endpoints on one node, by location"""
    outside: list[float]
    """sum of the cost from each location to all endpoints"""
    inside: list[float]
    """sum of the cost from each location to the endpoints of its zone"""
    near: list[float]
    """cost between two nodes of each location"""
    fresh: list[float]
    """cost from all callers of its zone to one endpoint in each location"""
    zone: list[int]
    """service zone of each location"""
    kept: list[float]
    """endpoints by service zone"""
    paid: list[float]
    """cost from all callers of each service zone to all its endpoints"""
    spilled: list[float]
    """cost from all callers of each service zone to all endpoints"""
    on_node: bool
    """whether callers are served on their node if they can"""


def _per_location(known: _Locations, towards: list[float], zoned: list[bool]) -> tuple[float, list[float], list[float]]:
    """What calls cost now, with one more endpoint in each location, and how much less per caller on its node.

    Args:
        known: endpoints and callers.
        towards: cost from all callers that are not served near them, by location of the endpoint.
        zoned: locations that keep calls.
    """
    near, carried, total, step = 0.0, 0.0, known.total, known.total + 1
    served = {zone: known.kept[zone] for zone, keeps in zip(known.zone, zoned, strict=True) if keeps}
    for zone, count in served.items():
        if count:
            near += known.paid[zone] / count
    for z, count in enumerate(known.here):
        if count and not zoned[z]:
            carried -= known.near[z] * known.together[z]
        carried += towards[z] * count
    now = near + carried / total if total else 0.0
    level, slope = [], []
    for z, zone in enumerate(known.zone):
        value, less = near + (carried + towards[z]) / step, known.near[z]
        if not zoned[z]:
            less = (known.outside[z] + less) / step if known.on_node else less / step
        elif count := served[zone]:
            value += (known.paid[zone] + known.fresh[z]) / (count + 1) - known.paid[zone] / count
            less = (known.inside[z] + less if known.on_node else less) / (count + 1)
        else:
            value += known.fresh[z] - (known.spilled[zone] + known.fresh[z]) / step
        level.append(value)
        slope.append(less)
    return now, level, slope
