"""Endpoint load: how unevenly the replicas of a workload are called where its Service keeps calls near.

Every edge into a workload brings one unit of calls, spread evenly over its callers. The term of a callee is
``n * sum(share**2) - 1`` over its n replicas: 0 when all get the same. Calls that are dropped (internalTrafficPolicy
Local) count for nobody, the shares are those of the calls that arrive.

With S the calls that spill to all endpoints and T all that arrive, the sum over zones and nodes collapses to
``(n * E + 2 * S * T - S**2) / T**2 - 1``, where E depends on each zone (node) by itself.
"""

from __future__ import annotations

import numpy as np

from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Bools, Floats, Routing

Amount = Floats | float


def _term(endpoints: float, energy: Amount, spilled: Amount, arrived: Amount) -> Amount:
    """The term of one callee; 0 where nothing arrives."""
    some = np.maximum(arrived, 1e-100)
    value = (endpoints * energy + spilled * (2 * arrived - spilled)) / (some * some) - 1
    return np.where(np.asarray(arrived) > 1e-12, value, 0.0)


class Load:
    """Calls of every workload whose Service keeps them near."""

    def __init__(self, model: Model, x: Floats, by_location: Floats, total: list[float]) -> None:
        """Share the counts with the books: float64[W, K], float64[W, L] and replicas per workload."""
        self._model, self._price = model, model.problem.prices.load
        self._x, self._by_location, self._total = x, by_location, total
        near = [workload.routing is not Routing.ALL for workload in model.problem.workloads]
        self.callees = [row for row, kept in enumerate(near) if kept and model.called[row]]
        """workloads that have such a term"""
        self._row = {callee: row for row, callee in enumerate(self.callees)}
        self._q: Floats = np.zeros((len(self.callees), model.size))
        self._place: Floats = np.zeros((len(self.callees), model.locations))
        self._calls = [
            [(callee, model.callees[w].count(callee)) for callee in dict.fromkeys(model.callees[w]) if near[callee]]
            for w in range(len(x))
        ]

    def sync(self, workload: int, change: Floats, location_change: Floats) -> None:
        """Take over the change of a workload's shares by column and by location."""
        for callee, times in self._calls[workload]:
            self._q[self._row[callee]] += times * change
            self._place[self._row[callee]] += times * location_change

    def add(self, workload: int, share: Floats, location_share: Floats) -> Amount:
        """float64[K], exact change for one more replica of the workload on each column.

        `share` and `location_share` are what `sync` last saw of the workload.
        """
        if not self._price or not self.callees:
            return 0.0
        change: Amount = 0.0
        if workload in self._row and self._total[workload]:
            change = self._endpoint(workload)
        total = self._total[workload]
        for callee, times in self._calls[workload]:
            if not self._total[callee]:
                continue
            row = self._row[callee]
            q = self._q[row] + times * (self._x[workload] / (total or 1) - share)
            place = self._place[row] + times * (self._by_location[workload] / (total or 1) - location_share)
            change = change + self._caller(callee, workload, q, place, times)
        return self._price * change if isinstance(change, np.ndarray) else change

    def value(self, callee: int) -> float:
        """What the callee costs now."""
        if callee not in self._row or not self._total[callee]:
            return 0.0
        row = self._row[callee]
        return self._price * float(self._now(callee, self._q[row], self._place[row]))

    def _now(self, callee: int, q: Floats, place: Floats) -> Amount:
        energy, spilled, arrived, *_ = self._parts(callee, q, place)
        return _term(self._total[callee], float(energy.sum()), spilled, arrived)

    def _parts(self, callee: int, q: Floats, place: Floats) -> tuple[Floats, float, float, Bools, Floats, Floats]:
        """E by location, S, T, served locations, and calls by location from columns with and without endpoints."""
        model, routing = self._model, self._model.problem.workloads[callee].routing
        x, here = self._x[callee], self._by_location[callee]
        served = (here > 0) & model.zoned
        inside: Floats = np.zeros(model.locations)
        energy: Floats = np.zeros(model.locations)
        if routing is not Routing.ZONE:
            held = x > 0
            inside = self._summed(q * held)
            squares = np.where(held, q * q / np.where(held, x, 1.0), 0.0)
            energy = self._summed(squares)
        if routing is Routing.LOCAL:
            return energy, 0.0, float(inside.sum()), served, inside, np.zeros(model.locations)
        outside = place - inside
        energy = energy + np.where(served, (2 * inside + outside) * outside / np.where(served, here, 1.0), 0.0)
        return energy, float(outside[~served].sum()), float(place.sum()), served, inside, outside

    def _summed(self, by_column: Floats) -> Floats:
        """float64[L]: amounts by column added up by location."""
        summed: Floats = np.bincount(self._model.location, weights=by_column, minlength=self._model.locations).astype(
            np.float64, copy=False
        )
        return summed

    def _endpoint(self, callee: int) -> Amount:
        """Change for one more endpoint of the callee on each column."""
        row, model = self._row[callee], self._model
        q, place = self._q[row], self._place[row]
        energy, spilled, arrived, served, inside, outside = self._parts(callee, q, place)
        total = self._total[callee]
        if arrived <= 1e-12 and not (q > 1e-12).any():
            return 0.0
        now = _term(total, float(energy.sum()), spilled, arrived)
        routing = model.problem.workloads[callee].routing
        location = model.location
        x, here = self._x[callee], self._by_location[callee]
        after = here + 1
        if routing is Routing.ZONE:
            opened = model.zoned & ~served
            gain = np.where(served, place * place * (1 / after - 1 / np.where(served, here, 1.0)), 0.0)
            gain += np.where(opened, place * place, 0.0)
            less = np.where(opened, place, 0.0)
            changed = _term(total + 1, float(energy.sum()) + gain, spilled - less, arrived)
            return np.asarray(changed - now)[location]
        held = x > 0
        alone = np.where(held, 0.0, q)
        own = np.where(held, q * q * (1 / (x + 1) - 1 / np.where(held, x, 1.0)), q * q)
        if routing is Routing.LOCAL:
            return _term(total + 1, float(energy.sum()) + own, 0.0, arrived + alone) - now
        before = np.where(served, (2 * inside + outside) * outside / np.where(served, here, 1.0), 0.0)
        within, left = inside[location] + alone, outside[location] - alone
        rest = np.where(model.zoned[location], (2 * within + left) * left / after[location], 0.0)
        opened = (model.zoned & ~served)[location]
        less = np.where(opened, outside[location], np.where(model.zoned[location], 0.0, alone))
        changed = float(energy.sum()) + own - before[location] + rest
        return _term(total + 1, changed, spilled - less, arrived) - now

    def _caller(self, callee: int, workload: int, q: Floats, place: Floats, times: int) -> Amount:
        """Change for one more caller on each column; `q` and `place` are the calls as of now."""
        model, total = self._model, self._total[workload]
        now = self._now(callee, q, place)
        step = times / (total + 1)
        if total:
            shrink = times * (1 / (total + 1) - 1 / total)
            q = q + shrink * self._x[workload]
            place = place + shrink * self._by_location[workload]
        energy, spilled, arrived, served, inside, outside = self._parts(callee, q, place)
        sum_energy, endpoints = float(energy.sum()), self._total[callee]
        x, here = self._x[callee], self._by_location[callee]
        routing, location = model.problem.workloads[callee].routing, model.location
        crowd = np.where(served, here, 1.0)
        if routing is Routing.ZONE:
            gain = np.where(served, (2 * place * step + step * step) / crowd, 0.0)
            more = np.where(served, 0.0, step)
            changed = _term(endpoints, sum_energy + gain, spilled + more, arrived + step)
            return np.asarray(changed - now)[location]
        held = x > 0
        own = np.where(held, (2 * q * step + step * step) / np.where(held, x, 1.0), 0.0)
        if routing is Routing.LOCAL:
            return _term(endpoints, sum_energy + own, 0.0, arrived + step * held) - now
        near = np.where(served, step * 2 * outside / crowd, 0.0)[location]
        far = np.where(served, step * (2 * inside + 2 * outside + step) / crowd, 0.0)[location]
        more = np.where(held | served[location], 0.0, step)
        gain = np.where(held, own + near, far)
        return _term(endpoints, sum_energy + gain, spilled + more, arrived + step) - now
