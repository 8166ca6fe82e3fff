"""Books of one search over a shortlist of K nodes, kept as matrices of units by nodes.

The marginal cost of unit j on the k-th node, all others fixed, is

    static[j, k] + sum over placed neighbours i on w != k of traffic[j, i] * (tariff[k] + tariff[w]) + network[j, k]

With `received[j, k]` the traffic of j with units on k, the middle term is
``received[j].sum() * tariff[k] + received[j] @ tariff - 2 * received[j, k] * tariff[k]``: one row update per placed
unit keeps it current. A *mover* is one or several units on one node that change their node together; its rows are sums
of the rows of its units, less what they exchange among themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from controllers.placement.gang.ledger import SLACK

if TYPE_CHECKING:
    from controllers.placement.gang.instance import Bools, Floats, Indices, Instance

__all__ = ["BLOCKED", "Field"]

BLOCKED = 1e15
"""Cost of a node that a rule forbids; finite, so that sums over movers stay ordered."""


class Field:
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
        units, size, width = instance.units, instance.size, len(columns)
        self.where: Indices = np.full(size, -1, dtype=np.intp)
        """int[U'], column of each unit or -1."""
        self.requests: Floats = np.zeros((size, instance.requests.shape[1]))
        self.requests[:units] = instance.requests
        capacity = infrastructure.capacity[columns]
        self.spare: Floats = state.free[columns] + SLACK * capacity
        """float64[K, R], free below the threshold after what was placed."""
        self.extra: Floats | None = None
        """float64[K, R], what naming a node adds to `spare`."""
        if state.has_thresholds:
            reserve = state.reserve[columns]
            self.spare -= reserve
            if instance.application.named is not None:
                self.extra = reserve
        np.maximum(self.spare, 0.0, out=self.spare)
        price = infrastructure.price[columns]
        self.static: Floats = np.zeros((size, width))
        """float64[U', K], costs and guides that do not depend on other units, `BLOCKED` where a rule forbids."""
        self.static[:units] = instance.requests @ (weights.price * price).T
        self._guide(capacity, price)
        self._block()
        self._open_edges()
        for position, node in enumerate(fixed.tolist()):
            self.place(units + position, int(np.flatnonzero(columns == node)[0]))

    def _guide(self, capacity: Floats, price: Floats) -> None:
        """Set up the terms that look ahead: best fit, waste, balance, scarcity, nodes that selectors name."""
        instance, weights, state = self.instance, self.instance.weights, self.instance.state
        units = instance.units
        if weights.fit:
            share = (self.spare / np.where(capacity > 0, capacity, 1.0)).mean(axis=1)
            self.static[:units] += weights.fit * share
        if weights.scarcity:
            room = np.where(self.spare > 0, self.spare, np.inf)
            self.static[:units] += weights.scarcity * (instance.requests[:, None, :] / room).max(axis=2)
        if weights.avoid_named:
            score = state.named_score[self.columns]
            masks = instance.application.named
            if masks is not None:
                mine = np.stack([instance.named(unit) for unit in range(units)])[:, self.columns]  # type: ignore[arg-type]
                score = score + mine.any(axis=0)
                self.static[:units] += np.where(mine, 0.0, weights.avoid_named * np.minimum(score, 1.0))
            else:
                self.static[:units] += weights.avoid_named * np.minimum(score, 1.0)
        self.smallest: Floats | None = None
        if weights.waste and np.isfinite(state.smallest).any() and price.any():
            self.smallest = np.where(np.isfinite(state.smallest), state.smallest, 0.0) * (1 - 1e-9)
            self.value = weights.waste * price
            self.wasted: Floats = self._waste(self.spare, (self.spare * self.value).sum(axis=1))
        self.typical: Floats | None = None
        if weights.balance and state.typical.any():
            self.typical = 1.0 / np.where(state.typical > 0, state.typical, np.inf)
            self.unit_cost = weights.balance * float((state.typical * price.mean(axis=0)).sum())

    def _block(self) -> None:
        """Mark nodes that masks or the largest unit of a node forbid."""
        instance, columns = self.instance, self.columns
        application, limits = instance.application, instance.infrastructure.max_unit
        forbidden = np.zeros((instance.units, len(columns)), dtype=np.bool_)
        if application.allowed is not None:
            if instance.merged:
                for unit in range(instance.units):
                    mask = instance.allowed(unit)
                    assert mask is not None  # noqa: S101
                    forbidden[unit] = ~mask[columns]
            else:
                forbidden = ~application.allowed.masks[:, columns][application.allowed.group]
        if instance.state.has_max_unit:
            largest = instance.requests
            if instance.merged:
                largest = np.stack([instance.largest(unit) for unit in range(instance.units)])
            forbidden = forbidden | (largest[:, None, :] > limits[columns][None]).any(axis=2)
        self.static[: instance.units][forbidden] = BLOCKED
        self.bonus: Floats | None = None
        if self.extra is not None:
            named = np.stack([instance.named(unit) for unit in range(instance.units)])[:, columns]  # type: ignore[arg-type]
            self.bonus = np.zeros((instance.size, len(columns), self.extra.shape[1]))
            self.bonus[: instance.units] = named[:, :, None] * self.extra

    def _open_edges(self) -> None:
        """Set up traffic, network costs, hard limits and separation."""
        instance, columns = self.instance, self.columns
        state, infrastructure, weights = instance.state, instance.infrastructure, instance.weights
        size, width = instance.size, len(columns)
        self.traffic = instance.traffic if instance.has_traffic else None
        self.tariff: Floats = weights.bandwidth * infrastructure.bandwidth_price[columns]
        self.bandwidth: Floats = state.bandwidth_free[columns] * (1 + SLACK) - state.bandwidth_reserve[columns]
        """float64[K], free bandwidth below the threshold; a unit that names the node gets no more here."""
        self.received: Floats = np.zeros((size, width))
        """float64[U', K], traffic of each unit with the units on each node."""
        self.network: Floats | None = None
        """float64[U', K], weighted network cost of each unit's edges to placed units, were it on each node."""
        self.weight: Floats = weights.network * instance.weight
        self.distance: Floats | None = None
        places = infrastructure.location[columns]
        if instance.limit is not None or (weights.network and instance.has_weight and state.has_distance):
            self.distance = infrastructure.location_cost[places[:, None], places]
            np.fill_diagonal(self.distance, 0.0)
        if self.distance is not None and weights.network and instance.has_weight:
            self.network = np.zeros((size, width))
        self.limits: tuple[Indices, Indices, Floats] | None = None
        if instance.limit is not None:
            origin, target = np.nonzero(np.isfinite(instance.limit))
            self.limits = (origin, target, instance.limit[origin, target])
        links = infrastructure.links
        self.paths: Floats | None = None
        if links is not None and self.traffic is not None:
            self.paths = links.incidence(columns.astype(np.int32), infrastructure.location).astype(np.float64)
            self.link: Floats = state.link_free + SLACK * links.capacity

    def _waste(self, rest: Floats, value: Floats) -> Floats:
        """Return the charge for leftovers `rest` (..., R) worth `value` (...): all of it when no known unit fits."""
        stuck = (rest < self.smallest).any(axis=-1)
        charge: Floats = np.where(stuck, value, 0.0)
        return charge

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
        self.spare[column] -= sign * self.requests[unit]
        if self.smallest is not None:
            rest = self.spare[column]
            self.wasted[column] = self._waste(rest, rest @ self.value[column])
        if self.traffic is not None:
            away = self.received[unit]
            cut = sign * away
            cut[column] = 0.0
            self.bandwidth -= cut
            self.bandwidth[column] -= cut.sum()
            if self.paths is not None:
                self.link -= cut @ self.paths[column]
            self.received[:, column] += sign * self.traffic[unit]
        if self.network is not None:
            assert self.distance is not None  # noqa: S101
            self.network += (sign * self.weight[:, unit])[:, None] * self.distance[:, column]
            self.network += (sign * self.weight[unit])[:, None] * self.distance[column]

    def costs(self, unit: int) -> Floats:
        """Return float64[K], what the unplaced `unit` would add on each node, guides included, `BLOCKED` or more
        where it does not fit or a rule forbids it."""
        request = self.requests[unit]
        cost = self.static[unit].copy()
        room = self.spare if self.bonus is None else self.spare + self.bonus[unit]
        rest = room - request
        blocked = (rest < 0).any(axis=1)
        if self.smallest is not None:
            cost += self._waste(rest, (rest * self.value).sum(axis=1)) - self.wasted
        if self.typical is not None:
            before = (self.spare * self.typical).min(axis=1)
            cost += self.unit_cost * (before - (rest * self.typical).min(axis=1))
        if self.traffic is not None:
            received = self.received[unit]
            total = received.sum()
            if total > 0:
                cost += total * self.tariff + received @ self.tariff - 2 * received * self.tariff
                blocked |= total - received > self.bandwidth
                full = received > self.bandwidth
                if full.any():
                    # The neighbours' node cannot carry their end: the unit must join them.
                    full_columns = np.flatnonzero(full)
                    outside = np.ones(len(blocked), dtype=np.bool_)
                    if len(full_columns) == 1:
                        outside[full_columns] = False
                    blocked |= outside
                if self.paths is not None:
                    use = np.tensordot(self.paths, received, axes=([1], [0]))
                    blocked |= (use > self.link).any(axis=1)
        if self.network is not None:
            cost += self.network[unit]
        if self.limits is not None:
            blocked |= self._far(np.eye(1, self.where.size, unit), count=1)[0]
        if self.instance.apart is not None:
            blocked[self.where[self.instance.apart[unit] & (self.where >= 0)]] = True
        cost[blocked] += BLOCKED
        return cost

    def _far(self, movers: Floats, *, count: int) -> Bools:
        """Return bool[M, K]: would a hard limit between a member and a placed unit outside be broken?"""
        assert self.limits is not None  # noqa: S101
        assert self.distance is not None  # noqa: S101
        origin, target, limit = self.limits
        broken = np.zeros((count, self.spare.shape[0]))
        for inside, outside, table in ((origin, target, self.distance), (target, origin, self.distance.T)):
            home = self.where[outside]
            far = (table[:, home].T > limit[:, None]) & (home >= 0)[:, None]
            crossing = movers[:, inside] * (1 - movers[:, outside])
            broken += crossing @ far
        return broken > 0

    def moves(self, movers: Floats, homes: Indices) -> Floats:
        """Return float64[M, K], the change of cost when each mover goes to each node.

        `movers` is a 0/1 matrix [M, U'] of members on one node each, `homes` int[M] that node's column. Infeasible
        moves, and those to where the mover is, cost `BLOCKED` or more. Shared links are checked by `apply`.
        """
        index = np.arange(len(homes))
        requests = movers @ self.requests
        cost = movers @ self.static
        rest = self.spare[None] - requests[:, None]
        room = rest if self.bonus is None else rest + self._least_bonus(movers)
        blocked = (room < 0).any(axis=2)
        if self.smallest is not None:
            value = (self.spare * self.value).sum(axis=1) - requests @ self.value.T
            cost += self._waste(rest, value) - self.wasted
            back = self.spare[homes] + requests
            relief = self._waste(back, (back * self.value[homes]).sum(axis=1)) - self.wasted[homes]
            cost += relief[:, None]
            cost[index, homes] -= relief + self._waste(rest[index, homes], value[index, homes]) - self.wasted[homes]
        if self.typical is not None:
            now = (self.spare * self.typical).min(axis=1)
            spent = self.unit_cost * (now - (rest * self.typical).min(axis=2))
            gained = self.unit_cost * (((self.spare[homes] + requests) * self.typical).min(axis=1) - now[homes])
            spent[index, homes] = gained
            cost += spent
        if self.traffic is not None:
            received = movers @ self.received
            received[index, homes] -= ((movers @ self.traffic) * movers).sum(axis=1)
            total = received.sum(axis=1)
            cost += total[:, None] * self.tariff - 2 * received * self.tariff
            blocked |= total[:, None] - 2 * received > self.bandwidth
            at_home = received[index, homes]
            stays = 2 * at_home - total > self.bandwidth[homes]
            blocked |= stays[:, None]
        if self.network is not None:
            assert self.distance is not None  # noqa: S101
            cost += movers @ self.network
            internal = ((movers @ self.weight) * movers).sum(axis=1)[:, None]
            cost -= internal * (self.distance[homes] + self.distance[:, homes].T)
        if self.limits is not None:
            blocked |= self._far(movers, count=len(homes))
        if self.instance.apart is not None:
            occupied = np.zeros((self.where.size, self.spare.shape[0]))
            placed = np.flatnonzero(self.where >= 0)
            occupied[placed, self.where[placed]] = 1.0
            blocked |= (movers @ self.instance.apart @ occupied) > 0
        change = cost - cost[index, homes][:, None]
        change[blocked] += BLOCKED
        change[index, homes] = BLOCKED
        return change

    def _least_bonus(self, movers: Floats) -> Floats:
        """Return float64[M, K, R], the part of the threshold that every member of a mover may exceed."""
        assert self.bonus is not None  # noqa: S101
        return np.stack([self.bonus[np.flatnonzero(row)].min(axis=0) for row in movers])

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

    def total(self) -> float:
        """Return objective plus guides of all placed units, comparable between searches of one instance."""
        placed = np.flatnonzero(self.where[: self.instance.units] >= 0)
        homes = self.where[placed]
        cost = float(self.static[placed, homes].sum())
        if self.traffic is not None:
            received = self.received[placed]
            away = received.sum(axis=1) - received[np.arange(len(placed)), homes]
            cost += float((away * self.tariff[homes]).sum())
            for fixed in range(self.instance.units, self.instance.size):
                column = int(self.where[fixed])
                outside = self.received[fixed].sum() - self.received[fixed, column]
                cost += float(outside * self.tariff[column])
        if self.network is not None:
            fixed_share = self.network[self.instance.units :]
            homes_fixed = self.where[self.instance.units :]
            inner = float(self.network[placed, homes].sum())
            outer = float(fixed_share[np.arange(len(homes_fixed)), homes_fixed].sum())
            cost += (inner + outer) / 2
        if self.smallest is not None:
            touched = np.unique(homes)
            held = np.zeros_like(self.spare)
            np.add.at(held, homes, self.requests[placed])
            start = self.spare[touched] + held[touched]
            first = self._waste(start, (start * self.value[touched]).sum(axis=1))
            cost += float((self.wasted[touched] - first).sum())
        if self.typical is not None:
            touched = np.unique(homes)
            held = np.zeros_like(self.spare)
            np.add.at(held, homes, self.requests[placed])
            start = ((self.spare[touched] + held[touched]) * self.typical).min(axis=1)
            cost += self.unit_cost * float((start - (self.spare[touched] * self.typical).min(axis=1)).sum())
        return cost

    def nodes(self) -> Indices:
        """Return int[U], the node of each unit or -1."""
        where = self.where[: self.instance.units]
        return np.where(where >= 0, self.columns[where], -1)
