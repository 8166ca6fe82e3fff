"""Which endpoints a caller reaches, and what that costs: in counts of replicas by node, never in pairs of pods.

A caller's calls go evenly to the endpoints that it reaches. Which ones, kube-proxy decides on the caller's node (its
``CategorizeEndpoints``, Kubernetes 1.36):

=============  ======================================================================================================
All            every endpoint
SameZone       those of the caller's zone; all of them if there is none there, or if the caller's node has no zone
SameNode       those of the caller's node; without any, as SameZone
Local          those of the caller's node, or none: the call fails
=============  ======================================================================================================

Zones count only while **every** endpoint is in one: a single endpoint on a node without the label
``topology.kubernetes.io/zone`` gets no hint, and kube-proxy then ignores those of the others too. Endpoints are taken
to be ready: a placement is judged by what it will be when its pods run.

Arrays run over N nodes, Z zones and L locations. A zone is what kube-proxy compares (the zone label alone), a location
what costs are stated for (region, zone and segment).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
import numpy.typing as npt

from berth.network.costs import UNKNOWN_COST, Place

Counts = npt.NDArray[np.int64] | npt.NDArray[np.float64]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32] | npt.NDArray[np.int64]


class Routing(StrEnum):
    """How a Service chooses the endpoint of a call."""

    ALL = "All"
    """every endpoint alike"""
    SAME_ZONE = "PreferSameZone"
    """the caller's zone before all"""
    SAME_NODE = "PreferSameNode"
    """the caller's node before its zone before all"""
    LOCAL = "Local"
    """the caller's node alone"""


class Scope(IntEnum):
    """How far the calls of one caller go."""

    NOWHERE = 0
    """to no endpoint"""
    NODE = 1
    """to the endpoints of its node"""
    ZONE = 2
    """to those of its zone"""
    CLUSTER = 3
    """to all of them"""


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Where calls to a workload go, by the caller's node; made by :func:`reach`."""

    endpoints: Floats
    """float64[N], endpoints on each node"""
    zone: Ints
    """int[N], zone of each node, -1 without one"""
    by_zone: Floats
    """float64[Z], endpoints in each zone"""
    scope: Ints
    """int[N], the :class:`Scope` of a caller on each node"""

    @property
    def total(self) -> float:
        """All endpoints."""
        return float(self.endpoints.sum())

    @property
    def reached(self) -> Floats:
        """float64[N], how many endpoints a caller on each node reaches."""
        everywhere = np.full_like(self.endpoints, self.total)
        reached: Floats = np.choose(
            self.scope, (np.zeros_like(everywhere), self.endpoints, self._of_zone(self.by_zone), everywhere)
        )
        return reached

    def shares(self, node: int) -> Floats:
        """float64[N], the share of a caller's calls that goes to each node's endpoints; sums to 1, or to 0."""
        scope = self.scope[node]
        if scope == Scope.NOWHERE:
            return np.zeros_like(self.endpoints)
        if scope == Scope.NODE:
            within = np.arange(len(self.endpoints)) == node
        elif scope == Scope.ZONE:
            within = self.zone == self.zone[node]
        else:
            within = np.ones(len(self.endpoints), dtype=np.bool_)
        met = np.where(within, self.endpoints, 0.0)
        shares: Floats = met / met.sum()
        return shares

    def mean_costs(self, *, location: Ints, location_cost: Floats) -> Floats:
        """float64[N], the mean network cost of a call from each node; 0 to the own node.

        A call that reaches nothing costs :func:`unreachable_cost`. Without any endpoint there are no calls: 0.

        Args:
            location: int[N], location of each node.
            location_cost: float64[L, L], cost from location to location.
        """
        if not self.total:
            return np.zeros_like(self.endpoints)
        own = self.endpoints * location_cost[location, location]
        count = len(location_cost)
        everywhere = location_cost @ np.bincount(location, self.endpoints, minlength=count)
        costs = np.full(len(own), unreachable_cost(location_cost))
        costs[self.scope == Scope.NODE] = 0.0
        far = self.scope == Scope.CLUSTER
        costs[far] = (everywhere[location[far]] - own[far]) / self.total
        near = self.scope == Scope.ZONE
        if near.any():
            # A zone is nearly always one location; the table serves zones whose name several regions use.
            table = self._by_zone_and_location(location, count)
            within = (table @ location_cost.T)[self.zone[near], location[near]]
            costs[near] = (within - own[near]) / self.by_zone[self.zone[near]]
        return costs

    def loads(self, callers: Counts) -> Floats:
        """float64[N], the calls that each endpoint of a node gets when every caller makes one.

        Args:
            callers: [N], callers on each node, or the calls that they make together.
        """
        taken = np.where(self.endpoints > 0, callers, 0.0) * (self.scope == Scope.NODE)
        loads = np.divide(taken, self.endpoints, out=np.zeros_like(self.endpoints), where=self.endpoints > 0)
        near = self.scope == Scope.ZONE
        if near.any():
            calls = np.bincount(self.zone[near], np.asarray(callers, dtype=float)[near], minlength=len(self.by_zone))
            each = np.divide(calls, self.by_zone, out=np.zeros_like(calls), where=self.by_zone > 0)
            loads += self._of_zone(each)
        far = self.scope == Scope.CLUSTER
        if far.any() and self.total:
            loads += np.sum(callers, where=far) / self.total
        return np.where(self.endpoints > 0, loads, 0.0)

    def _of_zone(self, values: Floats) -> Floats:
        """float64[N], the value of each node's zone, 0 without one."""
        known = self.zone >= 0
        return np.where(known, values[np.where(known, self.zone, 0)], 0.0) if len(values) else np.zeros(len(self.zone))

    def _by_zone_and_location(self, location: Ints, count: int) -> Floats:
        """float64[Z, L], endpoints of each zone by location."""
        known = self.zone >= 0
        cells = self.zone[known] * count + location[known]
        flat = np.bincount(cells, self.endpoints[known], minlength=len(self.by_zone) * count)
        return flat.astype(np.float64).reshape(len(self.by_zone), count)


