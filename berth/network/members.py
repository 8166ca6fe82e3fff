"""Which pods belong to which AppGroup, and where they are."""

from __future__ import annotations

from dataclasses import dataclass

from berth.api.labels import membership
from berth.kube.objects import Pod
from berth.network.groups import Group, GroupKey
from berth.network.workload_places import WorkloadPlaces


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
        self._places: dict[GroupKey, WorkloadPlaces] = {}
        self._group_of: dict[str, GroupKey] = {}

    def update(self, pod: Pod, *, node: str) -> tuple[GroupKey | None, bool]:
        """Note a live pod on `node` (empty: waiting).

        Returns its group (None when it has none) and whether group, workload or node are new.
        """
        place = membership(pod.metadata.labels)
        uid = pod.metadata.uid
        if place is None or pod.finished:
            left = self.delete(uid)
            return None, left is not None
        key = GroupKey(pod.metadata.namespace, place.appgroup)
        if self._group_of.get(uid, key) != key:
            self.delete(uid)
        members = self._groups.setdefault(key, {})
        member = Member(uid, pod.key, place.workload, node)
        changed = members.get(uid) != member
        self._group_of[uid] = key
        self._put(key, member)
        return key, changed

    def delete(self, uid: str) -> GroupKey | None:
        """Forget a pod; returns the group it belonged to."""
        key = self._group_of.pop(uid, None)
        if key is not None:
            members = self._groups[key]
            self._places[key].remove(members.pop(uid))
            if not members:
                del self._groups[key], self._places[key]
        return key

    def move(self, uid: str, *, node: str) -> None:
        """Note where a pod is now: assumed on a node, or waiting again (empty)."""
        key = self._group_of.get(uid)
        if key is not None:
            known = self._groups[key][uid]
            self._put(key, Member(known.uid, known.key, known.workload, node))

    def _put(self, key: GroupKey, member: Member) -> None:
        members, places = self._groups[key], self._places.setdefault(key, WorkloadPlaces())
        if member.uid in members:
            places.remove(members[member.uid])
        members[member.uid] = member
        places.add(member)

    def group_of(self, uid: str) -> GroupKey | None:
        """The group a pod belongs to."""
        return self._group_of.get(uid)

    def of(self, key: GroupKey) -> list[Member]:
        """All live pods of a group."""
        return list(self._groups.get(key, {}).values())

    def places(self, key: GroupKey) -> WorkloadPlaces:
        """Where the live pods of a group are, counted."""
        return self._places.get(key) or WorkloadPlaces()

    def placed(self, key: GroupKey) -> list[Member]:
        """The pods of a group that have a node."""
        return [member for member in self._groups.get(key, {}).values() if member.node]

    def complete(self, group: Group) -> bool:
        """True when every workload has a pod and there are at least `numMembers` of them."""
        members = self._groups.get(group.key, {})
        return len(members) >= group.members and set(group.selectors) <= {m.workload for m in members.values()}
