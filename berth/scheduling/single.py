"""Placing one pod by itself: filter every node, score those that are left, take the best.

Used for pods outside any AppGroup, for later replicas of a placed application, and for pods whose affinity or spread
rules depend on pods placed a moment before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from berth.network.edges import pod_edges
from berth.network.groups import Group
from berth.network.members import Member
from berth.scheduling.decision import MAX_RUNNER_UPS, Alternative
from berth.scheduling.framework.cycle_state import CycleState, PeerEdges
from berth.scheduling.framework.framework import Framework


def peer_edges(own: Member, group: Group, members: Sequence[Member], node_index: Mapping[str, int]) -> PeerEdges:
    """Edges between a pod and the placed members of its AppGroup.

    Args:
        own: the pod.
        group: its AppGroup.
        members: live pods of the group, waiting ones too: they share the bandwidth of calls.
        node_index: slot by node name; members on other nodes are left out.
    """
    others = [member for member in members if member.uid != own.uid]
    found: list[tuple[int, bool, float, float]] = []
    for edge in pod_edges(group, [*others, own]):
        outward = edge.dependent.uid == own.uid
        if not outward and edge.dependency.uid != own.uid:
            continue
        slot = node_index.get((edge.dependency if outward else edge.dependent).node)
        if slot is not None:
            found.append((slot, outward, edge.max_cost, edge.bandwidth))
    return PeerEdges.of(found)


@dataclass(frozen=True, slots=True)
class Choice:
    """The best node for one pod."""

    slot: int
    """node slot"""
    score: float
    """total score, higher is better"""
    terms: dict[str, float]
    """weighted score by term, those that are 0 left out"""
    runner_ups: tuple[Alternative, ...]
    """next best nodes"""


def choose(framework: Framework, cycle: CycleState, feasible: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Choice:
    """Pick the feasible node with the greatest score, the lowest slot among equals; nothing is assumed.

    Raises:
        ValueError: no node is feasible.
    """
    slots = np.flatnonzero(feasible)
    if not slots.size:
        raise ValueError("no node is feasible")
    scored = framework.score(cycle, feasible)
    order = slots[np.lexsort((slots, -scored.total[slots]))[: MAX_RUNNER_UPS + 1]]
    best, *others = (int(slot) for slot in order)

    def by_term(slot: int) -> dict[str, float]:
        return {name: float(values[slot]) for name, values in scored.terms.items() if values[slot]}

    runner_ups = tuple(
        Alternative(cycle.cluster.node_name(slot), float(scored.total[slot]), by_term(slot)) for slot in others
    )
    return Choice(best, float(scored.total[best]), by_term(best), runner_ups)
