"""A problem instance: one planning call compiled for the strategies.

Nodes of placed peers become rows of their own, behind those of the components: a placed peer is an ordinary edge to a
row that requests nothing and is placed from the start. J components with such rows make J' rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.gang.problem import NodeCosts

if TYPE_CHECKING:
    from berth.scheduling.gang.links import LinkModel
    from berth.scheduling.gang.problem import Application, Infrastructure, Weights
    from berth.scheduling.gang.state import InfrastructureState

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Indices = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

SLACK = 1e-12
"""Relative tolerance of budget comparisons where amounts are fractions, or so large that floats round."""
_FLOATS_END = 2.0**53
"""Whole numbers below it are exact floats, and so are their sums."""


class Instance:
    """What the strategies read of infrastructure, application and weights."""

    def __init__(
        self, state: InfrastructureState, application: Application, weights: Weights, budget: Budget = UNLIMITED
    ) -> None:
        """Compile `application` against the present free amounts of `state`."""
        self.state = state
        self.infrastructure: Infrastructure = state.infrastructure
        self.application = application
        self.weights = weights
        self.budget = budget
        """Time for the search."""
        self.slack = 0.0 if _exact(state, application) else SLACK
        """Relative tolerance of budget comparisons."""
        self.components = application.size
        """J, the number of components that want a node."""
        self.requests: Floats = application.requests
        """float64[J, R]."""
        self.peer_nodes: Ints
        """int32[J' - J], node of each row behind the components: those that hold placed peers."""
        self._compile_edges(application)
        links = state.infrastructure.links
        narrow = links is not None and self.has_traffic and bool((state.link_free < self.traffic.sum() / 2).any())
        self.links: LinkModel | None = links if narrow else None
        """Those of the infrastructure; None where each carries all calls together, so that none rules anything out."""
        self.separate: Bools | None = None
        """bool[J', J'], symmetric: may not share a node; None when there is no such pair."""
        if application.separate.size:
            first, second = application.separate.T
            self.separate = np.zeros((self.size, self.size), dtype=np.bool_)
            self.separate[first, second] = self.separate[second, first] = True
        self.has_network = bool(weights.network) and bool(self.weight.any()) and state.has_distance
        """Whether network costs tell nodes apart."""
        self.has_price = bool(weights.price) and state.has_price
        """Whether prices of resources count."""
        price = state.infrastructure.bandwidth_price
        self.has_bandwidth_price = bool(weights.bandwidth) and self.has_traffic and bool(price.any())
        """Whether prices of bandwidth count."""
        self.node_costs: NodeCosts | None = _sum_of(list(application.node_costs.values()))
        """What plugins charge in sum; None when none charges anything."""
        self.has_node_costs = state.has_price or self.node_costs is not None
        """Whether nodes cost something whatever else is placed."""
        self._neighbours: list[Indices] | None = None
        self._pairs: tuple[Indices, Indices, Floats] | None = None

    def _compile_edges(self, application: Application) -> None:
        first, second = application.edges[:, 0].astype(np.intp), application.edges[:, 1].astype(np.intp)
        bandwidth, weight, limit = application.bandwidth, application.weight, application.max_cost
        peers = application.placed_peers
        self.peer_nodes = peers.node
        if peers.component.size:
            self.peer_nodes, position = np.unique(peers.node, return_inverse=True)
            row = self.components + position
            first = np.concatenate([first, np.where(peers.incoming, row, peers.component)])
            second = np.concatenate([second, np.where(peers.incoming, peers.component, row)])
            bandwidth = np.concatenate([bandwidth, peers.bandwidth])
            weight = np.concatenate([weight, peers.weight])
            limit = np.concatenate([limit, peers.max_cost])
        self.size = size = self.components + len(self.peer_nodes)
        """J', the number of rows."""
        self.traffic: Floats = np.zeros((size, size))
        """float64[J', J'], symmetric bandwidth demand."""
        self.weight: Floats = np.zeros((size, size))
        """float64[J', J'], network weight of the edges from row to column."""
        self.linked: Bools = np.zeros((size, size), dtype=np.bool_)
        """bool[J', J'], symmetric: is there an edge at all?"""
        if first.size:
            flat = first * size + second
            np.add.at(self.traffic.reshape(-1), flat, bandwidth)
            self.traffic += self.traffic.T
            np.add.at(self.weight.reshape(-1), flat, weight)
            self.linked[first, second] = self.linked[second, first] = True
        self.has_traffic = bool(bandwidth.any())
        """Whether any edge demands bandwidth."""
        self.limit: Floats | None = None
        """float64[J', J'], hard limit on the location cost from row to column; None when there is no limit."""
        if limit.size and np.isfinite(limit).any():
            self.limit = np.full((size, size), np.inf)
            np.minimum.at(self.limit.reshape(-1), first * size + second, limit)

    def neighbours(self, row: int) -> Indices:
        """Return the rows that `row` has an edge with."""
        if self._neighbours is None:
            ends = self.linked.sum(axis=1).cumsum()[:-1]
            self._neighbours = np.split(np.nonzero(self.linked)[1], ends)
        return self._neighbours[row]

    @property
    def pairs(self) -> tuple[Indices, Indices, Floats]:
        """Both ends of every edge between two components, and bool-like float64[pairs, J'] naming them."""
        if self._pairs is None:
            one, other = np.nonzero(self.linked[: self.components, : self.components])
            one, other = one[one < other], other[one < other]
            rows = np.zeros((len(one), self.size))
            index = np.arange(len(one))
            rows[index, one] = rows[index, other] = 1.0
            self._pairs = (one, other, rows)
        return self._pairs


def _exact(state: InfrastructureState, application: Application) -> bool:
    """Whether all amounts that budgets are compared with are whole numbers that floats hold exactly."""
    return all(
        bool(((amounts == np.floor(amounts)) & ((np.abs(amounts) < _FLOATS_END) | np.isinf(amounts))).all())
        for amounts in (
            # What is small first: one fraction is enough.
            application.requests,
            application.bandwidth,
            application.placed_peers.bandwidth,
            state.free,
            state.reserve,
            state.bandwidth_free,
            state.bandwidth_reserve,
            state.link_free,
        )
    )


def _sum_of(costs: list[NodeCosts]) -> NodeCosts | None:
    """Return the costs of all plugins with a row for every class of components that one of them tells apart."""
    if len(costs) < 2:
        return costs[0] if costs else None
    classes, group = np.unique(np.stack([item.group for item in costs]), axis=1, return_inverse=True)
    values: Floats = np.sum([item.values[rows] for item, rows in zip(costs, classes, strict=True)], axis=0)
    return NodeCosts(values, group.reshape(-1).astype(np.int32))
