"""The waiting pods of an AppGroup as the gang engine's Application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from berth.network.edges import PodEdge, pod_edges
from berth.network.groups import Group
from berth.network.members import Member
from berth.scheduling.cache.pod_templates import ANY_ADDRESS, HostPort, PodInfo
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.framework.cycle_state import names_nodes
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.problem import Application, NodeCosts, NodeMasks, PlacedPeers

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A waiting pod with the nodes it may go to."""

    info: PodInfo
    """the pod and its compiled template"""
    result: FilterResult
    """what the filters say; pods of one template share the object"""
    costs: Mapping[str, Floats]
    """float64[N] by term, costs of plugins whatever the other members do; shared likewise"""

    @property
    def mask(self) -> Bools:
        """bool[N], the nodes it may go to."""
        return self.result.mask


def build_application(
    group: Group | None,
    candidates: Sequence[Candidate],
    members: Sequence[Member],
    state: ClusterState,
    *,
    enforce_limits: bool,
) -> Application:
    """Translate waiting pods, in the given order, into components with edges, among themselves and to placed peers.

    Args:
        group: their AppGroup; None for pods without one, which have no edges.
        candidates: the pods to place.
        members: all live pods of the group, the candidates among them.
        state: the cluster, for requests and node slots.
        enforce_limits: False when no network costs are known: maxNetworkCost cannot be judged then.
    """
    # Templates with different masks are rare: most nodes with room for one pod of the group have room for all.
    masks: dict[int, int] = {}
    classes: dict[bytes, int] = {}
    rows: list[Bools] = []
    for candidate in candidates:
        if id(candidate.mask) not in masks:
            row = masks[id(candidate.mask)] = classes.setdefault(candidate.mask.tobytes(), len(rows))
            if row == len(rows):
                rows.append(candidate.mask)
    group_of = np.array([masks[id(candidate.mask)] for candidate in candidates], dtype=np.int32)
    component = {c.info.pod.metadata.uid: number for number, c in enumerate(candidates)}
    edges: list[tuple[int, int]] = []
    placed_peers: list[tuple[int, int, bool]] = []
    edge_data: list[PodEdge] = []
    peer_data: list[PodEdge] = []
    for edge in pod_edges(group, members) if group is not None else ():
        caller, callee = component.get(edge.dependent.uid), component.get(edge.dependency.uid)
        if caller is not None and callee is not None:
            edges.append((caller, callee))
            edge_data.append(edge)
            continue
        inside, outside = (caller, edge.dependency) if caller is not None else (callee, edge.dependent)
        slot = state.node_index.get(outside.node)
        if inside is not None and slot is not None:
            placed_peers.append((inside, slot, caller is None))
            peer_data.append(edge)

    def limits(data: Sequence[PodEdge]) -> npt.NDArray[np.float64]:
        return np.array([edge.max_cost if enforce_limits else np.inf for edge in data], dtype=np.float64)

    named = np.array([names_nodes(candidate.info.template) for candidate in candidates], dtype=np.bool_)
    return Application.of(
        np.array([state.request_vector(candidate.info.template) for candidate in candidates], dtype=np.float64),
        names=[candidate.info.pod.metadata.name for candidate in candidates],
        edges=np.array(edges, dtype=np.int32).reshape(-1, 2),
        bandwidth=np.array([edge.bandwidth for edge in edge_data], dtype=np.float64),
        max_cost=limits(edge_data),
        allowed=NodeMasks(masks=np.array(rows), group=group_of),
        placed_peers=PlacedPeers.of(
            [item[0] for item in placed_peers],
            [item[1] for item in placed_peers],
            bandwidth=np.array([edge.bandwidth for edge in peer_data], dtype=np.float64),
            max_cost=limits(peer_data),
            incoming=np.array([item[2] for item in placed_peers], dtype=np.bool_),
        ),
        separate=_port_conflicts(candidates),
        named=NodeMasks(masks=np.array(rows), group=group_of) if named.all() else _named_masks(candidates, named),
        has_selector=named,
        node_costs=_node_costs(candidates),
    )


def _node_costs(candidates: Sequence[Candidate]) -> dict[str, NodeCosts]:
    """Costs of plugins by term, one row for all candidates of a template."""
    rows: dict[int, int] = {}
    distinct: list[Mapping[str, Floats]] = []
    for candidate in candidates:
        if rows.setdefault(id(candidate.costs), len(distinct)) == len(distinct):
            distinct.append(candidate.costs)
    group = np.array([rows[id(candidate.costs)] for candidate in candidates], dtype=np.int32)
    nothing = np.zeros(len(candidates[0].mask))
    return {
        term: NodeCosts(np.stack([costs.get(term, nothing) for costs in distinct]), group)
        for term in dict.fromkeys(term for costs in distinct for term in costs)
    }


def _named_masks(candidates: Sequence[Candidate], named: Bools) -> NodeMasks | None:
    if not named.any():
        return None
    nothing = np.zeros_like(candidates[0].mask)
    return NodeMasks.per_component(
        np.array([c.mask if is_named else nothing for c, is_named in zip(candidates, named, strict=True)])
    )


def _port_conflicts(candidates: Sequence[Candidate]) -> list[tuple[int, int]]:
    users = [(number, c.info.template.host_ports) for number, c in enumerate(candidates) if c.info.template.host_ports]
    return [
        (first, second)
        for (first, first_ports), (second, second_ports) in combinations(users, 2)
        if any(_clash(one, other) for one in first_ports for other in second_ports)
    ]


def _clash(one: HostPort, other: HostPort) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or ANY_ADDRESS in (one[0], other[0]))
