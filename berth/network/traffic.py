"""What the calls of a placed AppGroup cost, as Services route them: in counts of replicas by node.

The figures are those of docs/concepts/replicas.md: the cost of an edge is the mean over its callers of the mean over
the endpoints that each of them reaches, and all edges count alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from berth.network.groups import GroupEdge
from berth.network.routing import Floats, Ints, Reach, Routing, Scope, reach, unreachable_cost
from berth.network.sites import Placed, Sites


@dataclass(frozen=True, slots=True)
class EdgeTraffic:
    """The calls of one workload to another; both have placed pods."""

    caller: str
    """workload that calls"""
    callee: str
    """workload that is called"""
    routing: Routing
    """how its endpoints are chosen"""
    cost: float
    """mean network cost of a call"""
    cross_zone: float
    """share of the calls that leave the caller's zone; a node without a zone is a zone of its own"""
    failed: float
    """share of the calls that reach no endpoint (internalTrafficPolicy Local)"""


def mean_cost(edges: Iterable[EdgeTraffic]) -> float:
    """The mean edge cost, 0 without edges."""
    return fmean([edge.cost for edge in edges] or [0.0])


def cross_zone_share(edges: Iterable[EdgeTraffic]) -> float:
    """The share of all calls that leave the caller's zone, 0 without edges."""
    return fmean([edge.cross_zone for edge in edges] or [0.0])


class Traffic:
    """Edges of one placed AppGroup, by callee: where a caller's calls go depends on that alone."""

    def __init__(self, edges: Iterable[GroupEdge], placed: Placed, sites: Sites) -> None:
        """Prepare; edges without a placed pod at both ends have no calls.

        Args:
            edges: the dependencies of the AppGroup.
            placed: its pods.
            sites: the nodes of the cluster: the dearest way there is what a failing call costs.
        """
        self.edges = [edge for edge in edges if placed.get(edge.dependent) and placed.get(edge.dependency)]
        """edges with calls"""
        self._sites = sites
        self._callers: defaultdict[str, list[str]] = defaultdict(list)
        for caller, callee in dict.fromkeys((edge.dependent, edge.dependency) for edge in self.edges):
            self._callers[callee].append(caller)
        self._pods = {
            workload: (
                np.array([sites.row[node] for node in placed[workload]], dtype=np.int64),
                np.array([*placed[workload].values()], dtype=np.float64),
            )
            for workload in {end for edge in self.edges for end in (edge.dependent, edge.dependency)}
        }
        self._scenes: dict[str, _Scene] = {}

    def routed(self, routing: Callable[[str], Routing]) -> list[EdgeTraffic]:
        """Every edge with calls; `routing` says how calls to a workload are routed."""
        found = {callee: self.to(callee, routing(callee)) for callee in self._callers}
        return [found[edge.dependency][edge.dependent] for edge in self.edges]

    def to(self, callee: str, routing: Routing) -> Mapping[str, EdgeTraffic]:
        """The edges to one workload, by caller, if its calls were routed like this."""
        scene = self._scene(callee)
        met = reach(routing, scene.endpoints, scene.zone)
        paid = met.mean_costs(location=scene.location, location_cost=scene.location_cost)
        failing = met.scope == Scope.NOWHERE
        if failing.any():
            paid[failing] = unreachable_cost(self._sites.location_cost)
        shares = scene.callers @ np.column_stack((paid, _cross_zone(met), failing))
        return {
            caller: EdgeTraffic(caller, callee, routing, *share)
            for caller, share in zip(self._callers[callee], shares.tolist(), strict=True)
        }

    def busiest(self, callee: str, routing: Routing) -> float:
        """Calls of the most loaded endpoint of a workload as a multiple of the mean over its endpoints.

        Every edge brings as many calls, and every replica of a caller makes as many of them; those that fail are left
        out. 0 where no call arrives.
        """
        scene = self._scene(callee)
        met = reach(routing, scene.endpoints, scene.zone)
        loads = met.loads(scene.callers.sum(axis=0))
        arrived = float(loads @ met.endpoints)
        return float(loads.max()) * met.total / arrived if arrived else 0.0

    def _scene(self, callee: str) -> _Scene:
        if callee not in self._scenes:
            callers = [self._pods[caller] for caller in self._callers[callee]]
            self._scenes[callee] = _Scene.of(self._pods[callee], callers, self._sites)
        return self._scenes[callee]


_Pods = tuple[Ints, Floats]
"""Rows of nodes, and pods on each."""


@dataclass(frozen=True, slots=True, eq=False)
class _Scene:
    """A callee, its callers and the n nodes that they use; locations and zones are numbered anew, there are few."""

    endpoints: Floats
    """float64[n]"""
    callers: Floats
    """float64[callers, n], each caller's pods as shares of all its pods"""
    location: Ints
    """int[n]"""
    location_cost: Floats
    """float64[l, l]"""
    zone: Ints
    """int[n], -1 without one"""

    @classmethod
    def of(cls, callee: _Pods, callers: Sequence[_Pods], sites: Sites) -> _Scene:
        """Gather what matters."""
        nodes, at = np.unique(np.concatenate([rows for rows, _ in (callee, *callers)]), return_inverse=True)
        counts = np.zeros((1 + len(callers), len(nodes)))
        begin = 0
        for number, (rows, pods) in enumerate((callee, *callers)):
            counts[number, at[begin : begin + len(rows)]] = pods if number == 0 else pods / pods.sum()
            begin += len(rows)
        places, location = np.unique(sites.location[nodes], return_inverse=True)
        zones, zone = np.unique(sites.zone[nodes], return_inverse=True)
        return cls(
            endpoints=counts[0],
            callers=counts[1:],
            location=location,
            location_cost=sites.location_cost[places[:, None], places],
            zone=zone - int(zones[0] < 0),
        )


def _cross_zone(met: Reach) -> Floats:
    """float64[N], the share of a caller's calls on each node that leaves its zone."""
    here = met.endpoints.copy()
    known = met.zone >= 0
    here[known] = met.by_zone[met.zone[known]]
    crossing: Floats = np.where(met.scope == Scope.CLUSTER, 1.0 - here / met.total, 0.0)
    return crossing
