"""AppGroups as placement sees them: members, order, dependency edges, and which pods belong to them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from berth.api.appgroup import API_VERSION, KIND, AppGroup
from berth.api.errors import InvalidObjectError
from berth.api.labels import membership
from berth.kube.objects import CustomObject, Pod

GroupKey = tuple[str, str]
"""(namespace, AppGroup name)."""


@dataclass(frozen=True, slots=True)
class GroupEdge:
    """One dependency between two workloads."""

    dependent: str
    """selector of the workload that calls"""
    dependency: str
    """selector of the workload that is called"""
    bandwidth: float
    """minBandwidth in bit/s, 0 for none"""
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
    """dependencies between known workloads, declaration order"""
    problem: str = ""
    """why the object cannot be used, empty when it can"""


def read_group(obj: CustomObject) -> Group:
    """Compile an AppGroup; a broken one yields a Group whose `problem` says what to mend."""
    key = (obj.metadata.namespace, obj.metadata.name)
    try:
        parsed = AppGroup.parse(obj.document(api_version=API_VERSION, kind=KIND))
    except InvalidObjectError as error:
        return Group(key=key, uid=obj.metadata.uid, problem=str(error))
    selectors = tuple(item.workload.selector for item in parsed.spec.workloads)
    index = {selector: place for place, selector in enumerate(selectors, start=1)}
    order = {item.workload.selector: item.index for item in parsed.status.topology_order}
    if order.keys() == index.keys():
        # Otherwise the status is older than the spec.
        index = order
    known = set(selectors)
    edges = tuple(
        GroupEdge(
            dependent=item.workload.selector,
            dependency=dependency.workload.selector,
            bandwidth=float(dependency.min_bandwidth.value()) if dependency.min_bandwidth is not None else 0.0,
            max_cost=math.inf if dependency.max_network_cost is None else float(dependency.max_network_cost),
        )
        for item in parsed.spec.workloads
        for dependency in item.dependencies
        if dependency.workload.selector in known and dependency.workload.selector != item.workload.selector
    )
    return Group(
        key=key,
        uid=obj.metadata.uid,
        generation=obj.metadata.generation,
        created=obj.metadata.creation_timestamp,
        members=parsed.spec.num_members,
        selectors=selectors,
        index=index,
        edges=edges,
    )


@dataclass(frozen=True, slots=True)
class Member:
    """A pod of a group."""

    uid: str
    """the pod's uid"""
    key: str
    """``namespace/name``"""
    workload: str
    """selector from the pod's label"""
    node: str
    """node it is bound to or assumed on, empty while it waits"""


class GroupMembers:
    """Which pods belong to which group and where they are; fed with every pod of the cluster."""

    def __init__(self) -> None:
        """Start empty."""
        self._groups: dict[GroupKey, dict[str, Member]] = {}
        self._group_of: dict[str, GroupKey] = {}

    def upsert(self, pod: Pod, *, node: str) -> tuple[GroupKey | None, bool]:
        """Note a live pod on `node` (empty: waiting).

        Returns its group (None when it has none) and whether group, workload or node are new.
        """
        place = membership(pod.metadata.labels)
        uid = pod.metadata.uid
        if place is None or pod.finished:
            left = self.remove(uid)
            return None, left is not None
        key = (pod.metadata.namespace, place.appgroup)
        if self._group_of.get(uid, key) != key:
            self.remove(uid)
        members = self._groups.setdefault(key, {})
        member = Member(uid, pod.key, place.workload, node)
        changed = members.get(uid) != member
        self._group_of[uid] = key
        members[uid] = member
        return key, changed

    def remove(self, uid: str) -> GroupKey | None:
        """Forget a pod; returns the group it belonged to."""
        key = self._group_of.pop(uid, None)
        if key is not None:
            members = self._groups[key]
            del members[uid]
            if not members:
                del self._groups[key]
        return key

    def move(self, uid: str, *, node: str) -> None:
        """Note where a pod is now: assumed on a node, or waiting again (empty)."""
        key = self._group_of.get(uid)
        if key is not None:
            known = self._groups[key][uid]
            self._groups[key][uid] = Member(known.uid, known.key, known.workload, node)

    def group_of(self, uid: str) -> GroupKey | None:
        """The group a pod belongs to."""
        return self._group_of.get(uid)

    def of(self, key: GroupKey) -> list[Member]:
        """All live pods of a group."""
        return list(self._groups.get(key, {}).values())

    def placed(self, key: GroupKey) -> list[Member]:
        """The pods of a group that have a node."""
        return [member for member in self._groups.get(key, {}).values() if member.node]

    def complete(self, group: Group) -> bool:
        """True when every workload has a pod and there are at least `numMembers` of them."""
        members = self._groups.get(group.key, {})
        return len(members) >= group.members and set(group.selectors) <= {m.workload for m in members.values()}
