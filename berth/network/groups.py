"""AppGroups as placement sees them: members, order, dependency edges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from berth.api.appgroup import API_VERSION, KIND, AppGroup, AppGroupSpec
from berth.api.errors import InvalidObjectError
from berth.api.spread import SpreadLevel, read_spread
from berth.kube.memory import collection_paused
from berth.kube.objects import CustomObject

MAX_EDGE_BANDWIDTH = 10**12
"""bit/s of one edge at the most: no link carries more, and sums over many edges stay meaningful."""


class GroupKey(NamedTuple):
    """Which AppGroup."""

    namespace: str
    """its namespace"""
    name: str
    """its name"""

    def __str__(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class GroupEdge:
    """One dependency between two workloads."""

    dependent: str
    """selector of the workload that calls"""
    dependency: str
    """selector of the workload that is called"""
    bandwidth: int
    """minBandwidth in bit/s, 0 for none, MAX_EDGE_BANDWIDTH for more than that"""
    max_cost: float
    """maxNetworkCost, infinite for none"""


@dataclass(frozen=True, slots=True)
class Group:
    """An AppGroup, ready for planning."""

    key: GroupKey
    """namespace and name"""
    uid: str = ""
    """metadata.uid"""
    generation: int = 0
    """metadata.generation"""
    created: str = ""
    """metadata.creationTimestamp: the group's arrival"""
    members: int = 0
    """spec.numMembers"""
    selectors: tuple[str, ...] = ()
    """workloads in declaration order"""
    index: dict[str, int] = field(default_factory=dict)
    """place of each selector in status.topologyOrder, from 1; declaration order until there is one"""
    edges: tuple[GroupEdge, ...] = ()
    """dependencies between two known workloads, each once, declaration order"""
    spread: SpreadLevel | None = None
    """which failure its workloads must survive; None: what the profile says"""
    problem: str = ""
    """why the object cannot be used, empty when it can"""
    edges_of: Mapping[str, Sequence[GroupEdge]] = field(init=False, repr=False, compare=False)
    """those of `edges` that a workload is an end of"""

    def __post_init__(self) -> None:
        """Sort the dependencies by their ends: large groups are asked for those of one workload all the time."""
        found: dict[str, list[GroupEdge]] = {}
        for edge in self.edges:
            for end in {edge.dependent, edge.dependency}:
                found.setdefault(end, []).append(edge)
        object.__setattr__(self, "edges_of", found)


@collection_paused()
def read_group(obj: CustomObject) -> Group:
    """Compile an AppGroup; a broken one yields a Group whose `problem` says what to mend."""
    key = GroupKey(obj.metadata.namespace, obj.metadata.name)
    try:
        parsed = AppGroup.parse(obj.document(api_version=API_VERSION, kind=KIND))
    except InvalidObjectError as error:
        return Group(key=key, uid=obj.metadata.uid, problem=str(error))
    selectors = tuple(parsed.spec.by_selector())
    index = {selector: place for place, selector in enumerate(selectors, start=1)}
    order = {item.workload.selector: item.index for item in parsed.status.topology_order}
    if order.keys() == index.keys():
        # Otherwise the status is older than the spec.
        index = order
    return Group(
        key=key,
        uid=obj.metadata.uid,
        generation=obj.metadata.generation,
        created=obj.metadata.creation_timestamp,
        members=parsed.spec.members,
        selectors=selectors,
        index=index,
        edges=_edges(parsed.spec),
        spread=read_spread(obj.metadata.annotations),
    )


def _edges(spec: AppGroupSpec) -> tuple[GroupEdge, ...]:
    """Dependencies, each once: with the stricter demands of those that are listed several times."""
    found: dict[tuple[str, str], GroupEdge] = {}
    for dependent, dependency in spec.edges():
        ends = dependent, dependency.workload.selector
        limit = math.inf if dependency.max_network_cost is None else float(dependency.max_network_cost)
        bandwidth, known = min(dependency.bandwidth, MAX_EDGE_BANDWIDTH), found.get(ends)
        if known is not None:
            bandwidth, limit = max(bandwidth, known.bandwidth), min(limit, known.max_cost)
        found[ends] = GroupEdge(*ends, bandwidth=bandwidth, max_cost=limit)
    return tuple(found.values())


def relaxed(old: Group, new: Group) -> bool:
    """Whether an edit of an AppGroup can let pods be placed that could not be: less is waited for, or demanded."""
    if old.problem or new.problem:
        return bool(old.problem) != bool(new.problem)
    if new.members < old.members or not set(old.selectors) <= set(new.selectors):
        return True
    demands = {(edge.dependent, edge.dependency): edge for edge in new.edges}
    for edge in old.edges:
        now = demands.get((edge.dependent, edge.dependency))
        if now is None or now.bandwidth < edge.bandwidth or now.max_cost > edge.max_cost:
            return True
    return False
