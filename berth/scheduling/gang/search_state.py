"""Books of one search over a shortlist of K nodes, kept as matrices of units by nodes.

The marginal cost of unit j on the k-th node, all others fixed, is

    static[j, k] + sum over placed neighbours i on w != k of traffic[j, i] * (tariff[k] + tariff[w]) + network[j, k]

With `received[j, k]` the traffic of j with units on k, the middle term is
``received[j].sum() * tariff[k] + received[j] @ tariff - 2 * received[j, k] * tariff[k]``: one row update per placed
unit keeps it current. A *mover* is one or several units on one node that change their node together; its rows are sums
of the rows of its units, less what they exchange among themselves. Resource arrays are [R, K]: sums over R are short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.gang.heuristics import Balance, Waste, static_heuristics
from berth.scheduling.gang.placement_state import SLACK

if TYPE_CHECKING:
    from berth.scheduling.gang.instance import Bools, Floats, Indices, Instance

__all__ = ["BLOCKED", "SearchState"]

BLOCKED = 1e15
"""Cost of a node that a rule forbids; finite, so that sums over movers stay ordered."""


class SearchState:
    """Search books over the nodes `columns`; units are placed by position in `columns`."""

    def __init__(self, instance: Instance, columns: Indices) -> None:
        """Open the books; nodes of fixed units are appended to `columns` when they are missing."""
        fixed = instance.fixed_nodes
        if fixed.size:
            columns = np.concatenate([columns, np.setdiff1d(fixed, columns)])
        state, infrastructure, weights = instance.state, instance.infrastructure, instance.weights
        self.instance = instance
        self.columns: Indices = columns
        """int[K], node of each column."""
        units, size = instance.units, instance.size
        self.where: Indices = np.full(size, -1, dtype=np.intp)
        """int[U'], column of each unit or -1."""
        self.requests: Floats = instance.requests
        if size > units:
            self.requests = np.concatenate([instance.requests, np.zeros((size - units, instance.requests.shape[1]))])
        free = np.maximum((state.free[columns] + SLACK * infrastructure.capacity[columns]).T, 0.0, order="C")
        self.spare: Floats = free
        """float64[R, K], free below the threshold after what was placed."""
        if state.has_thresholds:
            self.spare = np.maximum(free - state.reserve[columns].T, 0.0, order="C")
        self.static: Floats = np.zeros((size, len(columns)))
        """float64[U', K], costs and guides that do not depend on other units, `BLOCKED` where a rule forbids."""
        if instance.has_price:
            self.static[:units] = instance.requests @ (weights.price * infrastructure.price[columns]).T
        self.static[:units] += static_heuristics(instance, columns, self.spare)
        self.waste = Waste(instance, columns) if Waste.wanted(instance) else None
        self.balance = Balance(instance, columns) if Balance.wanted(instance, self.spare) else None
        self.wasted: Floats = np.zeros(len(columns)) if self.waste is None else self.waste.everywhere(self.spare)
        self._block(free)
        self._open_edges()
        for position, node in enumerate(fixed.tolist()):
            self.place(units + position, int(np.flatnonzero(columns == node)[0]))

    def _block(self, free: Floats) -> None:
        """Mark nodes that masks or the largest unit of a node forbid, and what naming a node adds up to `free`."""
        instance, columns, units = self.instance, self.columns, self.instance.units
        application, state = instance.application, instance.state
        if application.allowed is not None:
            if instance.merged:
                rows = np.stack([instance.permits(unit)[columns] for unit in range(units)])
            else:
                rows = application.allowed.masks[:, columns][application.allowed.group]
            self.static[:units][~rows] = BLOCKED
        if state.has_max_unit:
            largest = np.stack([instance.largest(unit) for unit in range(units)])
            limits = instance.infrastructure.max_unit[columns]
            self.static[:units][(largest[:, None, :] > limits[None]).any(axis=2)] = BLOCKED
        self.bonus: Floats | None = None
        """float64[U', R, K], room above the threshold of nodes that a unit names; None when nobody names any."""
        if application.named is not None and state.has_thresholds:
            named = np.stack([instance.names(unit)[columns] for unit in range(units)])
            self.bonus = np.zeros((instance.size, *self.spare.shape))
            self.bonus[:units] = named[:, None, :] * (free - self.spare)

    def _open_edges(self) -> None:
        """Set up traffic, network costs, hard limits and separation."""
        instance, columns = self.instance, self.columns
        state, infrastructure, weights = instance.state, instance.infrastructure, instance.weights
        shape = (instance.size, len(columns))
        links = infrastructure.links
        self.traffic: Floats | None = None
        """float64[U', U'], bandwidth demand; None when there is none, or when it is neither limited nor charged."""
        if instance.has_traffic:
            self.tariff: Floats = weights.bandwidth * infrastructure.bandwidth_price[columns]
            self.bandwidth: Floats = state.bandwidth_free[columns] * (1 + SLACK) - state.bandwidth_reserve[columns]
            """float64[K], free bandwidth below the threshold; a unit that names the node gets no more here."""
            if links is not None or self.tariff.any() or not np.isposinf(self.bandwidth).all():
                self.traffic = instance.traffic
        if self.traffic is not None:
            self.received: Floats = np.zeros(shape)
            """float64[U', K], traffic of each unit with the units on each node."""
            self.heard: Floats = np.zeros(instance.size)
            """float64[U'], traffic of each unit with all placed units."""
        self.distance: Floats | None = None
        if instance.limit is not None or instance.has_network:
            places = infrastructure.location[columns]
            self.distance = infrastructure.location_cost[places[:, None], places]
            np.fill_diagonal(self.distance, 0.0)
        self.network: Floats | None = None
        """float64[U', K], weighted network cost of each unit's edges to placed units, were it on each node."""
        if instance.has_network:
            self.network = np.zeros(shape)
            self.weight: Floats = weights.network * instance.weight
            self.mutual: Floats = self.weight + self.weight.T
        self.limits: tuple[Indices, Indices, Floats] | None = None
        # No limit can be broken among nodes that are all near enough, such as those of one location.
        if instance.limit is not None and self.distance is not None and instance.limit.min() < self.distance.max():
            origin, target = np.nonzero(np.isfinite(instance.limit))
            self.limits = (origin, target, instance.limit[origin, target])
        self.paths: Floats | None = None
        if links is not None and self.traffic is not None:
            self.paths = links.incidence(columns.astype(np.int32), infrastructure.location).astype(np.float64)
            self.link: Floats = state.link_free + SLACK * links.capacity

    def place(self, unit: int, column: int) -> None:
        """Put `unit` on the node of `column`."""
        self.where[unit] = column
        self._book(unit, column, 1.0)

    def remove(self, unit: int) -> int:
        """Take `unit` back and return its column."""
        column = int(self.where[unit])
        self.where[unit] = -1
        self._book(unit, column, -1.0)
        return column

    def _book(self, unit: int, column: int, sign: float) -> None:
        self.spare[:, column] -= sign * self.requests[unit]
        if self.waste is not None:
            self.wasted[column] = self.waste.on(self.spare[:, column].tolist(), column)
        if self.traffic is not None:
            if self.heard[unit] > 0:
                cut = sign * self.received[unit]
                cut[column] = sign * self.heard[unit] - cut[column]
                self.bandwidth -= cut
                if self.paths is not None:
                    cut[column] = 0.0
                    self.link -= cut @ self.paths[column]
            share = sign * self.traffic[unit]
            self.received[:, column] += share
            self.heard += share
        if self.network is not None:
            assert self.distance is not None  # noqa: S101
            rows = self.instance.neighbours(unit)
            if self.instance.state.symmetric:
                self.network[rows] += (sign * self.mutual[rows, unit, None]) * self.distance[column]
            else:
                inward, outward = sign * self.weight[rows, unit, None], sign * self.weight[unit, rows, None]
                self.network[rows] += inward * self.distance[:, column] + outward * self.distance[column]

    def costs(self, unit: int) -> Floats:
        """Return float64[K], what the unplaced `unit` would add on each node, guides included, `BLOCKED` or more
        where it does not fit or a rule forbids it."""
        blocked: Bools | None = None
        if self.limits is not None:
            blocked = self._far_from(unit)
        if self.instance.apart is not None:
            blocked = np.zeros(len(self.columns), dtype=np.bool_) if blocked is None else blocked
            blocked[self.where[self.instance.apart[unit] & (self.where >= 0)]] = True
        return self._enter(
            self.requests[unit],
            self.static[unit],
            None if self.traffic is None else (self.received[unit], float(self.heard[unit])),
            None if self.network is None else self.network[unit],
            None if self.bonus is None else self.bonus[unit],
            blocked,
        )

    def joint_costs(self) -> Floats:
        """Return float64[K], what all units together would add on each node while none is placed yet."""
        units = self.instance.units
        blocked: Bools | None = None
        if self.limits is not None:
            member = np.zeros((1, self.where.size))
            member[0, :units] = 1.0
            blocked = self._far(member)[0]
        if self.instance.apart is not None:
            blocked = np.ones(len(self.columns), dtype=np.bool_)
        return self._enter(
            self.requests.sum(axis=0),
            self.static[:units].sum(axis=0),
            None if self.traffic is None else (self.received[:units].sum(axis=0), float(self.heard[:units].sum())),
            None if self.network is None else self.network[:units].sum(axis=0),
            None if self.bonus is None else self.bonus[:units].min(axis=0),
            blocked,
        )

    def _enter(
        self,
        request: Floats,
        static: Floats,
        traffic: tuple[Floats, float] | None,
        network: Floats | None,
        bonus: Floats | None,
        blocked: Bools | None,
    ) -> Floats:
        """Return float64[K], the cost of adding one unit, or several at once, from these rows of the books."""
        rest = self.spare - request[:, None]
        full = np.logical_or.reduce((rest if bonus is None else rest + bonus) < 0, axis=0)
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
                cost += (away - received) * self.tariff
                cost += received @ self.tariff
                full |= away > self.bandwidth
                over = received > self.bandwidth
                if np.count_nonzero(over):
                    # The neighbours' node cannot carry their end: the unit must join them.
                    full |= ~over if np.count_nonzero(over) == 1 else True
                if self.paths is not None:
                    use = np.tensordot(self.paths, received, axes=([1], [0]))
                    full |= ((use > self.link) & (use > 0)).any(axis=1)
        if network is not None:
            cost += network
        cost += full * BLOCKED
        return cost

    def _far_from(self, unit: int) -> Bools:
        """Return bool[K]: would a hard limit between `unit` and a placed unit be broken?"""
        assert self.instance.limit is not None  # noqa: S101
        assert self.distance is not None  # noqa: S101
        others = self.instance.neighbours(unit)
        homes = self.where[others]
        others, homes = others[homes >= 0], homes[homes >= 0]
        far = self.distance[homes] > self.instance.limit[others, unit, None]
        far |= self.instance.limit[unit, others, None] < self.distance[:, homes].T
        broken: Bools = np.logical_or.reduce(far, axis=0)
        return broken

    def _far(self, movers: Floats) -> Bools:
        """Return bool[M, K]: would a hard limit between a member and a placed unit outside be broken?"""
        assert self.limits is not None  # noqa: S101
        assert self.distance is not None  # noqa: S101
        origin, target, limit = self.limits
        broken = np.zeros((len(movers), len(self.columns)))
        for inside, outside, table in ((origin, target, self.distance), (target, origin, self.distance.T)):
            home = self.where[outside]
            far = (limit[:, None] < table[:, home].T) & (home >= 0)[:, None]
            crossing = movers[:, inside] * (1 - movers[:, outside])
            broken += crossing @ far
        return broken > 0

    def moves(self, movers: Floats, homes: Indices) -> Floats:
        """Return float64[M, K], the change of cost when each mover goes to each node.

        `movers` is a 0/1 matrix [M, U'] of members on one node each, `homes` int[M] that node's column. Infeasible
        moves, and those to where the mover is, cost `BLOCKED` or more. Shared links are checked by `apply`.
        """
        forbidden = np.zeros((len(homes), len(self.columns)), dtype=np.bool_)
        if self.limits is not None:
            forbidden |= self._far(movers)
        if self.instance.apart is not None:
            occupied = np.zeros((self.where.size, len(self.columns)))
            placed = np.flatnonzero(self.where >= 0)
            occupied[placed, self.where[placed]] = 1.0
            forbidden |= (movers @ self.instance.apart @ occupied) > 0
        return self._shift(
            homes,
            forbidden,
            (movers @ self.requests).T,
            movers @ self.static,
            None if self.bonus is None else self._least_bonus(movers),
            None if self.traffic is None else (movers @ self.received, ((movers @ self.traffic) * movers).sum(axis=1)),
            None if self.network is None else (movers @ self.network, ((movers @ self.weight) * movers).sum(axis=1)),
        )

    def change(self, members: Indices, home: int) -> Floats:
        """Return float64[K], the row of `moves` for one mover given by its members."""
        if self.limits is not None or self.instance.apart is not None or self.bonus is not None:
            mover = np.zeros((1, self.where.size))
            mover[0, members] = 1.0
            row: Floats = self.moves(mover, np.array([home]))[0]
            return row
        traffic = network = None
        block = np.ix_(members, members)
        if self.traffic is not None:
            traffic = (self.received[members].sum(axis=0, keepdims=True), self.traffic[block].sum(keepdims=True)[0])
        if self.network is not None:
            network = (self.network[members].sum(axis=0, keepdims=True), self.weight[block].sum(keepdims=True)[0])
        only: Floats = self._shift(
            np.array([home]),
            np.zeros((1, len(self.columns)), dtype=np.bool_),
            self.requests[members].sum(axis=0)[:, None],
            self.static[members].sum(axis=0, keepdims=True),
            None,
            traffic,
            network,
        )[0]
        return only

    def _shift(
        self,
        homes: Indices,
        blocked: Bools,
        requests: Floats,
        cost: Floats,
        bonus: Floats | None,
        traffic: tuple[Floats, Floats] | None,
        network: tuple[Floats, Floats] | None,
    ) -> Floats:
        """Return float64[M, K], the change of cost for movers given by the sums of their rows in the books.

        `traffic` and `network` come with what the members of each mover exchange among themselves, counted in both
        directions. `blocked` and `cost` are overwritten.
        """
        index = np.arange(len(homes))
        stay = cost[index, homes]
        rest = self.spare[:, None, :] - requests[:, :, None]
        blocked |= np.logical_or.reduce((rest if bonus is None else rest + bonus) < 0, axis=0)
        back = self.spare[:, homes] + requests
        if self.waste is not None:
            cost += self.waste.everywhere(rest)
            cost -= self.wasted
            stay -= self.waste.at(back, homes) - self.wasted[homes]
        if self.balance is not None:
            now = self.balance.worth(self.spare)
            cost += now - self.balance.worth(rest)
            stay += self.balance.worth(back) - now[homes]
        if traffic is not None:
            received, internal = traffic
            received[index, homes] -= internal
            total = received.sum(axis=1)
            at_home = received[index, homes]
            extra = total[:, None] - 2 * received
            cost += extra * self.tariff
            stay += (total - 2 * at_home) * self.tariff[homes]
            blocked |= extra > self.bandwidth
            blocked |= (2 * at_home - total > self.bandwidth[homes])[:, None]
        if network is not None:
            assert self.distance is not None  # noqa: S101
            near, internal = network
            cost += near - internal[:, None] * (self.distance[homes] + self.distance[:, homes].T)
            stay += near[index, homes]
        cost -= stay[:, None]
        cost += blocked * BLOCKED
        cost[index, homes] = BLOCKED
        return cost

    def _least_bonus(self, movers: Floats) -> Floats:
        """Return float64[R, M, K], the room above thresholds that every member of a mover may use."""
        assert self.bonus is not None  # noqa: S101
        return np.stack([self.bonus[np.flatnonzero(row)].min(axis=0) for row in movers], axis=1)

    def apply(self, members: Indices, column: int) -> bool:
        """Move `members` to the node of `column`; undone and False when a shared link would overflow."""
        before = [self.remove(unit) for unit in members.tolist()]
        for unit in members.tolist():
            self.place(unit, column)
        if self.paths is None or (self.link >= 0).all():
            return True
        for unit in members.tolist():
            self.remove(unit)
        for unit, home in zip(members.tolist(), before, strict=True):
            self.place(unit, home)
        return False

    def leftover(self, unit: int) -> Floats:
        """Return float64[K], what is left of the scarcest resource after `unit`, in units of the largest request."""
        largest = self.requests.max(axis=0)[:, None]
        wanted = largest[:, 0] > 0
        rest = self.spare[wanted] - self.requests[unit][wanted, None]
        share: Floats = np.minimum.reduce(rest / largest[wanted], axis=0, initial=1e6)
        return np.maximum(share, 0.0)

    def standing(self, units: Indices) -> Floats:
        """Return float64[len(units), K], the cost of each unit on each node, all others fixed; limits are ignored."""
        cost = self.static[units]
        if self.traffic is not None:
            received = self.received[units]
            cost += (received.sum(axis=1)[:, None] - 2 * received) * self.tariff
        if self.network is not None:
            cost += self.network[units]
        return cost

    def tie(self, units: Indices) -> Floats:
        """Return float64[len(units), len(units)], what the edges between two units cost where they are."""
        homes, block = self.where[units], np.ix_(units, units)
        cost = np.zeros((len(units), len(units)))
        if self.traffic is not None:
            cost += self.traffic[block] * (self.tariff[homes][:, None] + self.tariff[homes]) / 2
        if self.network is not None:
            assert self.distance is not None  # noqa: S101
            cost += self.weight[block] * self.distance[homes[:, None], homes]
        return cost

    def swap(self, first: int, second: int) -> float:
        """Exchange the nodes of two units; undone (and 0.0) unless that is allowed and lowers the cost."""
        here, there = self.remove(first), self.remove(second)
        before = self._join(((first, here), (second, there)))
        self.remove(first)
        self.remove(second)
        after = self._join(((first, there), (second, here)))
        if after < before - 1e-9:
            return after - before
        for unit in (first, second):
            if self.where[unit] >= 0:
                self.remove(unit)
        self.place(first, here)
        self.place(second, there)
        return 0.0

    def _join(self, wanted: tuple[tuple[int, int], ...]) -> float:
        """Place units at columns and return what that adds; stops at the first that is not allowed there."""
        added = 0.0
        for unit, column in wanted:
            added += float(self.costs(unit)[column])
            if added >= BLOCKED / 2:
                return added
            self.place(unit, column)
        return added

    def nodes(self) -> Indices:
        """Return int[U], the node of each unit or -1."""
        where = self.where[: self.instance.units]
        return np.where(where >= 0, self.columns[where], -1)
