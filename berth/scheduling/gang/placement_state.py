"""The placement state: budgets and marginal costs over all nodes while components are placed one after another.

It knows nothing of strategies. It answers which nodes can take a component now and what the component would add to the
objective on each, and follows when one is placed or taken back. Every array runs over all N nodes; the default strategy
has a narrower `SearchState`.
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

FILTERS = "Filters"
"""Plugin name of what `Application.allowed` rules out; the filters that made the masks know the reasons."""


class PlacementState:
    """Budgets of all nodes during one planning call."""

    def __init__(self, instance: Instance) -> None:
        """Start with the free amounts of the instance's state."""
        state, infrastructure = instance.state, instance.infrastructure
        self.instance = instance
        self.free: Floats = state.free.copy(order="F")
        """float64[N, R], free amounts after what was placed."""
        self.bandwidth: Floats = state.bandwidth_free.copy()
        """float64[N], free bandwidth after what was placed."""
        self.link: Floats = state.link_free.copy()
        self.nodes: Indices = np.full(instance.components, -1, dtype=np.intp)
        """int[J], node of each component or -1."""
        self._where = np.concatenate([self.nodes, instance.peer_nodes.astype(np.intp)])
        self._slack = instance.slack * np.abs(infrastructure.capacity)
        with np.errstate(invalid="ignore"):
            self._bandwidth_slack = np.nan_to_num(instance.slack * infrastructure.bandwidth_capacity, posinf=0.0)

    def _peers(self, component: int) -> Indices:
        """Return the rows of the instance that `component` has an edge with and that are placed."""
        placed: Indices = np.flatnonzero(self.instance.linked[component] & (self._where >= 0))
        return placed

    def rejections(self, component: int) -> list[tuple[str, str, Bools]]:
        """Return plugin, reason and bool[N] of the nodes it rejects for `component` now, rule by rule.

        A node may stand in several rules.
        """
        instance = self.instance
        infrastructure, state = instance.infrastructure, instance.state
        request, application = instance.requests[component], instance.application
        named = None if application.named is None else application.named.row(component)
        found: list[tuple[str, str, Bools]] = []
        if application.allowed is not None:
            found.append((FILTERS, "", ~application.allowed.row(component)))
        for r, resource in enumerate(infrastructure.resources):
            if request[r] <= 0:
                continue
            spare = self.free[:, r] + self._slack[:, r]
            found.append((reasons.NODE_RESOURCES_FIT, reasons.insufficient(resource), request[r] > spare))
            if state.has_thresholds:
                beyond = request[r] > spare - state.reserve[:, r]
                beyond = beyond if named is None else beyond & ~named
                found.append((reasons.USAGE_THRESHOLD, reasons.filled_to_threshold(resource), beyond))
            if state.has_max_unit:
                above = request[r] > infrastructure.max_unit[:, r]
                found.append((reasons.MAX_UNIT, reasons.above_max_unit(resource), above))
        found.extend(self._edge_rejections(component, named))
        return found

    def _edge_rejections(self, component: int, named: Bools | None) -> Iterator[tuple[str, str, Bools]]:
        """Yield what rejects nodes because of components that are placed already."""
        instance = self.instance
        infrastructure, state = instance.infrastructure, instance.state
        where, distance = infrastructure.location, infrastructure.location_cost
        if instance.separate is not None:
            shared = np.zeros(infrastructure.size, dtype=np.bool_)
            shared[self._where[instance.separate[component] & (self._where >= 0)]] = True
            yield reasons.NODE_PORTS, reasons.PORTS_TAKEN, shared
        peers = self._peers(component)
        if not peers.size:
            return
        homes, demand = self._where[peers], instance.traffic[component, peers]
        if instance.limit is not None:
            outward, inward = instance.limit[component, peers], instance.limit[peers, component]
            far = beyond_limits(homes, outward, inward, location=where, location_cost=distance)
            yield reasons.NETWORK_OVERHEAD, reasons.MAX_NETWORK_COST_EXCEEDED, far
        if not demand.any():
            return
        spare = self.bandwidth + self._bandwidth_slack
        guarded = spare - state.bandwidth_reserve
        open_to_it = guarded if named is None else np.where(named, spare, guarded)
        short = short_of_bandwidth(homes, demand, free=open_to_it, peers_free=guarded)
        yield reasons.BANDWIDTH, reasons.TOO_LITTLE_BANDWIDTH, short
        links = instance.links
        if links is not None:
            free = (self.link + instance.slack * links.capacity).tolist()
            path, kind = partial(links.path, location=where), links.kinds(where)
            over = over_links(homes, demand, path=path, kind=kind, free=free, among=~short)
            for reason, nodes in links.rejections(over, free):
                yield reasons.BANDWIDTH, reason, nodes

    def feasible(self, component: int) -> Bools:
        """Return bool[N], the nodes that can take `component` now."""
        feasible = np.ones(self.instance.infrastructure.size, dtype=np.bool_)
        for _, _, rejected in self.rejections(component):
            feasible &= ~rejected
        return feasible

    def terms(self, component: int) -> dict[str, Floats]:
        """Return float64[N] by objective term: what `component` would add on each node, given what is placed.

        Terms that are 0 everywhere are left out.
        """
        instance, infrastructure = self.instance, self.instance.infrastructure
        weights, peers = instance.weights, self._peers(component)
        homes = self._where[peers]
        terms: dict[str, Floats] = {}
        if instance.has_network:
            terms["network"] = weights.network * cost_towards(
                homes,
                instance.weight[component, peers],
                instance.weight[peers, component],
                location=infrastructure.location,
                location_cost=infrastructure.location_cost,
            )
        if instance.has_price:
            terms["price"] = weights.price * (infrastructure.price @ instance.requests[component])
        if instance.has_bandwidth_price:
            demand = instance.traffic[component, peers]
            terms["bandwidth"] = weights.bandwidth * bandwidth_cost(homes, demand, price=infrastructure.bandwidth_price)
        for name, costs in instance.application.node_costs.items():
            terms[name] = costs.values[costs.group[component]]
        return terms

    def marginal(self, component: int) -> Floats:
        """Return float64[N], the sum of `terms`."""
        return sum(self.terms(component).values(), np.zeros(self.instance.infrastructure.size))

    def place(self, component: int, node: int) -> None:
        """Put `component` on `node` and take what it needs."""
        self._add(component, node, -1.0)
        self.nodes[component] = self._where[component] = node

    def remove(self, component: int) -> None:
        """Take `component` back from its node."""
        node = int(self.nodes[component])
        self.nodes[component] = self._where[component] = -1
        self._add(component, node, 1.0)

    def _add(self, component: int, node: int, sign: float) -> None:
        """Change the free amounts by what `component` uses on `node`."""
        instance = self.instance
        links, location = instance.links, instance.infrastructure.location
        self.free[node] += sign * instance.requests[component]
        for peer in self._peers(component).tolist():
            home, amount = int(self._where[peer]), float(instance.traffic[component, peer])
            if home == node or amount == 0:
                continue
            self.bandwidth[node] += sign * amount
            self.bandwidth[home] += sign * amount
            if links is not None:
                self.link[list(links.path(node, home, location))] += sign * amount
