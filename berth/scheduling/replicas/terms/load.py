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


def _zone_parts(zones: list[int], calls: list[float], here: list[float]) -> tuple[float, float, float]:
    """E, S and T where calls are kept in zones; `zones` are those with calls."""
    energy = spilled = arrived = 0.0
    for z in zones:
        amount = calls[z]
        arrived += amount
        if here[z]:
            energy += amount * amount / here[z]
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

    def __init__(self, model: Model, counts: Floats, shares: Floats, total: list[float]) -> None:
        """Share the counts with the books, float64[W, K + L + S], replicas per workload, and shares of the callers.

        The shares are those that are part of the calls as of now.
        """
        self._model, self._price, self._total = model, model.problem.prices.load, total
        self._x, _, self._by_service = model.split(counts)
        self._shares, _, self._by_zone = model.split(shares)
        near = [workload.routing is not Routing.ALL for workload in model.problem.workloads]
        self.callees = [row for row, kept in enumerate(near) if kept and model.called[row]]
        """workloads that have such a term"""
        self._all_zoned = model.all_zoned
        self._routing = [workload.routing for workload in model.problem.workloads]
        self._row = {callee: row for row, callee in enumerate(self.callees)}
        self._incoming: Floats = np.zeros((len(self.callees), counts.shape[1]))
        self._q, _, self._place = model.split(self._incoming)
        self._calls = [
            [(callee, model.callees[w].count(callee)) for callee in dict.fromkeys(model.callees[w]) if near[callee]]
            for w in range(len(counts))
        ]

    def sync(self, workload: int, change: Floats) -> None:
        """Take over the change of a workload's shares, float64[K + L + S]."""
        for callee, times in self._calls[workload]:
            self._incoming[self._row[callee]] += change if times == 1 else times * change

    def add(self, workload: int) -> Amount:
        """float64[K], exact change for one more replica of the workload on each column."""
        if not self._price or not self.callees:
            return 0.0
        total, routing = self._total[workload], self._routing
        change: Amount = 0.0
        # The change in every zone, and what is more in some: of many zones few have calls or endpoints.
        anywhere, by_zone = 0.0, dict[int, float]()
        if workload in self._row and total:
            if routing[workload] is Routing.SAME_ZONE:
                anywhere = self._zone_endpoint(workload, by_zone)
            else:
                change = self._endpoint(workload)
        for callee, times in self._calls[workload]:
            if not self._total[callee]:
                continue
            row = self._row[callee]
            if routing[callee] is Routing.SAME_ZONE:
                anywhere += self._zone_caller(callee, times, workload, by_zone)
                continue
            q = self._q[row] + times * (self._x[workload] / (total or 1) - self._shares[workload])
            place = self._place[row] + times * (self._by_service[workload] / (total or 1) - self._by_zone[workload])
            change = change + self._caller(callee, workload, q, place, times)
        if anywhere or by_zone:
            level: Floats = np.empty(self._model.service_zones)
            level.fill(anywhere)
            for zone, more in by_zone.items():
                level[zone] += more
            change = change + level.take(self._model.service_zone)
        return self._price * change

    def _blind(self, callee: int) -> bool:
        """Whether an endpoint without a zone makes calls go to all."""
        return not self._all_zoned and bool((self._by_service[callee][~self._model.zoned] > 0).any())

    def _zone_endpoint(self, callee: int, by_zone: dict[int, float]) -> float:
        """Change for one more endpoint in any zone, calls kept in zones; adds to `by_zone` what is more in some."""
        total, place = self._total[callee], self._place[self._row[callee]]
        if self._blind(callee):
            return 0.0
        zones, calls, here = place.nonzero()[0].tolist(), place.tolist(), self._by_service[callee].tolist()
        energy, spilled, arrived = _zone_parts(zones, calls, here)
        now = _number(total, energy, spilled, arrived)
        elsewhere = _number(total + 1, energy, spilled, arrived)
        for z in zones:
            amount, count = calls[z], here[z]
            if count:
                gain = amount * amount * (1 / (count + 1) - 1 / count)
                then = _number(total + 1, energy + gain, spilled, arrived)
            else:
                then = _number(total + 1, energy + amount * amount, spilled - amount, arrived)
            by_zone[z] = by_zone.get(z, 0.0) + then - elsewhere
        for z, zoned in enumerate(() if self._all_zoned else self._model.zone_list):
            if not zoned:
                # Calls go to all endpoints then.
                by_zone[z] = -elsewhere
        return elsewhere - now

    def _zone_caller(self, callee: int, times: int, caller: int, by_zone: dict[int, float]) -> float:
        """Change for one more caller in any zone, calls kept in zones; adds to `by_zone` what is more in some."""
        endpoints, total, place = self._total[callee], self._total[caller], self._place[self._row[callee]]
        if self._blind(callee):
            return 0.0
        at, mine = self._by_service[callee], self._by_service[caller]
        zones, served = (place + mine).nonzero()[0].tolist(), at.nonzero()[0].tolist()
        calls, here, counts, seen = place.tolist(), at.tolist(), mine.tolist(), self._by_zone[caller].tolist()
        before, after, step, crowd = calls.copy(), calls, times / (total + 1), total or 1
        for z in zones:
            # `seen` are the caller's shares that are part of the calls as of now.
            before[z] += times * (counts[z] / crowd - seen[z])
            after[z] += step * counts[z] - times * seen[z]
        now = _number(endpoints, *_zone_parts(zones, before, here))
        energy, spilled, arrived = _zone_parts(zones, after, here)
        elsewhere = _number(endpoints, energy, spilled + step, arrived + step)
        for z in served:
            gain = (2 * after[z] * step + step * step) / here[z]
            then = _number(endpoints, energy + gain, spilled, arrived + step)
            by_zone[z] = by_zone.get(z, 0.0) + then - elsewhere
        return elsewhere - now

    def value(self, callee: int) -> float:
        """What the callee costs now."""
        if callee not in self._row or not self._total[callee]:
            return 0.0
        row = self._row[callee]
        if self._routing[callee] is Routing.SAME_ZONE:
            if self._blind(callee):
                return 0.0
            place, here = self._place[row], self._by_service[callee].tolist()
            parts = _zone_parts(place.nonzero()[0].tolist(), place.tolist(), here)
            return self._price * _number(self._total[callee], *parts)
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
