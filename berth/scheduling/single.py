"""Placing one pod by itself: filter every node, score those that are left, take the best.

Used for pods outside any AppGroup, for later replicas of a placed application, and for pods whose affinity or spread
rules depend on pods placed a moment before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from berth.api.labels import membership
from berth.kube.objects import Pod
from berth.network.arrival import Arrival, arrivals
from berth.network.bandwidth_split import pair_bandwidth
from berth.network.edges import placed_demand
from berth.network.groups import Group
from berth.network.limits import NOTHING_PLANNED, LimitedEdge, Planned, limited_edges
from berth.network.members import GroupMembers
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.nodes import PODS
from berth.scheduling.decision import MAX_RUNNER_UPS, Alternative, Scale
from berth.scheduling.framework.cycle_state import NO_EDGES, CycleState, PeerEdges
from berth.scheduling.framework.framework import Framework
from berth.scheduling.gang.state import InfrastructureState

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


def workload_of(pod: Pod) -> str:
    """The workload selector in a pod's labels, empty when it has none."""
    place = membership(pod.metadata.labels)
    return place.workload if place is not None else ""


def peer_edges(workload: str, group: Group, members: GroupMembers, node_index: Mapping[str, int]) -> PeerEdges:
    """Edges between a waiting pod and the placed members of its AppGroup, one for all peers of a workload on a node.

    What placed pods were admitted with towards its workload counts as bandwidth even where the AppGroup no longer has
    the edge: it is charged as soon as the pod is placed.

    Args:
        workload: the pod's workload.
        group: its AppGroup.
        members: where the live pods of the group are, waiting ones too: they share the bandwidth of calls.
        node_index: slot by node name; members on other nodes are left out.
    """
    found: list[tuple[int, bool, int, int]] = []
    places = members.places(group.key)
    demand = placed_demand(workload, group, members.callers(group.key), places)
    for edge in group.edges_of.get(workload, ()):
        callees = places.replicas(edge.dependency)
        if not callees:
            continue
        outward = edge.dependent == workload
        share = pair_bandwidth(edge.bandwidth, callees)
        incoming = {} if outward else demand.pop(edge.dependent, {})
        for node, count in places.nodes(edge.dependency if outward else edge.dependent).items():
            slot = node_index.get(node)
            if slot is not None:
                found.append((slot, outward, share * count if outward else incoming.get(node, 0), count))
    for incoming in demand.values():
        slots = ((node_index.get(node), amount) for node, amount in incoming.items())
        found.extend((slot, False, amount, 0) for slot, amount in slots if slot is not None)
    return PeerEdges.of(found)


def cycle_of(
    pod: Pod,
    group: Group | None,
    cache: Cache,
    infrastructure: InfrastructureState,
    *,
    limits_known: bool,
    planned: Planned = NOTHING_PLANNED,
) -> CycleState:
    """What the plugins are given about a pod that is placed by itself.

    Args:
        pod: the pod.
        group: its AppGroup, None for a pod without one.
        cache: where everything is, the group's placed members among it.
        infrastructure: prices, budgets and network costs as of now.
        limits_known: whether network costs are known, so that maxNetworkCost can be judged.
        planned: pods of the group that will be placed as well; maxNetworkCost is judged as if they were.
    """
    edges, limits, coming = NO_EDGES, list[LimitedEdge](), list[Arrival]()
    if group is not None:
        workload, index = workload_of(pod), cache.state.node_index
        edges, places = peer_edges(workload, group, cache.members, index), cache.members.places(group.key)
        if edges.bandwidth.any() or planned:
            coming = arrivals(workload, group, cache.members.callers(group.key), places, index, cache.routes, planned)
        if limits_known:
            limits = limited_edges(
                workload,
                group,
                places,
                index,
                lambda called: cache.services.routing(group.key, called).routing,
                planned,
            )
    return CycleState(
        cache.state.info(pod),
        cache.state,
        infrastructure=infrastructure,
        edges=edges,
        arrivals=coming,
        limits=limits,
        recently_rejected=cache.recently_rejected(pod),
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """The best node for one pod."""

    slot: int
    """node slot"""
    value: float
    """its score or cost"""
    terms: dict[str, float]
    """the same by term, those that are 0 left out"""
    runner_ups: tuple[Alternative, ...]
    """next best nodes"""


def choose(framework: Framework, cycle: CycleState, feasible: Bools) -> Choice:
    """Pick the feasible node with the greatest score; nothing is assumed.

    Raises:
        ValueError: no node is feasible.
    """
    scored = framework.score(cycle, feasible)
    return best_of(cycle, feasible, scored.total, scored.terms, scale=Scale.SCORE)


def best_of(cycle: CycleState, feasible: Bools, values: Floats, terms: Mapping[str, Floats], *, scale: Scale) -> Choice:
    """Pick the feasible node with the best value; among equals the one with most of its room for pods left.

    kube-scheduler takes any of the equals at random, which fills none of them first either. Nodes are alike to the
    plugins where requests are beyond what they have, or pods request nothing. Then the lowest slot.

    Args:
        cycle: the pod and the cluster.
        feasible: bool[N].
        values: float64[N], scores or costs.
        terms: the same by term.
        scale: which of both.

    Raises:
        ValueError: no node is feasible.
    """
    slots = np.flatnonzero(feasible)
    if not slots.size:
        raise ValueError("no node is feasible")
    key = values[slots] if scale is Scale.COST else -values[slots]
    key[np.isnan(key)] = np.inf  # of numbers that are too great: such nodes come last, and nothing equals NaN
    order: list[int] = []
    for _ in range(min(len(slots), MAX_RUNNER_UPS + 1)):
        at = int(key.argmin())
        if order and key[at] == np.inf:
            break
        if not order:
            at = _with_most_room(cycle, slots, np.flatnonzero(key == key[at]))
        order.append(int(slots[at]))
        key[at] = np.inf
    best, *others = order

    def by_term(slot: int) -> dict[str, float]:
        return {name: float(each[slot]) for name, each in terms.items() if each[slot]}

    runner_ups = tuple(
        Alternative(cycle.cluster.node_name(slot), float(values[slot]), by_term(slot)) for slot in others
    )
    return Choice(best, float(values[best]), by_term(best), runner_ups)


def _with_most_room(cycle: CycleState, slots: Ints, equals: Ints) -> int:
    """Of the positions `equals` in `slots`, the first with the smallest share of its allocatable pods there."""
    if len(equals) == 1:
        return int(equals[0])
    nodes = slots[equals]
    used, allocatable = cycle.cluster.used[nodes, PODS], cycle.cluster.allocatable[nodes, PODS]
    return int(equals[(used / np.maximum(allocatable, 1)).argmin()])
