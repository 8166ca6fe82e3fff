"""Endpoint load: how unevenly the replicas of a workload are called where its Service keeps calls near.

Every edge into a workload brings one unit of calls, spread evenly over its callers. The term of a callee is
``n * sum(share**2) - 1`` over its n replicas: 0 when all get the same. Calls that are dropped (internalTrafficPolicy
Local) count for nobody, the shares are those of the calls that arrive.

With S the calls that spill to all endpoints and T all that arrive, the sum over zones and nodes collapses to
``(n * E + 2 * S * T - S**2) / T**2 - 1``, where E depends on each zone (node) by itself.
"""

from __future__ import annotations

import numpy as np

from berth.network.routing import Routing
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Bools, Floats

NOTHING = 1e-12
"""Calls that may be rounding."""

Amount = Floats | float
Parts = tuple[Floats, Amount, Amount, Bools, Floats, Floats]
"""E by zone, S, T, served zones, and calls by zone from columns with and without endpoints."""


def _term(endpoints: float, energy: Amount, spilled: Amount, arrived: Amount) -> Amount:
    """The term of one callee; 0 where nothing arrives."""
    some = np.maximum(arrived, 1e-100)
    value = (endpoints * energy + spilled * (2 * arrived - spilled)) / (some * some) - 1
    return np.where(np.asarray(arrived) > NOTHING, value, 0.0)


def parts_of(model: Model, routing: Routing, x: Floats, here: Floats, q: Floats, place: Floats) -> Parts:
    """What the term of a callee is made of.

    Args:
        model: service zones.
        routing: of the callee's Service.
        x: float64[..., K], endpoints by column.
        here: float64[..., S], by service zone.
        q: float64[..., K], calls by column.
        place: float64[..., S], by service zone.
    """
    served = model.served(here)
    inside: Floats = np.zeros(model.service_zones)
    energy: Floats = np.zeros(model.service_zones)
    if routing is not Routing.SAME_ZONE:
        held = x > 0
        inside = (q * held) @ model.service_incidence
        energy = np.where(held, q * q / np.where(held, x, 1.0), 0.0) @ model.service_incidence
    if routing is Routing.LOCAL:
        return energy, 0.0, inside.sum(axis=-1), served, inside, np.zeros(model.service_zones)
    outside = place - inside
    energy = energy + np.where(served, (2 * inside + outside) * outside / np.where(served, here, 1.0), 0.0)
    spilled = np.where(served, 0.0, outside).sum(axis=-1)
    return energy, spilled, place.sum(axis=-1), served, inside, outside


def load_of(endpoints: float, parts: Parts) -> Amount:
    """The term of a callee with so many endpoints."""
    energy, spilled, arrived, *_ = parts
    return _term(endpoints, energy.sum(axis=-1), spilled, arrived)


def _zone_parts(calls: list[float], here: list[float]) -> tuple[float, float, float]:
    """E, S and T where calls are kept in zones."""
    energy = spilled = arrived = 0.0
    for amount, count in zip(calls, here, strict=True):
        if amount:
            arrived += amount
            if count:
                energy += amount * amount / count
            else:
                spilled += amount
    return energy, spilled, arrived


def _number(endpoints: float, energy: float, spilled: float, arrived: float) -> float:
    """The term of one callee as a plain number."""
    if arrived <= NOTHING:
        return 0.0
    return (endpoints * energy + spilled * (2 * arrived - spilled)) / (arrived * arrived) - 1


