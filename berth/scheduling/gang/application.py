"""The waiting pods of an AppGroup as the gang engine's Application."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from berth.kube.objects import Pod
from berth.network.admitted import Callers
from berth.network.bandwidth_split import pair_bandwidth
from berth.network.edges import effective_limit, placed_demand
from berth.network.groups import Group
from berth.network.members import Member
from berth.network.workload_places import WorkloadPlaces
from berth.scheduling.cache.pod_templates import HostPort, PodInfo
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.volumes import claim_keys, disk_uses
from berth.scheduling.framework.cycle_state import names_nodes
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.problem import Application, NodeCosts, NodeMasks, PlacedPeers
from berth.scheduling.host_ports import port_conflicts

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
    version: int = 0
    """`NodeTable.version` of what both are about"""

    @property
    def mask(self) -> Bools:
        """bool[N], the nodes it may go to."""
        return self.result.mask


def beyond_template(pod: Pod) -> tuple[object, ...]:
    """What filters read of a pod that its template leaves out."""
    spec = pod.spec
    if not spec.volumes and not spec.resource_claims and spec.scheduling_group is None:
        return ()
    return (claim_keys(pod), disk_uses(pod), bool(spec.resource_claims), spec.scheduling_group is not None)


def as_of_now(candidates: Sequence[Candidate], state: ClusterState) -> list[Candidate]:
    """Candidates without nodes that have come or changed since they were filtered: nobody knows what these admit."""
    version = state.nodes.version
    if all(candidate.version == version for candidate in candidates):
        return list(candidates)
    known: dict[int, Candidate] = {}
    for one in candidates:
        if id(one.result) in known:
            continue
        same = ~state.nodes.changed_since(one.version)
        missing = (0, state.size - len(one.mask))
        result = replace(one.result, mask=np.pad(one.mask, missing) & same)
        costs = {term: np.pad(cost, missing) for term, cost in one.costs.items()}
        known[id(one.result)] = Candidate(one.info, result, costs, version)
    return [replace(known[id(one.result)], info=one.info) for one in candidates]


def build_application(
    group: Group | None,
    candidates: Sequence[Candidate],
    members: Sequence[Member],
    state: ClusterState,
    *,
    unlimited: Collection[str] = (),
) -> Application:
    """Translate waiting pods, in the given order, into components with edges, among themselves and to placed peers.

    Args:
        group: their AppGroup; None for pods without one, which have no edges.
        candidates: the pods to place.
        members: all live pods of the group, the candidates among them.
        state: the cluster, for requests and node slots.
        unlimited: workloads to which maxNetworkCost of calls is left to the filters.
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
    edges, peers = _Edges(), _Edges()
    if group is not None:
        edges, peers = _edges(group, candidates, members, state, unlimited)
    named = np.array([names_nodes(candidate.info.template) for candidate in candidates], dtype=np.bool_)
    return Application.of(
        np.array([state.request_vector(candidate.info.template) for candidate in candidates], dtype=np.float64),
        names=[candidate.info.pod.metadata.name for candidate in candidates],
        edges=np.stack([edges.joined("first"), edges.joined("second")], axis=1).astype(np.int32),
        bandwidth=edges.joined("bandwidth"),
        max_cost=edges.joined("max_cost"),
        allowed=NodeMasks(masks=np.array(rows), group=group_of),
        placed_peers=PlacedPeers.of(
            peers.joined("first").astype(np.int32),
            peers.joined("second").astype(np.int32),
            bandwidth=peers.joined("bandwidth"),
            max_cost=peers.joined("max_cost"),
            weight=peers.joined("count"),
            incoming=peers.joined("incoming") > 0,
        ),
        separate=_port_conflicts(candidates),
        named=NodeMasks(masks=np.array(rows), group=group_of) if named.all() else _named_masks(candidates, named),
        has_selector=named,
        node_costs=_node_costs(candidates),
    )


