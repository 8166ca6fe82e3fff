"""One planning call compiled for the strategies: units, adjacency, fixed ends of placed_peers, masks.

Components that must share a node become one *unit*. Nodes of placed pods become *fixed units* without requests, so
that an placed peer is an ordinary edge. Strategies see units only; `expand` turns their answer into components.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from berth.scheduling.gang.problem import Application, Infrastructure, NodeMasks, Weights
    from berth.scheduling.gang.state import InfrastructureState

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Indices = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

__all__ = ["Instance"]


class Instance:
    """A planning problem in units. Matrices have one row per unit, fixed units (placed_peers) last."""

    def __init__(self, state: InfrastructureState, application: Application, weights: Weights) -> None:
        """Compile `application` against the present free amounts of `state`."""
        self.state = state
        self.infrastructure: Infrastructure = state.infrastructure
        self.application = application
        self.weights = weights
        self.unit_of: Indices = _merge(application)
        """int[J], the unit of each component."""
        self.merged = bool(application.together.size)
        self.units = int(self.unit_of.max()) + 1 if application.size else 0
        """Number of units that want a node."""
        self.requests: Floats = application.requests
        """float64[U, R]."""
        if self.merged:
            self.requests = np.zeros((self.units, application.requests.shape[1]))
            np.add.at(self.requests, self.unit_of, application.requests)
        self.fixed_nodes: Ints
        """int32[A'], node of each fixed unit; fixed unit i has index `units + i`."""
        self._compile_edges(application)
        self._compile_separation(application)
        self.has_network = bool(weights.network) and bool(self.weight.any()) and state.has_distance
        """Whether network costs tell nodes apart."""
        self.has_price = bool(weights.price) and state.has_price
        """Whether prices of resources count."""
        tariff = state.infrastructure.bandwidth_price
        self.has_bandwidth_price = bool(weights.bandwidth) and self.has_traffic and bool(tariff.any())
        """Whether prices of bandwidth count."""
        self.has_selector: Bools = np.zeros(self.units, dtype=np.bool_)
        self.has_selector[self.unit_of[application.has_selector]] = True
        self._masks: dict[int, Bools] = {}
        self._members: list[list[int]] | None = None
        self._neighbours: list[Indices] | None = None
        self._pairs: tuple[Indices, Indices, Floats] | None = None

    def _compile_edges(self, application: Application) -> None:
        placed_peers = application.placed_peers
        first = self.unit_of[application.edges[:, 0]]
        second = self.unit_of[application.edges[:, 1]]
        bandwidth, weight, limit = application.bandwidth, application.weight, application.max_cost
        if placed_peers.component.size:
            self.fixed_nodes, position = np.unique(placed_peers.node, return_inverse=True)
            ours, fixed = self.unit_of[placed_peers.component], self.units + position
            first = np.concatenate([first, np.where(placed_peers.incoming, fixed, ours)])
            second = np.concatenate([second, np.where(placed_peers.incoming, ours, fixed)])
            bandwidth = np.concatenate([bandwidth, placed_peers.bandwidth])
            weight = np.concatenate([weight, placed_peers.weight])
            limit = np.concatenate([limit, placed_peers.max_cost])
        else:
            self.fixed_nodes = np.zeros(0, dtype=np.int32)
        size = self.units + len(self.fixed_nodes)
        self.size = size
        self.traffic: Floats = np.zeros((size, size))
        """float64[U', U'], symmetric bandwidth demand between units."""
        self.weight: Floats = np.zeros((size, size))
        """float64[U', U'], network weight of the edges from row to column."""
        if first.size:
            flat = first * size + second
            np.add.at(self.traffic.reshape(-1), flat, bandwidth)
            self.traffic += self.traffic.T
            np.add.at(self.weight.reshape(-1), flat, weight)
            if self.merged:
                np.fill_diagonal(self.traffic, 0.0)
                np.fill_diagonal(self.weight, 0.0)
        self.has_traffic = bool(bandwidth.any())
        """Whether any edge demands bandwidth."""
        self.limit: Floats | None = None
        """float64[U', U'], hard limit on the location cost from row to column; None when there is no limit."""
        if limit.size and np.isfinite(limit).any():
            self.limit = np.full((size, size), np.inf)
            np.minimum.at(self.limit.reshape(-1), first * size + second, limit)
            np.fill_diagonal(self.limit, np.inf)
        self.linked: Bools = np.zeros((size, size), dtype=np.bool_)
        """bool[U', U'], symmetric: is there an edge at all?"""
        if first.size:
            self.linked[first, second] = True
            self.linked[second, first] = True
            np.fill_diagonal(self.linked, False)

    def _compile_separation(self, application: Application) -> None:
        self.apart: Bools | None = None
        """bool[U', U'], symmetric: may not share a node; None when there is no such pair."""
        self.contradiction: tuple[int, int] | None = None
        """Two components that must and may not share a node."""
        if application.separate.size:
            first, second = self.unit_of[application.separate[:, 0]], self.unit_of[application.separate[:, 1]]
            self.apart = np.zeros((self.size, self.size), dtype=np.bool_)
            self.apart[first, second] = True
            self.apart[second, first] = True
            clash = np.flatnonzero(first == second)
            if clash.size:
                pair = application.separate[clash[0]]
                self.contradiction = (int(pair[0]), int(pair[1]))

    def members(self, unit: int) -> list[int]:
        """Return the components of a unit."""
        if not self.merged:
            return [unit]
        if self._members is None:
            self._members = [[] for _ in range(self.units)]
            for component, owner in enumerate(self.unit_of.tolist()):
                self._members[owner].append(component)
        return self._members[unit]

    def allowed(self, unit: int) -> Bools | None:
        """Return bool[N] of the nodes a unit may use by masks, or None when every node is allowed."""
        return self._combine(self.application.allowed, unit)

    def named(self, unit: int) -> Bools | None:
        """Return bool[N] of the nodes whose threshold a unit may exceed, or None when there is none."""
        return self._combine(self.application.named, unit)

    def neighbours(self, unit: int) -> Indices:
        """Return the units, fixed ones included, that `unit` has an edge with."""
        if self._neighbours is None:
            ends = self.linked.sum(axis=1).cumsum()[:-1]
            self._neighbours = np.split(np.nonzero(self.linked)[1], ends)
        return self._neighbours[unit]

    @property
    def pairs(self) -> tuple[Indices, Indices, Floats]:
        """Both ends of every edge between two units, and bool-like float64[pairs, U'] naming them."""
        if self._pairs is None:
            one, other = np.nonzero(np.triu(self.linked[: self.units, : self.units]))
            rows = np.zeros((len(one), self.size))
            index = np.arange(len(one))
            rows[index, one] = rows[index, other] = 1.0
            self._pairs = (one, other, rows)
        return self._pairs

    def permits(self, unit: int) -> Bools:
        """Return bool[N] like `allowed`, all True when there are no masks."""
        mask = self.allowed(unit)
        return np.ones(self.infrastructure.size, dtype=np.bool_) if mask is None else mask

    def names(self, unit: int) -> Bools:
        """Return bool[N] like `named`, all False when there are no selectors."""
        mask = self.named(unit)
        return np.zeros(self.infrastructure.size, dtype=np.bool_) if mask is None else mask

    def _combine(self, masks: NodeMasks | None, unit: int) -> Bools | None:
        if masks is None:
            return None
        if not self.merged:
            return masks.row(unit)
        rows = sorted({int(masks.group[component]) for component in self.members(unit)})
        combined: Bools = np.logical_and.reduce(masks.masks[rows], axis=0)
        return combined

    def largest(self, unit: int) -> Floats:
        """Return float64[R], the largest single request among the components of a unit."""
        biggest: Floats = self.application.requests[self.members(unit)].max(axis=0)
        return biggest

    def expand(self, unit_nodes: npt.ArrayLike) -> Ints:
        """Return int32[J] of nodes from one node (or -1) per unit."""
        nodes = np.asarray(unit_nodes, dtype=np.int32)
        return nodes[self.unit_of] if self.units else nodes


def _merge(application: Application) -> Indices:
    """Number the units: components connected by `together` share one, in order of their first component."""
    count = application.size
    if not application.together.size:
        return np.arange(count)
    parent = list(range(count))

    def root(component: int) -> int:
        while parent[component] != component:
            parent[component] = parent[parent[component]]
            component = parent[component]
        return component

    for first, second in application.together.tolist():
        low, high = sorted((root(first), root(second)))
        parent[high] = low
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(root(component), len(numbers)) for component in range(count)], dtype=np.intp)