def reach(routing: Routing, endpoints: Counts, zone: Ints) -> Reach:
    """Work out which endpoints callers on every node reach.

    Args:
        routing: how the callee's Service routes; ALL where it has none.
        endpoints: [N], replicas of the callee on each node.
        zone: int[N], zone of each node, -1 for a node without the label; zones are numbered from 0.
    """
    counts = np.asarray(endpoints, dtype=np.float64)
    known = zone >= 0
    by_zone = np.bincount(zone[known], counts[known]).astype(np.float64)
    scope = np.full(len(counts), Scope.CLUSTER if counts.any() else Scope.NOWHERE, dtype=np.int64)
    met = Reach(counts, zone, by_zone, scope)
    if routing in (Routing.SAME_ZONE, Routing.SAME_NODE) and not counts[~known].any():
        scope[met._of_zone(by_zone) > 0] = Scope.ZONE
    elif routing is Routing.LOCAL:
        scope[:] = Scope.NOWHERE
    if routing in (Routing.SAME_NODE, Routing.LOCAL):
        scope[counts > 0] = Scope.NODE
    return met


def zone_numbers(places: Sequence[Place]) -> npt.NDArray[np.int64]:
    """Number the zones of places, -1 without one; one name is one zone in whatever regions: kube-proxy sees no more."""
    names = {name: number for number, name in enumerate(dict.fromkeys(place.zone for place in places if place.zone))}
    return np.array([names.get(place.zone, -1) for place in places], dtype=np.int64)


def reached_by_zone(callers: Ints, endpoints: Ints) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which endpoints callers reach where the zone decides, bool[C, K], and who is kept in its zone, bool[C].

    Args:
        callers: int[C], zone of each caller, -1 for none.
        endpoints: int[K], likewise.
    """
    near = (callers[:, None] == endpoints) & bool((endpoints >= 0).all())
    kept = near.any(axis=1)
    return near | ~kept[:, None], kept


def unreachable_cost(location_cost: Floats) -> float:
    """Return what a call costs that reaches no endpoint: as the dearest way there is, and 100 at least.

    It fails, so no figure is right. This one is never below what a call could cost, so that no placement gains by
    cutting callers off; and it is finite, so that of two placements the one that cuts off fewer is better.
    maxNetworkCost, a limit on distance, does not speak of such calls.
    """
    return max(UNKNOWN_COST, float(location_cost.max(initial=0.0)))


def edge_cost(callers: Counts, costs: Floats) -> float:
    """Return the mean cost of an edge's calls, each caller making as many; 0 without callers.

    Args:
        callers: [N], callers on each node.
        costs: float64[N], mean cost of a call from each node.
    """
    count = float(np.sum(callers))
    return float(np.dot(callers, costs)) / count if count else 0.0
