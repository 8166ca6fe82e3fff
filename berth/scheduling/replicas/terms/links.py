"""Budgets of links between locations: what calls take of each, for the term of bandwidth.

A share is the bit/s of one caller towards one endpoint. Between two locations calls of both directions add up; inside
one, those that stay on their node take nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Floats, Ints


class Links:
    """Those links of a problem that its calls may overflow."""

    def __init__(self, model: Model, most: float) -> None:
        """Look for links with less left than `most`, bit/s that all calls together take at the most."""
        nodes = model.problem.nodes
        present = np.unique(nodes.location[model.columns])
        number = {location: row for row, location in enumerate(present.tolist())}
        tight = [link for link in nodes.links if link.free < most]
        between = [[(number[a], number[b]) for a, b in link.between if {a, b} <= number.keys()] for link in tight]
        kept = [(link, pairs) for link, pairs in zip(tight, between, strict=True) if pairs]
        self.free: Floats = np.array([link.free for link, _ in kept], dtype=np.float64)
        """float64[P], bit/s left of each"""
        used = {pair: row for row, pair in enumerate(sorted({pair for _, pairs in kept for pair in pairs}))}
        ends = np.array(list(used), dtype=np.int64).reshape(-1, 2)
        self.width = len(used)
        """Q, pairs of locations that some link is between"""
        self._first: Ints = ends[:, 0]
        self._second: Ints = ends[:, 1]
        """int64[Q], both ends of each of these pairs"""
        self._apart: Floats = (self._first != self._second).astype(np.float64)
        self._rows: Ints = np.array([used[pair] for _, pairs in kept for pair in pairs], dtype=np.int64)
        """rows of the pairs that use each link, link after link"""
        counts = [len(pairs) for _, pairs in kept]
        self._starts: Ints = np.cumsum([0, *counts[:-1]]) if counts else np.zeros(0, dtype=np.int64)
        """int64[P], where those of each link begin"""
        self._incidence = model.incidence
        self.numbers = max(model.locations, len(self._rows))
        """numbers that are held at once for what calls of one location take"""
        self.within = _within([pairs for _, pairs in kept], model.locations)
        """links inside each location, int64[L], and how often, float64[L]: first of each, second of each, ..."""
        self._service: Ints = model.service_of[self._first]
        self._one_service: Floats = (self._service == model.service_of[self._second]).astype(np.float64)

    def usage(self, share: Floats, callers: Floats, endpoints: Floats) -> Floats:
        """float64[..., P], what calls take if each goes to all endpoints.

        Args:
            share: float64[..., 1], bit/s of each pair of pods.
            callers: float64[..., K].
            endpoints: float64[..., K].
        """
        return self._by_link(share * self._pairs(callers, endpoints))

    def usage_near(self, share: Floats, callers: Floats, endpoints: Floats) -> Floats:
        """The same if calls stay in their service zone; `share` is float64[..., S], 0 where a zone has no endpoint."""
        near = share[..., self._service] * self._one_service
        return self._by_link(near * self._pairs(callers, endpoints))

    def usage_with_one_more(self, moved: Floats, others: Floats, locations: range) -> Floats:
        """float64[N, P], the first if one end of edges had one more pod in a location, on a node without other ends.

        With pods of other ends on its node, `within` times that amount less.

        Args:
            moved: float64[K], pods of that end as of now.
            others: float64[K], bit/s between each of these and all pods of the other ends.
            locations: N of them.
        """
        incidence = self._incidence
        more = np.eye(len(locations), incidence.shape[1], locations.start)
        counts = moved @ incidence + more, (others @ incidence)[None, :]
        return self._by_link(self._between(*counts, ((moved * others) @ incidence)[None, :]))

    def _by_link(self, amounts: Floats) -> Floats:
        """float64[..., P], what is taken of each link by all pairs of locations, float64[..., Q]."""
        taken: Floats = np.add.reduceat(amounts[..., self._rows], self._starts, axis=-1)
        return taken

    def _pairs(self, callers: Floats, endpoints: Floats) -> Floats:
        """float64[..., Q], pairs of a caller and an endpoint on different nodes of each pair of locations."""
        incidence = self._incidence
        return self._between(callers @ incidence, endpoints @ incidence, (callers * endpoints) @ incidence)

    def _between(self, calling: Floats, called: Floats, together: Floats) -> Floats:
        """The same, of pods and of pairs of pods on one node by location, float64[..., L]."""
        first, second, apart = self._first, self._second, self._apart
        there = calling[..., first] * called[..., second]
        back = calling[..., second] * called[..., first]
        pairs: Floats = there + apart * back - (1 - apart) * together[..., first]
        return pairs


def _within(between: Sequence[Sequence[tuple[int, int]]], locations: int) -> list[tuple[Ints, Floats]]:
    """Links inside each location, int64[L], and how often, float64[L]: first of each, second of each, ...

    Where a location has fewer, it is any link, 0 times.
    """
    times = Counter((a, link) for link, pairs in enumerate(between) for a, b in pairs if a == b)
    inside: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for (location, link), count in times.items():
        inside[location].append((link, count))
    result = []
    for rank in range(max(map(len, inside.values()), default=0)):
        links, counts = np.zeros(locations, dtype=np.int64), np.zeros(locations)
        for location, found in inside.items():
            if rank < len(found):
                links[location], counts[location] = found[rank]
        result.append((links, counts))
    return result