class Load:
    """Calls of every workload whose Service keeps them near."""

    def __init__(self, model: Model, x: Floats, by_service: Floats, total: list[float]) -> None:
        """Share the counts with the books: float64[W, K], float64[W, S] and replicas per workload."""
        self._model, self._price = model, model.problem.prices.load
        self._x, self._by_service, self._total = x, by_service, total
        near = [workload.routing is not Routing.ALL for workload in model.problem.workloads]
        self.callees = [row for row, kept in enumerate(near) if kept and model.called[row]]
        """workloads that have such a term"""
        self._all_zoned = model.all_zoned
        self._routing = [workload.routing for workload in model.problem.workloads]
        self._row = {callee: row for row, callee in enumerate(self.callees)}
        self._q: Floats = np.zeros((len(self.callees), model.size))
        self._place: Floats = np.zeros((len(self.callees), model.service_zones))
        self._share: Floats = np.zeros_like(by_service)
        """float64[W, S], shares of callers that are part of the calls as of now"""
        self._calls = [
            [(callee, model.callees[w].count(callee)) for callee in dict.fromkeys(model.callees[w]) if near[callee]]
            for w in range(len(x))
        ]

    def sync(self, workload: int, change: Floats) -> None:
        """Take over a workload's changed counts, and the change of its shares by column."""
        if not self._calls[workload]:
            return
        share = self._by_service[workload] / (self._total[workload] or 1.0)
        service_change = share - self._share[workload]
        self._share[workload] = share
        for callee, times in self._calls[workload]:
            if self._routing[callee] is not Routing.SAME_ZONE:
                self._q[self._row[callee]] += times * change
            self._place[self._row[callee]] += times * service_change

    def add(self, workload: int, share: Floats) -> Amount:
        """float64[K], exact change for one more replica of the workload on each column.

        `share` is what `sync` last saw of the workload.
        """
        if not self._price or not self.callees:
            return 0.0
        total, routing = self._total[workload], self._routing
        level = [0.0] * self._model.service_zones
        change: Amount = 0.0
        if workload in self._row and total:
            if routing[workload] is Routing.SAME_ZONE:
                level = self._zone_endpoint(workload)
            else:
                change = self._endpoint(workload)
        here, seen = self._by_service[workload].tolist(), self._share[workload].tolist()
        for callee, times in self._calls[workload]:
            if not self._total[callee]:
                continue
            row = self._row[callee]
            if routing[callee] is Routing.SAME_ZONE:
                more = self._zone_caller(callee, times, total, here, seen)
                level = [a + b for a, b in zip(level, more, strict=True)]
                continue
            q = self._q[row] + times * (self._x[workload] / (total or 1) - share)
            place = self._place[row] + times * (self._by_service[workload] / (total or 1) - self._share[workload])
            change = change + self._caller(callee, workload, q, place, times)
        if any(level):
            change = change + np.array(level).take(self._model.service_zone)
        return self._price * change if isinstance(change, np.ndarray) else change

    def _blind(self, here: list[float]) -> bool:
        """Whether an endpoint without a zone makes calls go to all; `here` are endpoints by zone."""
        return not self._all_zoned and any(
            count and not kept for count, kept in zip(here, self._model.zone_list, strict=True)
        )

    def _zone_endpoint(self, callee: int) -> list[float]:
        """Change for one more endpoint in each zone, calls kept in zones; in plain numbers as there are few."""
        total, zoned = self._total[callee], self._model.zone_list
        calls, here = self._place[self._row[callee]].tolist(), self._by_service[callee].tolist()
        if self._blind(here):
            return [0.0] * len(here)
        energy, spilled, arrived = _zone_parts(calls, here)
        now = _number(total, energy, spilled, arrived)
        level = [_number(total + 1, energy, spilled, arrived) - now] * len(here)
        for z, (amount, count) in enumerate(zip(calls, here, strict=True)):
            if not zoned[z]:
                # Calls go to all endpoints then.
                level[z] = -now
            elif amount and count:
                gain = amount * amount * (1 / (count + 1) - 1 / count)
                level[z] = _number(total + 1, energy + gain, spilled, arrived) - now
            elif amount:
                level[z] = _number(total + 1, energy + amount * amount, spilled - amount, arrived) - now
        return level

    def _zone_caller(self, callee: int, times: int, total: float, mine: list[float], seen: list[float]) -> list[float]:
        """Change for one more caller in each zone, calls kept in zones.

        `mine` are the callers by zone, `seen` their shares that are part of the calls as of now.
        """
        endpoints = self._total[callee]
        calls, here = self._place[self._row[callee]].tolist(), self._by_service[callee].tolist()
        if self._blind(here):
            return [0.0] * len(here)
        before, after, step, crowd = calls.copy(), calls, times / (total + 1), total or 1
        for z, (count, share) in enumerate(zip(mine, seen, strict=True)):
            if count or share:
                before[z] += times * (count / crowd - share)
                after[z] += step * count - times * share
        now = _number(endpoints, *_zone_parts(before, here))
        energy, spilled, arrived = _zone_parts(after, here)
        level = [_number(endpoints, energy, spilled + step, arrived + step) - now] * len(here)
        for z, count in enumerate(here):
            if count:
                gain = (2 * after[z] * step + step * step) / count
                level[z] = _number(endpoints, energy + gain, spilled, arrived + step) - now
        return level

    def value(self, callee: int) -> float:
        """What the callee costs now."""
        if callee not in self._row or not self._total[callee]:
            return 0.0
        row = self._row[callee]
        if self._routing[callee] is Routing.SAME_ZONE:
            calls, here = self._place[row].tolist(), self._by_service[callee].tolist()
            return 0.0 if self._blind(here) else self._price * _number(self._total[callee], *_zone_parts(calls, here))
        return self._price * float(self._now(callee, self._q[row], self._place[row]))

    def _now(self, callee: int, q: Floats, place: Floats) -> Amount:
        return load_of(self._total[callee], self._parts(callee, q, place))

    def _parts(self, callee: int, q: Floats, place: Floats) -> Parts:
        routing = self._model.problem.workloads[callee].routing
        return parts_of(self._model, routing, self._x[callee], self._by_service[callee], q, place)

    def _endpoint(self, callee: int) -> Amount:
        """Change for one more endpoint of the callee on each column."""
        row, model = self._row[callee], self._model
        q, place = self._q[row], self._place[row]
        energy, spilled, arrived, served, inside, outside = self._parts(callee, q, place)
        total = self._total[callee]
        if arrived <= NOTHING and not (q > NOTHING).any():
            return 0.0
        now = _term(total, float(energy.sum()), spilled, arrived)
        routing = model.problem.workloads[callee].routing
        zone = model.service_zone
        x, here = self._x[callee], self._by_service[callee]
        after = here + 1
        held = x > 0
        alone = np.where(held, 0.0, q)
        own = np.where(held, q * q * (1 / (x + 1) - 1 / np.where(held, x, 1.0)), q * q)
        if routing is Routing.LOCAL:
            return _term(total + 1, float(energy.sum()) + own, 0.0, arrived + alone) - now
        before = np.where(served, (2 * inside + outside) * outside / np.where(served, here, 1.0), 0.0)
        within, left = inside[zone] + alone, outside[zone] - alone
        rest = (2 * within + left) * left / after[zone]
        less = np.where(served[zone], 0.0, outside[zone])
        changed = float(energy.sum()) + own - before[zone] + rest
        spilling = spilled - less
        if not model.zoned.all():
            # Without a zone the endpoint, or one that is there already, makes calls go to all.
            everywhere = ~model.zoned[zone] | bool((here[~model.zoned] > 0).any())
            changed = np.where(everywhere, float(energy.sum() - before.sum()) + own, changed)
            spilling = np.where(everywhere, float(outside.sum()) - alone, spilling)
        return _term(total + 1, changed, spilling, arrived) - now

    def _caller(self, callee: int, workload: int, q: Floats, place: Floats, times: int) -> Amount:
        """Change for one more caller on each column; `q` and `place` are the calls as of now."""
        model, total = self._model, self._total[workload]
        now = self._now(callee, q, place)
        step = times / (total + 1)
        if total:
            shrink = times * (1 / (total + 1) - 1 / total)
            q = q + shrink * self._x[workload]
            place = place + shrink * self._by_service[workload]
        energy, spilled, arrived, served, inside, outside = self._parts(callee, q, place)
        sum_energy, endpoints = float(energy.sum()), self._total[callee]
        x, here = self._x[callee], self._by_service[callee]
        routing, zone = model.problem.workloads[callee].routing, model.service_zone
        crowd = np.where(served, here, 1.0)
        held = x > 0
        own = np.where(held, (2 * q * step + step * step) / np.where(held, x, 1.0), 0.0)
        if routing is Routing.LOCAL:
            return _term(endpoints, sum_energy + own, 0.0, arrived + step * held) - now
        near = np.where(served, step * 2 * outside / crowd, 0.0)[zone]
        far = np.where(served, step * (2 * inside + 2 * outside + step) / crowd, 0.0)[zone]
        more = np.where(held | served[zone], 0.0, step)
        gain = np.where(held, own + near, far)
        return _term(endpoints, sum_energy + gain, spilled + more, arrived + step) - now
