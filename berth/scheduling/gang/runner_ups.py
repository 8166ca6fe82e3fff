"""Which nodes came next for the components of a plan, for all of them at once.

Rows are placed components, columns all N nodes. A component's own node is never its alternative, so what it takes there
need not be given back before its other nodes are judged. Network costs and limits are those of `cost_towards` and
`beyond_limits` in berth/network/peers.py for many components at once: computed by location and spread over the nodes;
only the nodes in use differ from their location, since edges inside a node cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.gang.outcome import RunnerUp
from berth.scheduling.gang.placement_state import PlacementState
from berth.scheduling.gang.problem import OBJECTIVE_TERMS

if TYPE_CHECKING:
    from collections.abc import Generator

    from berth.scheduling.gang.instance import Bools, Floats, Indices, Instance

_ALTERNATIVES = 3
_CELLS = 2**18
"""Components times nodes judged at once: bounds the memory of large groups."""


def runner_ups(instance: Instance, nodes: Indices) -> Generator[None, None, dict[int, tuple[RunnerUp, ...]]]:
    """Return, per placed component, the cheapest other nodes that could take it while all others stay.

    `nodes` is int[J], -1 for not placed. Of nodes at the same cost the first comes first.
    """
    placed = np.flatnonzero(nodes >= 0)
    found: dict[int, tuple[RunnerUp, ...]] = {}
    if not placed.size:
        return found
    view = _View(instance, nodes)
    names = (*OBJECTIVE_TERMS, *instance.application.node_costs)
    size = max(1, _CELLS // instance.infrastructure.size)
    for start in range(0, placed.size, size):
        yield from instance.budget.pause()
        components = placed[start : start + size]
        terms = view.terms(components)
        # One array less of components by nodes: making it would cost as much as judging a rule.
        summands = list(terms.values())
        total: Floats | float = sum(summands[1:], summands[0]) if summands else 0.0
        cost: Floats = np.where(view.feasible(components), total, np.inf)
        index = np.arange(components.size)
        cost[index, nodes[components]] = np.inf
        options: list[list[RunnerUp]] = [[] for _ in components]
        for _ in range(_ALTERNATIVES):
            best = cost.argmin(axis=1)
            amounts = cost[index, best]
            parts = {name: term[index, best].tolist() for name, term in terms.items()}
            for row in np.flatnonzero(np.isfinite(amounts)).tolist():
                share = {name: parts[name][row] if name in parts else 0.0 for name in names}
                options[row].append(RunnerUp(int(best[row]), float(amounts[row]), share))
            cost[index, best] = np.inf
        found.update(zip(components.tolist(), map(tuple, options), strict=True))
    return found


class _View:
    """The nodes after all components of a plan were placed."""

    def __init__(self, instance: Instance, nodes: Indices) -> None:
        infrastructure = instance.infrastructure
        self.instance = instance
        self.nodes = nodes
        self.where: Indices = np.concatenate([nodes, instance.peer_nodes.astype(np.intp)])
        """int[J'], node of each row of the instance or -1."""
        self.placed: Indices = np.flatnonzero(self.where >= 0)
        self.homes: Indices = self.where[self.placed]
        self.used, self.at = np.unique(self.homes, return_inverse=True)
        """The distinct nodes in use and, for each placed component, which of them it is on."""
        self.free: Floats = (instance.state.free + instance.slack * np.abs(infrastructure.capacity)).T.copy()
        """float64[R, N], what is left, with the tolerance of comparisons."""
        ours = np.flatnonzero(nodes >= 0)
        np.subtract.at(self.free.T, nodes[ours], instance.requests[ours])

    def feasible(self, components: Indices) -> Bools:
        """Return bool[len(components), N]: could the node take the component (its own node aside)?"""
        instance = self.instance
        infrastructure, state, allowed = instance.infrastructure, instance.state, instance.application.allowed
        feasible: Bools = np.ones((components.size, infrastructure.size), dtype=np.bool_)
        if allowed is not None:
            feasible = allowed.masks[allowed.group[components]]
        named: Bools | None = None
        if state.has_thresholds and instance.application.named is not None:
            named = instance.application.named.masks[instance.application.named.group[components]]
        for r in range(len(infrastructure.resources)):
            wanted = instance.requests[components, r]
            asked = wanted > 0
            if not asked.any():
                continue
            room = self.free[r]
            if state.has_thresholds:
                room = room - (state.reserve[:, r] if named is None else np.where(named, 0.0, state.reserve[:, r]))
            # Who asks for nothing is not rejected, not even by a node that is over-committed.
            feasible &= np.where(asked, wanted, -np.inf)[:, None] <= room
            if state.has_max_unit:
                feasible &= np.where(asked, wanted, -np.inf)[:, None] <= infrastructure.max_unit[:, r]
        if instance.separate is not None:
            row, other = np.nonzero(instance.separate[components][:, self.placed])
            feasible[row, self.homes[other]] = False
        if instance.limit is not None:
            self._reject_far(instance.limit, components, feasible)
        if instance.has_traffic and not self._unlimited():
            self._reject_by_bandwidth(components, feasible)
        return feasible

    def _reject_far(self, limit: Floats, components: Indices, feasible: Bools) -> None:
        """Clear the nodes where a hard limit on the network cost to a placed component would be broken."""
        where = self.instance.infrastructure.location
        distance = self.instance.infrastructure.location_cost
        row, other = np.nonzero(self.instance.linked[components][:, self.placed])
        component, peer, place = components[row], self.placed[other], where[self.homes[other]]
        broken = limit[component, peer, None] < distance[:, place].T
        broken |= distance[place] > limit[peer, component, None]
        if not broken.any():
            return
        far = np.zeros((components.size, distance.shape[0]), dtype=np.int64)
        np.add.at(far, row, broken)
        near = far == 0
        # On the peer's own node nothing is far.
        used = far[:, where[self.used]]
        np.subtract.at(used, (row, self.at[other]), broken[np.arange(row.size), place])
        spread = near.take(where, axis=1)
        spread[:, self.used] = used == 0
        feasible &= spread

    def _unlimited(self) -> bool:
        instance = self.instance
        return instance.links is None and bool(np.isposinf(instance.infrastructure.bandwidth_capacity).all())

    def _reject_by_bandwidth(self, components: Indices, feasible: Bools) -> None:
        """Clear the nodes that lack bandwidth, one by one: taking a component away frees bandwidth elsewhere too."""
        placement = PlacementState(self.instance)
        for component in np.flatnonzero(self.nodes >= 0).tolist():
            placement.place(component, int(self.nodes[component]))
        for row, component in enumerate(components.tolist()):
            placement.remove(component)
            feasible[row] &= placement.feasible(component)
            placement.place(component, int(self.nodes[component]))

    def terms(self, components: Indices) -> dict[str, Floats]:
        """Return float64[len(components), N] by objective term: what the component would add on each node.

        Terms that are 0 everywhere are left out.
        """
        instance, infrastructure = self.instance, self.instance.infrastructure
        weights, price = instance.weights, infrastructure.bandwidth_price
        terms: dict[str, Floats] = {}
        if instance.has_network:
            terms["network"] = self._network(components)
        if instance.has_price:
            terms["price"] = weights.price * (instance.requests[components] @ infrastructure.price.T)
        if instance.has_bandwidth_price:
            demand = instance.traffic[components][:, self.placed]
            bandwidth = demand.sum(axis=1)[:, None] * price + (demand @ price[self.homes])[:, None]
            bandwidth[:, self.used] = self._used(demand, price[self.used][:, None] + price[self.homes])
            terms["bandwidth"] = weights.bandwidth * bandwidth
        for name, costs in instance.application.node_costs.items():
            terms[name] = costs.values[costs.group[components]]
        return terms

    def _network(self, components: Indices) -> Floats:
        instance, where = self.instance, self.instance.infrastructure.location
        distance, homes = instance.infrastructure.location_cost, where[self.homes]
        weight = instance.weights.network * instance.weight
        outward, inward = weight[components][:, self.placed], weight[self.placed][:, components].T
        cost: Floats = (outward @ distance[:, homes].T + inward @ distance[homes]).take(where, axis=1)
        here = where[self.used]
        cost[:, self.used] = self._used(outward, distance[here[:, None], homes])
        cost[:, self.used] += self._used(inward, distance[homes[:, None], here].T)
        return cost

    def _used(self, amount: Floats, each: Floats) -> Floats:
        """Return float64[components, used nodes]: sums of `amount` times `each`, edges inside a node left out.

        `amount` is float64[components, placed components], `each` float64[used nodes, placed components].
        """
        apart = np.where(self.at == np.arange(self.used.size)[:, None], 0.0, each)
        total: Floats = amount @ apart.T
        return total
