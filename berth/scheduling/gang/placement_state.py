"""Budgets and marginal costs over all nodes while units are placed one after another.

The placement knows nothing of strategies: it answers which nodes can take a unit now, what the unit would add to the
objective on each, and keeps the books when a unit is placed or taken back. Every array runs over all N nodes; the
default strategy has its own, narrower books.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from berth.network.peers import bandwidth_cost, beyond_limits, cost_towards, over_links, short_of_bandwidth
from berth.scheduling.framework import reasons

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berth.scheduling.gang.instance import Bools, Floats, Indices, Instance

__all__ = ["FILTERS", "SLACK", "PlacementState"]

FILTERS = "Filters"
"""Plugin name of what `Application.allowed` rules out; the filters that made the masks know the reasons."""

SLACK = 1e-12
"""Relative tolerance of budget comparisons: absorbs rounding, stays below one byte of a terabyte."""


class PlacementState:
    """Books of one planning call over all nodes."""

    def __init__(self, instance: Instance) -> None:
        """Open the books with the free amounts of the instance's state."""
        state, infrastructure = instance.state, instance.infrastructure
        self.instance = instance
        self.free: Floats = state.free.copy(order="F")
        """float64[N, R], free amounts after what was placed."""
        self.bandwidth: Floats = state.bandwidth_free.copy()
        """float64[N], free bandwidth after what was placed."""
        self.link: Floats = state.link_free.copy()
        self.nodes: Indices = np.full(instance.units, -1, dtype=np.intp)
        """int[U], node of each unit or -1."""
        self._where = np.concatenate([self.nodes, instance.fixed_nodes.astype(np.intp)])
        self._slack = SLACK * np.abs(infrastructure.capacity)
        with np.errstate(invalid="ignore"):
            self._bandwidth_slack = np.nan_to_num(SLACK * infrastructure.bandwidth_capacity, posinf=0.0)

    def _neighbours(self, unit: int) -> Indices:
        """Return the placed units (fixed ones included) that `unit` has an edge with."""
        placed: Indices = np.flatnonzero(self.instance.linked[unit] & (self._where >= 0))
        return placed

    def rejections(self, unit: int) -> list[tuple[str, str, Bools]]:
        """Return plugin, reason and bool[N] of the nodes it rejects for `unit` now, rule by rule.

        A node may stand in several rules.
        """
        instance = self.instance
        infrastructure, state = instance.infrastructure, instance.state
        request, named = instance.requests[unit], instance.named(unit)
        found: list[tuple[str, str, Bools]] = []
        allowed = instance.allowed(unit)
        if allowed is not None:
            found.append((FILTERS, "", ~allowed))
        for r, resource in enumerate(infrastructure.resources):
            if request[r] <= 0:
                continue
            spare = self.free[:, r] + self._slack[:, r]
            found.append((reasons.NODE_RESOURCES_FIT, reasons.insufficient(resource), request[r] > spare))
            if state.has_thresholds:
                beyond = request[r] > spare - state.reserve[:, r]
                beyond = beyond if named is None else beyond & ~named
                found.append((reasons.USAGE_THRESHOLD, reasons.FILLED_TO_THRESHOLD, beyond))
            if state.has_max_unit:
                larger = instance.largest(unit)[r] > infrastructure.max_unit[:, r]
                found.append((reasons.MAX_UNIT, reasons.POD_TOO_LARGE, larger))
        found.extend(self._edge_rejections(unit, named))
        return found

    def _edge_rejections(self, unit: int, named: Bools | None) -> Iterator[tuple[str, str, Bools]]:
        """Yield what rejects nodes because of units that are placed already."""
        instance = self.instance
        infrastructure, state = instance.infrastructure, instance.state
        where, distance = infrastructure.location, infrastructure.location_cost
        if instance.apart is not None:
            shared = np.zeros(infrastructure.size, dtype=np.bool_)
            shared[self._where[instance.apart[unit] & (self._where >= 0)]] = True
            yield reasons.NODE_PORTS, reasons.PORTS_TAKEN, shared
        peers = self._neighbours(unit)
        if not peers.size:
            return
        homes, demand = self._where[peers], instance.traffic[unit, peers]
        if instance.limit is not None:
            outward, inward = instance.limit[unit, peers], instance.limit[peers, unit]
            far = beyond_limits(homes, outward, inward, location=where, location_cost=distance)
            yield reasons.NETWORK_OVERHEAD, reasons.MAX_NETWORK_COST_EXCEEDED, far
        if not demand.any():
            return
        spare = self.bandwidth + self._bandwidth_slack
        guarded = spare - state.bandwidth_reserve
        open_to_unit = guarded if named is None else np.where(named, spare, guarded)
        short = short_of_bandwidth(homes, demand, free=open_to_unit, peers_free=guarded)
        yield reasons.BANDWIDTH, reasons.TOO_LITTLE_BANDWIDTH, short
        links = infrastructure.links
        if links is not None:
            free = self.link + SLACK * links.capacity
            over = over_links(homes, demand, path=partial(links.path, location=where), free=free, among=~short)
            yield reasons.BANDWIDTH, reasons.TOO_LITTLE_BANDWIDTH, over

    def feasible(self, unit: int) -> Bools:
        """Return bool[N], the nodes that can take `unit` now."""
        feasible = np.ones(self.instance.infrastructure.size, dtype=np.bool_)
        for _, _, rejected in self.rejections(unit):
            feasible &= ~rejected
        return feasible

    def terms(self, unit: int) -> dict[str, Floats]:
        """Return float64[N] by objective term: what `unit` would add on each node, given what is placed.

        Terms that are 0 everywhere are left out.
        """
        instance, infrastructure = self.instance, self.instance.infrastructure
        weights, peers = instance.weights, self._neighbours(unit)
        homes = self._where[peers]
        terms: dict[str, Floats] = {}
        if instance.has_network:
            terms["network"] = weights.network * cost_towards(
                homes,
                instance.weight[unit, peers],
                instance.weight[peers, unit],
                location=infrastructure.location,
                location_cost=infrastructure.location_cost,
            )
        if instance.has_price:
            terms["price"] = weights.price * (infrastructure.price @ instance.requests[unit])
        if instance.has_bandwidth_price:
            demand = instance.traffic[unit, peers]
            terms["bandwidth"] = weights.bandwidth * bandwidth_cost(homes, demand, price=infrastructure.bandwidth_price)
        return terms

    def marginal(self, unit: int) -> Floats:
        """Return float64[N], the sum of `terms`."""
        return sum(self.terms(unit).values(), np.zeros(self.instance.infrastructure.size))

    def place(self, unit: int, node: int) -> None:
        """Put `unit` on `node` and take what it needs."""
        self._book(unit, node, -1.0)
        self.nodes[unit] = self._where[unit] = node

    def remove(self, unit: int) -> None:
        """Take `unit` back from its node."""
        node = int(self.nodes[unit])
        self.nodes[unit] = self._where[unit] = -1
        self._book(unit, node, 1.0)

    def _book(self, unit: int, node: int, sign: float) -> None:
        instance = self.instance
        links, location = instance.infrastructure.links, instance.infrastructure.location
        self.free[node] += sign * instance.requests[unit]
        for neighbour in self._neighbours(unit).tolist():
            home, amount = int(self._where[neighbour]), float(instance.traffic[unit, neighbour])
            if home == node or amount == 0:
                continue
            self.bandwidth[node] += sign * amount
            self.bandwidth[home] += sign * amount
            if links is not None:
                self.link[list(links.path(node, home, location))] += sign * amount
