"""Which nodes maxNetworkCost forbids a pod: by the endpoints that are reached, not by all there are.

A pod that is about to be placed has two roles: it calls placed endpoints, and placed callers call it. It must not reach
an endpoint beyond a limit, nor may a caller because of it, which it did not reach before: mostly the pod itself, but an
endpoint on a node without a zone also sends callers of all zones to all other endpoints. What placed pods reach beyond
their limits anyway is nobody else's fault.

Arrays run over N nodes, L locations, C nodes with callers and K nodes with endpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from berth.network.edges import effective_limit
from berth.network.groups import Group
from berth.network.routing import Routing, reached_by_zone
from berth.network.workload_places import WorkloadPlaces

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Slots = npt.NDArray[np.intp]
Planned = Mapping[str, Mapping[str, int]]
"""Pods that are planned and not placed yet, by workload and node name: they count as placed."""
NOTHING_PLANNED: Planned = {}


class LimitedEdge(NamedTuple):
    """An edge with maxNetworkCost of which the pod is one end."""

    limit: float
    """highest cost of a call"""
    routing: Routing
    """how the called workload's Service routes"""
    endpoints: Sequence[int]
    """slots of the K nodes with placed endpoints; empty where the pod is one and all are called: they do not matter"""
    callers: Sequence[int] | None = None
    """slots of the C nodes with placed callers; None when the pod is the caller"""


def limited_edges(
    workload: str,
    group: Group,
    places: WorkloadPlaces,
    node_index: Mapping[str, int],
    routing: Callable[[str], Routing],
    planned: Planned = NOTHING_PLANNED,
) -> list[LimitedEdge]:
    """Edges of a pod to placed pods that can be beyond a limit.

    Args:
        workload: the pod's workload.
        group: its AppGroup.
        places: where the pods of the group are; those that are being deleted are called no more.
        node_index: slot by node name; pods on other nodes are left out.
        routing: how calls to a workload are routed.
        planned: pods that will be there as well.
    """

    def slots(of: str) -> list[int]:
        names: Iterable[str] = places.staying(of)
        if of in planned:
            names = {*names, *(name for name, count in planned[of].items() if count)}
        return [node_index[name] for name in names if name in node_index]

    found: list[LimitedEdge] = []
    for edge in group.edges_of.get(workload, ()):
        if edge.max_cost == np.inf:
            continue
        how, limit = routing(edge.dependency), effective_limit(edge)
        if how is Routing.LOCAL:
            continue
        if edge.dependent == workload:
            if endpoints := slots(edge.dependency):
                found.append(LimitedEdge(limit, how, endpoints))
        elif callers := slots(edge.dependent):
            found.append(LimitedEdge(limit, how, () if how is Routing.ALL else slots(edge.dependency), callers))
    return found


def nodes_beyond_limits(edges: Sequence[LimitedEdge], *, location: Ints, location_cost: Floats, zone: Ints) -> Bools:
    """Return bool[N], the nodes on which the pod would reach, or make others reach, an endpoint beyond a limit.

    Args:
        edges: those of the pod.
        location: int[N], location of each node.
        location_cost: float64[L, L], cost from location to location.
        zone: int[L], zone of each location, -1 without one.
    """
    beyond = np.zeros(len(location), dtype=np.bool_)
    homes, limits, calls = list[int](), list[float](), list[bool]()
    for edge in edges:
        if edge.routing is not Routing.ALL:
            judge = _as_caller if edge.callers is None else _as_endpoint
            beyond |= judge(edge, location, location_cost, zone)
            continue
        peers = edge.endpoints if edge.callers is None else edge.callers
        homes += peers
        limits += [edge.limit] * len(peers)
        calls += [edge.callers is None] * len(peers)
    if homes:
        there = location[homes]
        costs = np.where(calls, location_cost[:, there], location_cost[there].T)
        beyond |= _elsewhere(costs > limits, np.array(homes), location)
    return beyond


def _as_caller(edge: LimitedEdge, location: Ints, location_cost: Floats, zone: Ints) -> Bools:
    """bool[N], nodes from which the pod would reach an endpoint beyond the limit."""
    endpoints = np.array(edge.endpoints, dtype=np.intp)
    there = location[endpoints]
    reached, _ = reached_by_zone(zone, zone[there])
    beyond = _elsewhere((location_cost[:, there] > edge.limit) & reached, endpoints, location)
    if edge.routing is Routing.SAME_NODE:
        beyond[endpoints] = False
    return beyond


def _as_endpoint(edge: LimitedEdge, location: Ints, location_cost: Floats, zone: Ints) -> Bools:
    """bool[N], nodes on which some caller would reach an endpoint beyond the limit that it does not reach now."""
    served = edge.endpoints if edge.routing is Routing.SAME_NODE else ()
    callers = np.array([slot for slot in edge.callers or () if slot not in served], dtype=np.intp)
    at, there = location[callers], location[np.array(edge.endpoints, dtype=np.intp)]
    now, kept = reached_by_zone(zone[at], zone[there])
    no_zone = zone < 0
    meets = ~kept | no_zone[:, None] | (zone[:, None] == zone[at])
    beyond = _elsewhere((edge.limit < location_cost[at].T) & meets, callers, location)
    if no_zone.any() and ((location_cost[np.ix_(at, there)] > edge.limit) & ~now).any():
        beyond |= no_zone[location]
    return beyond


def _elsewhere(broken: Bools, homes: Slots, location: Ints) -> Bools:
    """bool[N], nodes with a broken edge to another node; `broken` is bool[L, peers], peers are on `homes`."""
    own: Bools = broken[location[homes], np.arange(len(homes))]
    if not own.any():
        anywhere: Bools = np.logical_or.reduce(broken, axis=1)
        return anywhere[location]
    count = broken.sum(axis=1)[location]
    np.subtract.at(count, homes, own)
    beyond: Bools = count > 0
    return beyond
