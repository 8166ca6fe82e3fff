"""The search state: components on a shortlist of K nodes, as matrices of components by nodes that are kept current.

The marginal cost of component j on the k-th node, all others fixed, is

    static[j, k] + sum over placed peers i on w != k of traffic[j, i] * (price[k] + price[w]) + network[j, k]

With `received[j, k]` the traffic of j with components on k, the middle term is
``received[j].sum() * price[k] + received[j] @ price - 2 * received[j, k] * price[k]``: one row update per placed
component keeps it current. This is the incremental form of `cost_towards`, `bandwidth_cost`, `beyond_limits` and
`short_of_bandwidth` in berth/network/peers.py. Resource arrays are [R, K]: sums over R are short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.gang.heuristics import Balance, Waste, static_heuristics

if TYPE_CHECKING:
    from berth.scheduling.gang.instance import Bools, Floats, Indices, Instance

INFEASIBLE = 1e15
"""Cost of a node that a rule forbids; finite, so that sums stay ordered."""


class SearchState:
    """What a search knows about the nodes `columns`; components are placed by position in `columns`."""

    def __init__(self, instance: Instance, columns: Indices) -> None:
        """Start with the placed peers in place; their nodes are appended to `columns` when they are missing."""
        peer_nodes = instance.peer_nodes
        if peer_nodes.size:
            columns = np.concatenate([columns, np.setdiff1d(peer_nodes, columns)])
        state, infrastructure, weights = instance.state, instance.infrastructure, instance.weights
        self.instance = instance
        self.columns: Indices = columns
        """int[K], node of each column."""
        components, size = instance.components, instance.size
        self.where: Indices = np.full(size, -1, dtype=np.intp)
        """int[J'], column of each component or -1."""
        self.requests: Floats = instance.requests
        if size > components:
            self.requests = np.pad(instance.requests, ((0, size - components), (0, 0)))
        free = np.maximum((state.free[columns] + instance.slack * infrastructure.capacity[columns]).T, 0.0, order="C")
        self.spare: Floats = free
        """float64[R, K], free below the threshold after what was placed."""
        if state.has_thresholds:
            self.spare = np.maximum(free - state.reserve[columns].T, 0.0, order="C")
        self.static: Floats = np.zeros((size, len(columns)))
        """float64[J', K], costs and heuristics that depend on no other component, `INFEASIBLE` where a rule forbids."""
        if instance.has_price:
            self.static[:components] = instance.requests @ (weights.price * infrastructure.price[columns]).T
        if instance.node_costs is not None:
            self.static[:components] += instance.node_costs.values[:, columns][instance.node_costs.group]
        self.static[:components] += static_heuristics(instance, columns, self.spare)
        self.waste = Waste(instance, columns) if Waste.wanted(instance) else None
        self.balance = Balance(instance, columns) if Balance.wanted(instance, self.spare) else None
        self.wasted: Floats = np.zeros(len(columns)) if self.waste is None else self.waste.everywhere(self.spare)
        self._forbid(free)
        self._set_up_edges()
        for position, node in enumerate(peer_nodes.tolist()):
            self.place(components + position, int(np.flatnonzero(columns == node)[0]))

    def _forbid(self, free: Floats) -> None:
        """Mark nodes that masks or largest units forbid, and what naming a node adds up to `free`."""
        instance, columns, components = self.instance, self.columns, self.instance.components
        application, state = instance.application, instance.state
        if application.allowed is not None:
            self.static[:components][~application.allowed.masks[:, columns][application.allowed.group]] = INFEASIBLE
        if state.has_max_unit:
            limits = instance.infrastructure.max_unit[columns]
            self.static[:components][(instance.requests[:, None, :] > limits[None]).any(axis=2)] = INFEASIBLE
        self.above_threshold: Floats | None = None
        """float64[J', R, K], room above the threshold of nodes that a component names; None when nobody names any."""
        if application.named is not None and state.has_thresholds:
            named = application.named.masks[:, columns][application.named.group]
            self.above_threshold = np.zeros((instance.size, *self.spare.shape))
            self.above_threshold[:components] = named[:, None, :] * (free - self.spare)

    def _set_up_edges(self) -> None:
        """Set up traffic, network costs, hard limits and separation."""
        instance, columns = self.instance, self.columns
        state, infrastructure, weights = instance.state, instance.infrastructure, instance.weights
        shape = (instance.size, len(columns))
        links = instance.links
        self.traffic: Floats | None = None
        """float64[J', J'], bandwidth demand; None when there is none, or when it is neither limited nor charged."""
        if instance.has_traffic:
            self.bandwidth_price: Floats = weights.bandwidth * infrastructure.bandwidth_price[columns]
            self.bandwidth: Floats = (
                state.bandwidth_free[columns] * (1 + instance.slack) - state.bandwidth_reserve[columns]
            )
            """float64[K], free bandwidth below the threshold; a component that names the node gets no more here."""
            if links is not None or self.bandwidth_price.any() or not np.isposinf(self.bandwidth).all():
                self.traffic = instance.traffic
        if self.traffic is not None:
            self.received: Floats = np.zeros(shape)
            """float64[J', K], traffic of each component with the components on each node."""
            self.total_received: Floats = np.zeros(instance.size)
            """float64[J'], traffic of each component with all placed components."""
        if instance.limit is not None or instance.has_network:
            places = infrastructure.location[columns]
            self.distance: Floats = infrastructure.location_cost[places[:, None], places]
            np.fill_diagonal(self.distance, 0.0)
        self.network: Floats | None = None
        """float64[J', K], weighted network cost of each component's edges to placed ones, were it on each node."""
        if instance.has_network:
            self.network = np.zeros(shape)
            self.weight: Floats = weights.network * instance.weight
            self.mutual: Floats = self.weight + self.weight.T
        self.limits: tuple[Indices, Indices, Floats] | None = None
        # No limit can be broken among nodes that are all near enough, such as those of one location.
        if instance.limit is not None and instance.limit.min() < self.distance.max():
            origin, target = np.nonzero(np.isfinite(instance.limit))
            self.limits = (origin, target, instance.limit[origin, target])
        self.paths: Floats | None = None
        if links is not None and self.traffic is not None:
            # There may be thousands, most of which carry all traffic of the application.
            where, tight = infrastructure.location, np.flatnonzero(state.link_free < self.traffic.sum() / 2)
            tight = links.among(columns, where, tight)
            if tight.size:
                self.paths = links.incidence(columns.astype(np.int32), where, tight).astype(np.float64)
                self.link: Floats = (state.link_free + instance.slack * links.capacity)[tight]

    def place(self, component: int, column: int) -> None:
        """Put `component` on the node of `column`."""
        self.where[component] = column
        self._update(component, column, 1.0)

    def remove(self, component: int) -> int:
        """Take `component` back and return its column."""
        column = int(self.where[component])
        self.where[component] = -1
        self._update(component, column, -1.0)
        return column

    def _update(self, component: int, column: int, sign: float) -> None:
        self.spare[:, column] -= sign * self.requests[component]
        if self.waste is not None:
            self.wasted[column] = self.waste.on(self.spare[:, column].tolist(), column)
        if self.traffic is not None:
            if self.total_received[component] > 0:
                cut = sign * self.received[component]
                cut[column] = sign * self.total_received[component] - cut[column]
                self.bandwidth -= cut
                if self.paths is not None:
                    cut[column] = 0.0
                    self.link -= cut @ self.paths[column]
            share = sign * self.traffic[component]
            self.received[:, column] += share
            self.total_received += share
        if self.network is not None:
            rows = self.instance.neighbours(component)
            if self.instance.state.symmetric:
                self.network[rows] += (sign * self.mutual[rows, component, None]) * self.distance[column]
            else:
                inward, outward = sign * self.weight[rows, component, None], sign * self.weight[component, rows, None]
                self.network[rows] += inward * self.distance[:, column] + outward * self.distance[column]

    def costs(self, component: int) -> Floats:
        """Return float64[K], what the unplaced `component` would add on each node, heuristics included.

        It is `INFEASIBLE` or more where the component does not fit or a rule forbids it.
        """
        blocked: Bools | None = None
        if self.limits is not None:
            blocked = self._beyond_limits_of(component)
        if self.instance.separate is not None:
            blocked = np.zeros(len(self.columns), dtype=np.bool_) if blocked is None else blocked
            blocked[self.where[self.instance.separate[component] & (self.where >= 0)]] = True
        return self._added_cost(
            self.requests[component],
            self.static[component],
            None if self.traffic is None else (self.received[component], float(self.total_received[component])),
            None if self.network is None else self.network[component],
            None if self.above_threshold is None else self.above_threshold[component],
            blocked,
        )

    def joint_costs(self) -> Floats:
        """Return float64[K], what all components together would add on each node while none is placed yet."""
        components = self.instance.components
        blocked: Bools | None = None
        if self.limits is not None:
            everything = np.zeros((1, self.where.size))
            everything[0, :components] = 1.0
            blocked = self.beyond_limits(everything)[0]
        if self.instance.separate is not None:
            blocked = np.ones(len(self.columns), dtype=np.bool_)
        return self._added_cost(
            self.requests.sum(axis=0),
            self.static[:components].sum(axis=0),
            None
            if self.traffic is None
            else (self.received[:components].sum(axis=0), float(self.total_received[:components].sum())),
            None if self.network is None else self.network[:components].sum(axis=0),
            None if self.above_threshold is None else self.above_threshold[:components].min(axis=0),
            blocked,
        )

    def _added_cost(
        self,
        request: Floats,
        static: Floats,
        traffic: tuple[Floats, float] | None,
        network: Floats | None,
        above_threshold: Floats | None,
        blocked: Bools | None,
    ) -> Floats:
        """Return float64[K], the cost of adding one component, or several at once, given by the sums of their rows."""
        rest = self.spare - request[:, None]
        full = np.logical_or.reduce((rest if above_threshold is None else rest + above_threshold) < 0, axis=0)
        if blocked is not None:
            full |= blocked
        cost = static - self.wasted
        if self.waste is not None:
            cost += self.waste.everywhere(rest)
        if self.balance is not None:
            cost += self.balance.worth(self.spare) - self.balance.worth(rest)
        if traffic is not None:
            received, total = traffic
            if total > 1e-12:
                away = total - received
                cost += (away - received) * self.bandwidth_price
                cost += received @ self.bandwidth_price
                full |= away > self.bandwidth
                over = received > self.bandwidth
                if np.count_nonzero(over):
                    # The peers' node cannot carry their end: the component must join them.
                    full |= ~over if np.count_nonzero(over) == 1 else True
                if self.paths is not None:
                    use = np.tensordot(self.paths, received, axes=([1], [0]))
                    full |= ((use > self.link) & (use > 0)).any(axis=1)
        if network is not None:
            cost += network
        cost += full * INFEASIBLE
        return cost

    def _beyond_limits_of(self, component: int) -> Bools:
        """Return bool[K]: would a hard limit between `component` and a placed component be broken?"""
        limit = self.instance.limit
        if limit is None:
            return np.zeros(len(self.columns), dtype=np.bool_)
        others = self.instance.neighbours(component)
        homes = self.where[others]
        others, homes = others[homes >= 0], homes[homes >= 0]
        far = self.distance[homes] > limit[others, component, None]
        far |= limit[component, others, None] < self.distance[:, homes].T
        broken: Bools = np.logical_or.reduce(far, axis=0)
        return broken

    def beyond_limits(self, blocks: Floats) -> Bools:
        """Return bool[B, K]: would a hard limit between a block's component and a placed one outside be broken?

        `blocks` is a 0/1 matrix [B, J'] of the components of each block.
        """
        broken = np.zeros((len(blocks), len(self.columns)), dtype=np.bool_)
        if self.limits is None:
            return broken
        origin, target, limit = self.limits
        for inside, outside, table in ((origin, target, self.distance), (target, origin, self.distance.T)):
            home = self.where[outside]
            for block, members in enumerate(blocks > 0):
                crossing = np.flatnonzero(members[inside] & ~members[outside] & (home >= 0))
                if not crossing.size:
                    continue
                # Of thousands of pairs, those towards one node count by the strictest.
                strictest = np.full(len(self.columns), np.inf)
                np.minimum.at(strictest, home[crossing], limit[crossing])
                homes = np.flatnonzero(np.isfinite(strictest))
                broken[block] |= (table[:, homes] > strictest[homes]).any(axis=1)
        return broken

    def leftover(self, component: int) -> Floats:
        """Return float64[K], what `component` leaves of the scarcest resource, as a multiple of the largest request."""
        largest = self.requests.max(axis=0)[:, None]
        wanted = largest[:, 0] > 0
        rest = self.spare[wanted] - self.requests[component][wanted, None]
        share: Floats = np.minimum.reduce(rest / largest[wanted], axis=0, initial=1e6)
        return np.maximum(share, 0.0)

    def nodes(self) -> Indices:
        """Return int[J], the node of each component or -1."""
        where = self.where[: self.instance.components]
        return np.where(where >= 0, self.columns[where], -1)
