"""Strategy `phare`: the published algorithm (Filaferro and Nicosia, 2021), followed to the letter.

1. Order: components with a selector first, then importance z of the computing resource, descending, then name.
2. Perceived cost on a node: cost / (Phi * Psi), Phi multiplied by the share of the component's neighbours that the
   node's labels admit. The cost counts bandwidth to neighbours that are placed on other nodes: placing a component
   raises what its neighbours cost elsewhere, by demand times the prices of both ends of the link.
3. Candidates in ascending order, the first M = 10; ties: nodes in use first, then more free resources, then name.
4. Depth-first search with backtracking, iterative here, and bounded: it visits at most 200 nodes of the search tree
   (more for applications of more than 50 components). Measured, a larger bound finds nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.gang.affinity import communication_affinity, computing_affinity, neighbourhood
from berth.scheduling.gang.placement_state import PlacementState

if TYPE_CHECKING:
    from collections.abc import Generator

    from berth.scheduling.gang.instance import Floats, Indices, Instance

CANDIDATES = 10
"""M, the candidates tried for each component."""
NO_AFFINITY = 1e-200
"""What a cost is divided by where there is none: any cost is still a finite number then, and dear nodes differ."""

_VISITS = 200
_VISITS_PER_COMPONENT = 4


def phare(instance: Instance, *, partial: bool) -> Generator[None, None, Indices]:
    """Return one node per component, -1 where the search found none (the deepest attempt is returned)."""
    if not instance.components or not instance.infrastructure.size:
        return np.full(instance.components, -1, dtype=np.intp)
    if not partial and _short(instance):
        return np.full(instance.components, -1, dtype=np.intp)
    nodes = yield from Phare(instance).search(partial=False)
    if partial and (nodes < 0).any():
        return (yield from Phare(instance).search(partial=True))
    return nodes


def _short(instance: Instance) -> bool:
    """Return whether the pooled free amounts are too little; the search need not find that out."""
    wanted = instance.requests.sum(axis=0)
    pooled = np.maximum(instance.state.free, 0.0).sum(axis=0)
    return bool((wanted > pooled * (1 + 1e-12)).any())


class Phare:
    """One search: order, perceived costs and candidates of the published algorithm."""

    def __init__(self, instance: Instance) -> None:
        """Compute importance, order and the fixed tie-break keys."""
        self.instance = instance
        self.placement = PlacementState(instance)
        components, infrastructure = instance.components, instance.infrastructure
        self.traffic: Floats = instance.traffic[:components, :components]
        self.linked = instance.linked[:components, :components]
        self.z, self.y = neighbourhood(instance.requests, self.traffic, self.linked)
        rank = np.argsort(np.argsort(instance.application.names))
        self.order: list[int] = np.lexsort((rank, -self.z[:, 0], ~instance.application.has_selector)).tolist()
        """Components in the order of placing."""
        self._capacity = np.where(infrastructure.capacity > 0, infrastructure.capacity, np.inf)

    def perceived(self, component: int) -> Floats:
        """Return float64[N], the perceived cost of `component` on each node; feasibility is not considered."""
        affinity = self.computing(component) * self.communication(component)
        cost = self.placement.marginal(component)
        return cost / np.maximum(affinity, NO_AFFINITY)

    def _room(self, component: int) -> Floats:
        """Return float64[N, R], what `component` may use: up to the threshold, beyond it on nodes it names."""
        reserve, named = self.instance.state.reserve, self.instance.application.named
        if named is None:
            return self.placement.free - reserve
        return self.placement.free - np.where(named.row(component)[:, None], 0.0, reserve)

    def computing(self, component: int) -> Floats:
        """Return Phi as float64[N]: minimum over resources, times the share of neighbours that labels admit."""
        room = self._room(component)
        affinity = np.ones(room.shape[0])
        for r in range(room.shape[1]):
            affinity = np.minimum(affinity, computing_affinity(self.y[component, r], self.z[component, r], room[:, r]))
        neighbours, allowed = np.flatnonzero(self.linked[component]), self.instance.application.allowed
        if allowed is None or not neighbours.size:
            return affinity
        admitted: Floats = allowed.masks[allowed.group[neighbours]].sum(axis=0, dtype=np.float64)
        return affinity * admitted / neighbours.size

    def communication(self, component: int) -> Floats:
        """Return Psi as float64[N], the minimum over resources."""
        room = self._room(component)
        spare = self.placement.bandwidth - self.instance.state.bandwidth_reserve
        traffic = float(self.traffic[component].sum())
        affinity = np.ones(room.shape[0])
        for r in range(room.shape[1]):
            shade = communication_affinity(traffic, spare, self.y[component, r], self.z[component, r], room[:, r])
            affinity = np.minimum(affinity, shade)
        return affinity

    def candidates(self, component: int) -> list[int]:
        """Return up to M feasible nodes, best first."""
        feasible = self.placement.feasible(component)
        if not feasible.any():
            return []
        cost = np.where(feasible, self.perceived(component), np.inf)
        count = min(CANDIDATES, int(feasible.sum()))
        bar = np.partition(cost, count - 1)[count - 1]
        nodes = np.flatnonzero(feasible & (cost <= bar))
        share = self.placement.free[nodes] / self._capacity[nodes]
        unused = (share >= 1.0 - 1e-12).all(axis=1)
        names = np.array([self.instance.infrastructure.names[node] for node in nodes.tolist()])
        keys = (
            names,
            *(-self.placement.free[nodes, r] for r in range(share.shape[1] - 1, -1, -1)),
            unused,
            cost[nodes],
        )
        return [int(node) for node in nodes[np.lexsort(keys)][:count]]

    def search(self, *, partial: bool) -> Generator[None, None, Indices]:
        """Return the nodes of the first complete placement, else of the deepest attempt."""
        placement, order = self.placement, self.order
        visits = max(_VISITS, _VISITS_PER_COMPONENT * len(order))
        open_candidates: list[list[int]] = []
        deepest = placement.nodes.copy()
        depth = 0
        while depth < len(order):
            component = order[depth]
            yield from self.instance.budget.pause()
            if self.instance.budget.over:
                return deepest
            if len(open_candidates) == depth:
                open_candidates.append(self.candidates(component)[::-1])
            if open_candidates[depth] and visits > 0:
                visits -= 1
                placement.place(component, open_candidates[depth].pop())
                depth += 1
                if (placement.nodes >= 0).sum() > (deepest >= 0).sum():
                    deepest = placement.nodes.copy()
                continue
            if partial:
                # What fits is wanted: go on without this component instead of giving up its predecessors.
                depth += 1
                continue
            open_candidates.pop()
            depth -= 1
            if depth < 0 or visits <= 0:
                return deepest
            placement.remove(order[depth])
        return placement.nodes
