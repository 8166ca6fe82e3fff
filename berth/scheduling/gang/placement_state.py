"""Budgets and marginal costs over all nodes while units are placed one after another.

The placement knows nothing of strategies: it answers which nodes can take a unit now, what the unit would add to the
objective on each, and keeps the books when a unit is placed or taken back. Every array runs over all N nodes; the
default strategy has its own, narrower books.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from berth.scheduling.gang.instance import Bools, Floats, Indices, Instance

__all__ = ["SLACK", "PlacementState"]

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

    def rejections(self, unit: int) -> list[tuple[str, Bools]]:
        """Return, rule by rule, the nodes that reject `unit` now; a node may stand in several rules."""
        instance = self.instance
        infrastructure, state = instance.infrastructure, instance.state
        request, named = instance.requests[unit], instance.named(unit)
        found: list[tuple[str, Bools]] = []
        allowed = instance.allowed(unit)
        if allowed is not None:
            found.append(("not allowed by the pod's rules", ~allowed))
        largest = instance.largest(unit)
        for r, resource in enumerate(infrastructure.resources):
            if request[r] <= 0:
                continue
            spare = self.free[:, r] + self._slack[:, r]
            lacking = request[r] > spare
            found.append((f"insufficient {resource}", lacking))
            if state.has_thresholds:
                beyond = request[r] > spare - state.reserve[:, r]
                found.append((f"usage threshold of {resource}", beyond if named is None else beyond & ~named))
            found.append(
                (f"larger than the node's largest unit of {resource}", largest[r] > infrastructure.max_unit[:, r])
            )
        found.extend(self._edge_rejections(unit, named))
        return found

    def _edge_rejections(self, unit: int, named: Bools | None) -> list[tuple[str, Bools]]:
        """Return what rejects nodes because of units that are placed already."""
        instance = self.instance
        infrastructure, state = instance.infrastructure, instance.state
        found: list[tuple[str, Bools]] = []
        count = infrastructure.size
        if instance.apart is not None:
            shared = np.zeros(count, dtype=np.bool_)
            shared[self._where[instance.apart[unit] & (self._where >= 0)]] = True
            found.append(("holds a component it must be separate from", shared))
        neighbours = self._neighbours(unit)
        if not neighbours.size:
            return found
        homes, demand = self._where[neighbours], instance.traffic[unit, neighbours]
        if instance.limit is not None:
            far = np.zeros(count, dtype=np.bool_)
            for neighbour, home in zip(neighbours.tolist(), homes.tolist(), strict=True):
                for limit, cost in (
                    (instance.limit[unit, neighbour], infrastructure.location_cost[:, infrastructure.location[home]]),
                    (instance.limit[neighbour, unit], infrastructure.location_cost[infrastructure.location[home], :]),
                ):
                    if np.isfinite(limit):
                        violated = cost[infrastructure.location] > limit
                        violated[home] = False
                        far |= violated
            found.append(("network cost above maxNetworkCost", far))
        if not demand.any():
            return found
        received = np.bincount(homes, weights=demand, minlength=count)
        need = demand.sum() - received
        reserve = state.bandwidth_reserve if named is None else np.where(named, 0.0, state.bandwidth_reserve)
        spare = self.bandwidth + self._bandwidth_slack
        short = (need > spare - reserve) & (need > 0)
        # A neighbour's node must carry its end too, unless the unit joins it there.
        full = np.flatnonzero((received > spare - state.bandwidth_reserve) & (received > 0))
        if full.size:
            only = np.ones(count, dtype=np.bool_)
            if full.size == 1:
                only[full] = False
            short = short | only
        found.append(("insufficient bandwidth", short))
        links = infrastructure.links
        if links is not None:
            found.append(("insufficient bandwidth on a shared link", self._link_rejections(homes, demand)))
        return found

    def _link_rejections(self, homes: Indices, demand: Floats) -> Bools:
        links = self.instance.infrastructure.links
        assert links is not None  # noqa: S101
        location = self.instance.infrastructure.location
        rejected = np.zeros(self.instance.infrastructure.size, dtype=np.bool_)
        ends = [(home, amount) for home, amount in zip(homes.tolist(), demand.tolist(), strict=True) if amount > 0]
        for node in range(rejected.size):
            use: dict[int, float] = {}
            for home, amount in ends:
                for link in links.path(node, home, location):
                    use[link] = use.get(link, 0.0) + amount
            rejected[node] = any(
                amount > self.link[link] + SLACK * links.capacity[link] for link, amount in use.items()
            )
        return rejected

    def feasible(self, unit: int) -> Bools:
        """Return bool[N], the nodes that can take `unit` now."""
        feasible = np.ones(self.instance.infrastructure.size, dtype=np.bool_)
        for _, rejected in self.rejections(unit):
            feasible &= ~rejected
        return feasible

    def terms(self, unit: int) -> dict[str, Floats]:
        """Return float64[N] by objective term: what `unit` would add on each node, given what is placed."""
        instance, infrastructure = self.instance, self.instance.infrastructure
        weights, tariff, where = instance.weights, infrastructure.bandwidth_price, infrastructure.location
        network, bandwidth = np.zeros(infrastructure.size), np.zeros(infrastructure.size)
        for neighbour in self._neighbours(unit).tolist():
            home = int(self._where[neighbour])
            outward, inward = instance.weight[unit, neighbour], instance.weight[neighbour, unit]
            distance = outward * infrastructure.location_cost[:, where[home]]
            distance = distance + inward * infrastructure.location_cost[where[home], :]
            extra, money = distance[where], instance.traffic[unit, neighbour] * (tariff + tariff[home])
            extra[home] = money[home] = 0.0
            network += extra
            bandwidth += money
        return {
            "network": weights.network * network,
            "price": weights.price * (infrastructure.price @ instance.requests[unit]),
            "bandwidth": weights.bandwidth * bandwidth,
        }

    def marginal(self, unit: int) -> Floats:
        """Return float64[N], the sum of `terms`."""
        terms = self.terms(unit)
        total: Floats = terms["network"] + terms["price"] + terms["bandwidth"]
        return total

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
