"""Candidate nodes: which of all N nodes could hold a part, which the whole application, and at what price.

Everything here is a handful of passes over node-long arrays; the search itself runs over the shortlists that
`CandidateNodes.shortlists` cuts out of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.network.peers import cost_towards

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berth.scheduling.gang.instance import Bools, Floats, Indices, Instance
    from berth.scheduling.gang.problem import NodeCosts, NodeMasks

_WHOLE = 8
"""Nodes that hold the whole application in every shortlist."""
_MUCH = 0.5
"""Share of the roomiest node's room that counts as much, where no node holds the whole application."""
_ROOMY = 8
"""Nodes with the most room in every shortlist, where prices do not tell nodes apart."""
_PER_CLASS = 12
"""Nodes each class of masks contributes to a shortlist."""
_LOCATIONS = 3
"""Locations, or groups of near ones, that get a shortlist of their own; one for large applications."""
_SMALL = 64
"""Components up to which an application is searched in several locations."""


class CandidateNodes:
    """What an instance finds on the nodes at the moment."""

    def __init__(self, instance: Instance) -> None:
        """Look over all nodes once."""
        state, infrastructure = instance.state, instance.infrastructure
        self.instance = instance
        self.total: Floats = instance.requests.sum(axis=0)
        """float64[R], what the whole application requests."""
        self.kinds: Indices = np.flatnonzero(self.total > 0)
        """Indices of the resources that are requested at all."""
        least = instance.requests.min(axis=0, initial=np.inf)
        count = infrastructure.size
        self.usable: Floats = state.free - state.reserve if state.has_thresholds else state.free
        """float64[N, R], free below the threshold; may be negative."""
        self.partly: Bools = np.ones(count, dtype=np.bool_)
        """bool[N], nodes with room for the smallest request of each resource, for some component by masks."""
        self.wholly: Bools = np.ones(count, dtype=np.bool_)
        """bool[N], nodes with room for the whole application, for every component by masks."""
        for r in self.kinds.tolist():
            column = self.usable[:, r]
            slack = instance.slack * infrastructure.capacity[:, r]
            if least[r] > 0:
                self.partly &= column + slack >= least[r]
            self.wholly &= column + slack >= self.total[r]
        named = instance.application.named
        if named is not None and state.has_thresholds:
            anyhow: Bools = np.logical_or.reduce(named.masks, axis=0)
            self.usable = np.where(anyhow[:, None], state.free, self.usable)
            self.partly |= anyhow
        masks = instance.application.allowed
        if masks is not None:
            self.partly &= np.logical_or.reduce(masks.masks, axis=0)
            self.wholly &= np.logical_and.reduce(masks.masks, axis=0)
        if instance.separate is not None:
            self.wholly[:] = False
        if state.has_max_unit:
            largest = instance.application.requests.max(axis=0, initial=0.0)
            self.wholly &= (infrastructure.max_unit >= largest).all(axis=1)
        self.base: Floats = infrastructure.price @ (instance.weights.price * self.total)
        """float64[N], cost of the whole application on one node; edges to placed peers included."""
        costs = instance.node_costs
        if costs is not None:
            self.base = self.base + np.bincount(costs.group, minlength=len(costs.values)) @ costs.values
        if instance.has_network and instance.peer_nodes.size:
            self.base = self.base + self._towards_peers()
        self.by_room_only = instance.has_network and not instance.has_node_costs and not instance.peer_nodes.size
        """Whether only room and network costs between its own components decide where an application goes."""
        self._portions: Floats | None = None
        self._ranking: Floats | None = None
        self._classes: dict[int, Indices] = {}

    def _towards_peers(self) -> Floats:
        """Return float64[N], weighted network cost of all placed peers from each node."""
        instance = self.instance
        towards = cost_towards(
            instance.peer_nodes,
            instance.weight[: instance.components, instance.components :].sum(axis=0),
            instance.weight[instance.components :, : instance.components].sum(axis=1),
            location=instance.infrastructure.location,
            location_cost=instance.infrastructure.location_cost,
        )
        return instance.weights.network * towards

    def short(self) -> bool:
        """Return whether even the pooled free amounts of all nodes are too little."""
        return self.pooled() < 1 - 1e-12 or (bool(self.instance.components) and not self.partly.any())

    def pooled(self) -> float:
        """Return how many times the pooled free amounts of all nodes hold the application."""
        return min(
            (float(np.maximum(self.usable[:, r], 0.0).sum()) / self.total[r] for r in self.kinds.tolist()),
            default=np.inf,
        )

    def best_whole(self) -> int:
        """Return the cheapest node for the whole application, the fullest one of equals, or -1."""
        nodes = np.flatnonzero(self.wholly)
        if not nodes.size:
            return -1
        cost = self.base[nodes]
        nodes = nodes[cost <= cost.min() * (1 + 1e-12)]
        if nodes.size > 1 and self.instance.weights.fit:
            share = self._share(nodes)
            return int(nodes[np.argmin(share if self.instance.weights.fit > 0 else -share)])
        return int(nodes[0])

    def _share(self, nodes: Indices) -> Floats:
        """Return float64[len(nodes)], the mean free share of the requested resources."""
        capacity = self.instance.infrastructure.capacity
        share: Floats = np.zeros(len(nodes))
        # Columns lie in one piece: taking rows of all resources at once would cost twice the time.
        for r in range(capacity.shape[1]):
            total = capacity[:, r][nodes]
            share += self.usable[:, r][nodes] / np.where(total > 0, total, 1.0)
        share /= capacity.shape[1]
        return share

    def shortlists(
        self, width: int, *, everywhere: bool = True, bandwidth_floor: float = 0.0, room_floor: float = 0.0
    ) -> Iterator[Indices]:
        """Yield shortlists of about `width` nodes, the most promising first: of single locations, then of all nodes.

        The latter are left out without `everywhere` when nothing but network costs tells nodes apart. Nodes with less
        free bandwidth than `bandwidth_floor` are hidden, and those with less room than `room_floor` times that of the
        roomiest (which counts as the application's size at most). A shortlist holds nodes in price order with half as
        much room again as the application needs (if there is that much), nodes that hold all or much of it, and nodes
        for every class of masks.
        """
        candidates = self.partly
        if bandwidth_floor > 0:
            state = self.instance.state
            candidates = candidates & (state.bandwidth_free - state.bandwidth_reserve >= bandwidth_floor)
        if room_floor > 0 and candidates.any():
            portion = np.minimum(self.portion, 1.0)
            candidates = candidates & (portion >= room_floor * portion[candidates].max())
        seen: list[Indices] = []
        if self.instance.has_network or self.instance.limit is not None:
            for group in self._areas(candidates):
                seen.append(self._shortlist(group, width))
                yield seen[-1]
            if seen and not everywhere and not self.instance.has_node_costs and not self.instance.peer_nodes.size:
                return
        anywhere = self._shortlist(np.flatnonzero(candidates), width)
        if anywhere.size and not any(np.array_equal(anywhere, other) for other in seen):
            yield anywhere

    def _areas(self, candidates: Bools) -> Iterator[Indices]:
        """Yield the nodes of single locations with room for all, else of groups of near locations."""
        infrastructure = self.instance.infrastructure
        nodes = np.flatnonzero(candidates)
        if not nodes.size:
            return
        areas = _LOCATIONS if self.instance.components <= _SMALL else 1
        places = infrastructure.location[nodes]
        count = infrastructure.location_cost.shape[0]
        room = np.stack(
            [
                np.bincount(places, weights=np.maximum(self.usable[nodes, r], 0.0), minlength=count)
                for r in self.kinds.tolist()
            ]
            or [np.bincount(places, minlength=count).astype(np.float64)]
        )
        needed = self.total[self.kinds] if self.kinds.size else np.ones(1)
        cheapest = np.full(count, np.inf)
        np.minimum.at(cheapest, places, self.base[nodes])
        # Fewer, larger nodes mean fewer edges between nodes.
        largest = np.zeros(count)
        np.maximum.at(largest, places, np.minimum(self.portion[nodes], 1.0))
        order = np.lexsort((-largest, cheapest))
        enough: Bools = np.logical_and.reduce(room >= needed[:, None], axis=0)
        single = [place for place in order.tolist() if enough[place]][:areas]
        for place in single:
            yield nodes[places == place]
        if single:
            return
        fill = (room / needed[:, None]).min(axis=0)
        for seed in np.lexsort((cheapest, -fill)).tolist()[:areas]:
            distance = infrastructure.location_cost[seed] + infrastructure.location_cost[:, seed]
            distance[seed] = -1.0
            near = np.argsort(distance, kind="stable")
            reach = np.cumsum(room[:, near], axis=1)
            done = np.flatnonzero((reach >= 1.25 * needed[:, None]).all(axis=0))
            yield nodes[np.isin(places, near[: int(done[0]) + 1] if done.size else near)]

    @property
    def portion(self) -> Floats:
        """float64[N], how many times the application fits each node."""
        if self._portions is None:
            count = len(self.partly)
            portion: Floats = np.full(count, np.inf)
            for r in self.kinds.tolist():
                np.minimum(portion, self.usable[:, r] / self.total[r], out=portion)
            self._portions = np.maximum(portion, 0.0) if self.kinds.size else np.ones(count)
        return self._portions

    def promises(self, columns: Indices, instead_of: Indices, used: Indices) -> bool:
        """Return whether another shortlist may beat a complete plan found on the shortlist `instead_of`.

        It may not where room alone decides, its roomiest nodes (twice as many as the plan has `used`, int[...] with
        repetitions) have the same room as those, and they are no nearer to each other than the used ones.
        """
        if not self.by_room_only:
            return True
        where, distance = self.instance.infrastructure.location, self.instance.infrastructure.location_cost
        nodes = list(set(used.tolist()))
        here, there = where[nodes], list(set(where[columns].tolist()))
        if distance[there][:, there].min() < distance[here][:, here].max():
            return True
        room, known = (
            np.sort(np.minimum(self.portion[some], 1.0))[: -2 * len(nodes) - 1 : -1] for some in (columns, instead_of)
        )
        return not np.array_equal(room, known)

    def _shortlist(self, nodes: Indices, width: int) -> Indices:
        """Return the nodes to search among, in price order, at least `width` when there are so many."""
        chosen = [self._cheapest(nodes, width)]
        while len(chosen[0]) < len(nodes):
            room = np.maximum(self.usable[chosen[0]], 0.0).sum(axis=0)
            if (room >= 1.5 * self.total).all():
                break
            chosen[0] = self._cheapest(nodes, 2 * len(chosen[0]))
        whole: Indices = nodes[self.wholly[nodes]]
        if whole.size:
            chosen.append(self._cheapest(whole, _WHOLE))
        elif len(nodes) > width:
            portion = self.portion[nodes]
            chosen.append(self._cheapest(nodes[portion >= _MUCH * portion.max()], _WHOLE))
        if self.instance.state.has_equal_prices and len(nodes) > width:
            chosen.append(nodes[np.argpartition(-self.portion[nodes], _ROOMY)[:_ROOMY]])
        masks = self.instance.application.allowed
        if masks is not None and len(masks.masks) > 1:
            # A class with enough nodes in the shortlist has its cheapest ones there already.
            enough = np.count_nonzero(masks.masks[:, chosen[0]], axis=1) >= _PER_CLASS
            chosen.extend(self._of_class(masks, row) for row in np.flatnonzero(~enough).tolist())
        costs = self.instance.node_costs
        if costs is not None and len(costs.values) > 1:
            chosen.extend(self._cheapest_for(costs, row, nodes) for row in np.unique(costs.group).tolist())
        if len(chosen) == 1:
            return chosen[0]
        return np.array(list(dict.fromkeys(np.concatenate(chosen).tolist())), dtype=np.intp)

    def _of_class(self, masks: NodeMasks, row: int) -> Indices:
        """Return the cheapest nodes that a class of masks admits."""
        if row not in self._classes:
            self._classes[row] = self._cheapest(np.flatnonzero(masks.masks[row] & self.partly), _PER_CLASS)
        return self._classes[row]

    def _cheapest_for(self, costs: NodeCosts, row: int, nodes: Indices) -> Indices:
        """Return the cheapest of `nodes` for a class of components with costs of its own."""
        instance = self.instance
        request = instance.requests[costs.group == row].mean(axis=0)
        cost = costs.values[row, nodes] + instance.infrastructure.price[nodes] @ (instance.weights.price * request)
        return nodes[np.argsort(cost, kind="stable")[:_PER_CLASS]]

    def _cheapest(self, nodes: Indices, width: int) -> Indices:
        """Return up to `width` of `nodes` by price, larger room first among equals, in that order."""
        if self._ranking is None:
            cost = self.base
            if self.instance.has_network or self.instance.state.has_equal_prices:
                # At equal prices the order is by room, so that few nodes hold the application.
                # Of those that hold all of it, the fuller ones come first.
                portion = 1e-6 * np.minimum(self.portion, 1.0) - 1e-9 * np.minimum(self.portion, 100.0)
                cost = cost - (1.0 + np.abs(cost)) * portion
            self._ranking = cost
        cost = self._ranking[nodes]
        if width < len(nodes):
            nodes_at = np.argpartition(cost, width)[:width]
            return nodes[nodes_at[np.argsort(cost[nodes_at], kind="stable")]]
        return nodes[np.argsort(cost, kind="stable")]
