"""Bandwidth: what calls between nodes take from the budgets of both ends and of links, a penalty for what is too much.

A caller's demand is split over the endpoints that it reaches, in whole bit/s rounded up for every pair of pods, so that
sums are those of the cluster's own account. How calls are routed changes with every endpoint, so this is no mask.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from berth.network.routing import Routing
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Edge, Floats
from berth.scheduling.replicas.terms.links import Links

CHUNK = 1 << 20
"""Numbers that are looked at together at most."""
KNOWN = 1 << 22
"""Numbers of what edges take that are kept at most, 32 MiB; of further edges it is worked out each time"""
_EVEN = (Routing.ALL, Routing.LOCAL)
"""Routings under which it does not matter where others are called from"""


class Bandwidth:
    """Demand of all edges on budgets: of K nodes, then of the P links that may be too small."""

    def __init__(self, model: Model, x: Floats) -> None:
        """Share the counts with the books, float64[W, K]."""
        self._model, self._x = model, x
        self._leaving = model.leaving if model.leaving.any() else None
        problem = model.problem
        self._edges = [edge for edge in problem.edges if edge.bandwidth > 0]
        budget = problem.nodes.bandwidth
        most = self._most()
        self._links = Links(model, most)
        nodes = np.full(model.size, np.inf) if budget is None else budget[model.columns]
        self._budget: Floats = np.concatenate([nodes, self._links.free])
        """float64[K + P]"""
        # A node's budget carries a call within it twice.
        self.active = bool(self._edges) and bool(len(self._links.free) or nodes.min(initial=np.inf) < 2 * most)
        """whether some budget may be too small"""
        kept = min(len(self._edges), KNOWN // max(1, len(self._budget)))
        self._known: Floats = np.zeros((kept, len(self._budget)))
        """float64[kept, K + P], what each of the first edges takes, until a pod of one of its ends moves"""
        self._moved = set(range(kept))
        """edges of which it is no longer known"""
        self._numbers: list[list[int]] = [[] for _ in x]
        """edges of each workload"""
        for number, edge in enumerate(self._edges):
            for end in {edge.caller, edge.callee}:
                self._numbers[end].append(number)
        self._price = model.penalty / max((edge.bandwidth for edge in self._edges), default=1.0)
        self.allowed: Floats = np.maximum(self._budget, 0.0)
        """float64[K + P]; edges among placed pods may overdraw a budget, which then takes no more"""
        if self.active:
            self.allowed = np.maximum(self.allowed, self.usage())

    def _most(self) -> float:
        """bit/s that the calls of all replicas take at the most."""
        model = self._model
        count = (model.placed + model.leaving).sum(axis=1)
        for workload, replicas in zip(model.workload, model.replicas, strict=True):
            count[workload] += replicas
        # Rounding adds less than one bit/s per pair of pods.
        return float(sum(count[e.caller] * (e.bandwidth + count[e.callee]) for e in self._edges))

    def of(self, edge: Edge, callers: Floats, endpoints: Floats) -> Floats:
        """float64[..., K + P], what an edge takes of each budget; counts, without who leaves, are float64[..., K]."""
        model, routing = self._model, self._model.problem.workloads[edge.callee].routing
        if routing is Routing.LOCAL:
            return np.zeros(len(self._budget))
        if self._leaving is not None:
            callers, endpoints = callers + self._leaving[edge.caller], endpoints + self._leaving[edge.callee]
        total = endpoints.sum(axis=-1, keepdims=True)
        everybody = np.ceil(edge.bandwidth / np.maximum(total, 1))
        if routing is Routing.ALL:
            usage: Floats = everybody * (
                callers * (total - endpoints) + endpoints * (callers.sum(axis=-1, keepdims=True) - callers)
            )
            if not self._links.width:
                return usage
            return np.concatenate([usage, self._links.usage(everybody, callers, endpoints)], axis=-1)
        if routing is Routing.SAME_NODE:
            callers = callers * (endpoints == 0)
        here = endpoints @ model.service_incidence
        served = model.served(here)
        inside = np.ceil(edge.bandwidth / np.maximum(here, 1)) * served
        calling = callers @ model.service_incidence
        place = model.service_zone
        near: Floats = inside[..., place] * (
            callers * (here[..., place] - endpoints) + endpoints * (calling[..., place] - callers)
        )
        spilled = callers * ~served[..., place]
        far = everybody * (spilled * (total - endpoints) + endpoints * (spilled.sum(axis=-1, keepdims=True) - spilled))
        near += far
        if not self._links.width:
            return near
        links = self._links.usage_near(inside, callers, endpoints) + self._links.usage(everybody, spilled, endpoints)
        return np.concatenate([near, links], axis=-1)

    def _overdrawn(self, usage: Floats) -> Floats:
        """bit/s beyond the budgets; one that is overdrawn carries nothing more."""
        over: Floats = np.maximum(usage - self.allowed, 0.0).sum(axis=-1)
        return over

    def moved(self, workload: int) -> None:
        """Pods of a workload have come or gone: what its edges took is no longer known."""
        self._moved.update(number for number in self._numbers[workload] if number < len(self._known))

    def _now(self, number: int) -> Floats:
        """float64[K + P], what an edge takes as of now."""
        edge = self._edges[number]
        return self.of(edge, self._x[edge.caller], self._x[edge.callee])

    def _sum(self, numbers: Sequence[int]) -> Floats:
        """float64[K + P], what some edges take as of now."""
        while self._moved:
            number = self._moved.pop()
            self._known[number] = self._now(number)
        kept = len(self._known)
        total: Floats = self._known[[number for number in numbers if number < kept]].sum(axis=0)
        for number in numbers:
            if number >= kept:
                total += self._now(number)
        return total

    def usage(self) -> Floats:
        """float64[K + P], demand on each budget as of now."""
        return self._sum(range(len(self._edges)))

    def broken(self) -> float:
        """bit/s beyond the budgets."""
        return float(self._overdrawn(self.usage())) if self.active else 0.0

    def add(self, workload: int) -> Floats | float:
        """float64[K], exact change of the penalty for one more replica on each column."""
        edges, size = [self._edges[number] for number in self._numbers[workload]], self._model.size
        if not self.active or not edges:
            return 0.0
        usage = self.usage()
        fixed = usage - self._sum(self._numbers[workload])
        if all(self._model.problem.workloads[edge.callee].routing in _EVEN for edge in edges):
            return self._price * (self._evenly(workload, edges, fixed) - float(self._overdrawn(usage)))
        result: Floats = np.empty(size)
        step = max(1, CHUNK // (size + self._links.width))
        for start in range(0, size, step):
            rows = np.arange(start, min(size, start + step))
            counts = np.repeat(self._x[workload][None, :], len(rows), axis=0)
            counts[np.arange(len(rows)), rows] += 1
            after = np.repeat(fixed[None, :], len(rows), axis=0)
            for edge in edges:
                callers = counts if edge.caller == workload else self._x[edge.caller]
                endpoints = counts if edge.callee == workload else self._x[edge.callee]
                after += self.of(edge, callers, endpoints)
            result[rows] = self._overdrawn(after)
        return self._price * (result - float(self._overdrawn(usage)))

    def _evenly(self, workload: int, edges: Sequence[Edge], fixed: Floats) -> Floats:
        """float64[K], bit/s beyond the budgets with one more replica, whose calls go to all endpoints.

        It adds the same to every node but its own, wherever it is. `fixed` is float64[K + P], what other edges take.
        Each call takes of a node's budget what is between its pods there and those elsewhere, so all edges are one.
        """
        size, x = self._model.size, self._x if self._leaving is None else self._x + self._leaving
        own: Floats = x[workload]
        others: Floats = np.zeros(size)
        for edge in edges:
            if self._model.problem.workloads[edge.callee].routing is not Routing.LOCAL:
                out = edge.caller == workload
                other = x[edge.callee if out else edge.caller]
                others += np.ceil(edge.bandwidth / max(1.0, float((other if out else own).sum()) + (not out))) * other
        allowed, before = self.allowed[:size], fixed[:size]
        away, apart = others.sum() - others, own.sum() + 1 - own
        elsewhere = before + own * away + others * apart
        here = before + (own + 1) * away + others * (apart - 1)
        beyond = np.maximum(elsewhere - allowed, 0.0)
        result: Floats = beyond.sum() - beyond + np.maximum(here - allowed, 0.0)
        if self._links.width:
            result += self._links_evenly(own, others, fixed[size:] - self.allowed[size:])
        return result

    def _links_evenly(self, own: Floats, others: Floats, over: Floats) -> Floats:
        """float64[K], bit/s beyond those of links with one more replica, whose calls go to all endpoints.

        What calls take is a sum of products of pods at both ends, so all edges are one: with `others` at its other end.

        Args:
            own: float64[K], pods of the workload.
            others: float64[K], bit/s between each of them and all pods at the other ends of its edges.
            over: float64[P], what other edges take beyond the budgets.
        """
        location, links = self._model.location, self._links
        result: Floats = np.zeros(self._model.size)
        step = max(1, CHUNK // links.numbers)
        for start in range(0, self._model.locations, step):
            stop = min(self._model.locations, start + step)
            after = over + links.usage_with_one_more(own, others, range(start, stop))
            columns = np.flatnonzero((start <= location) & (location < stop))
            result[columns] = np.maximum(after, 0.0).sum(axis=1)[location[columns] - start]
            # On a node with pods of the other end, links inside the location take less.
            columns = columns[others[columns] > 0]
            for link, times in links.within:
                there = location[columns]
                taken = after[there - start, link[there]]
                less = others[columns] * times[there]
                result[columns] += np.maximum(taken - less, 0.0) - np.maximum(taken, 0.0)
        return result

    def value(self) -> float:
        """Penalty as of now."""
        return self._price * self.broken()