class _Edges:
    """Rows of edges, collected in blocks: those of one dependency at a time."""

    def __init__(self) -> None:
        self._blocks: defaultdict[str, list[Floats]] = defaultdict(list)

    def add(self, first: npt.NDArray[Any], second: npt.NDArray[Any], **more: npt.NDArray[Any] | float) -> None:
        """Add a block; a number is that of all its rows."""
        for name, column in (("first", first), ("second", second), *more.items()):
            rows = column if isinstance(column, np.ndarray) else np.full(len(first), column)
            self._blocks[name].append(rows.astype(np.float64))

    def add_peers(
        self,
        own: Sequence[int],
        peers: Mapping[str, int],
        bandwidth: Mapping[str, int],
        state: ClusterState,
        *,
        max_cost: float = np.inf,
        incoming: bool = False,
    ) -> None:
        """Add an edge from each component of `own` to the `peers` on each node, which take `bandwidth` together."""
        if not own or not peers:
            return
        rows = [
            (slot, bandwidth.get(node, 0), count)
            for node, count in peers.items()
            if (slot := state.node_index.get(node)) is not None
        ]
        slots, amounts, counts = np.tile(np.array(rows, dtype=np.float64).reshape(-1, 3), (len(own), 1)).T
        first = np.repeat(own, len(rows))
        self.add(first, slots, bandwidth=amounts, max_cost=max_cost, count=counts, incoming=incoming)

    def joined(self, name: str) -> Floats:
        """float64[rows], a column."""
        blocks = self._blocks.get(name)
        return np.concatenate(blocks) if blocks else np.zeros(0)


def _edges(
    group: Group,
    candidates: Sequence[Candidate],
    members: Sequence[Member],
    state: ClusterState,
    unlimited: Collection[str],
) -> tuple[_Edges, _Edges]:
    """Edges among the candidates, and from each candidate to the placed peers of a workload on a node."""
    component = {c.info.pod.metadata.uid: number for number, c in enumerate(candidates)}
    places, placed = WorkloadPlaces(members), Callers()
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    for member in members:
        placed.add(member)
        if member.uid in component:
            waiting[member.workload].append(component[member.uid])
    among, towards = _Edges(), _Edges()
    demand = {workload: placed_demand(workload, group, placed, places) for workload in waiting}
    for edge in group.edges:
        callers, callees = waiting.get(edge.dependent, ()), waiting.get(edge.dependency, ())
        if not (callers or callees) or not places.replicas(edge.dependency):
            continue  # a batch of a few may be of thousands of workloads
        share = pair_bandwidth(edge.bandwidth, places.replicas(edge.dependency))
        limit = np.inf if edge.dependency in unlimited else effective_limit(edge)
        if callers and callees:
            pairs = np.repeat(callers, len(callees)), np.tile(callees, len(callers))
            among.add(*pairs, bandwidth=share, max_cost=limit)
        outgoing, received = places.nodes(edge.dependency), demand.get(edge.dependency, {}).pop(edge.dependent, {})
        towards.add_peers(callers, outgoing, {n: share * k for n, k in outgoing.items()}, state, max_cost=limit)
        inward = places.nodes(edge.dependent)
        towards.add_peers(callees, inward, received, state, max_cost=limit, incoming=True)
    for workload, by_caller in demand.items():
        for received in by_caller.values():
            # The AppGroup no longer has the edge, and what was admitted is charged all the same.
            towards.add_peers(waiting[workload], dict.fromkeys(received, 0), received, state, incoming=True)
    return among, towards


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
    users: defaultdict[HostPort, list[int]] = defaultdict(list)
    for number, candidate in enumerate(candidates):
        for port in dict.fromkeys(candidate.info.template.host_ports):
            users[port].append(number)
    if not users:
        return []
    apart = np.zeros((len(candidates), len(candidates)), dtype=np.bool_)
    for those, others in port_conflicts(users):
        apart[np.ix_(those, others)] = True
    pairs: list[tuple[int, int]] = [
        (first, second) for first, second in np.argwhere(np.triu(apart | apart.T, 1)).tolist()
    ]
    return pairs
