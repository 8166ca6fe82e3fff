"""Which pods belong to which AppGroup, and where they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from berth.api.labels import membership
from berth.kube.objects import Pod
from berth.network.admitted import Admitted, Callers, read_admitted
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
    admitted: Admitted | None = None
    """what its calls are charged with; None: what the AppGroup states now"""
    terminating: bool = False
    """whether it is being deleted: it is called no more"""


class GroupMembers:
    """Which pods belong to which group and where they are; fed with every pod of the cluster."""

    def __init__(self) -> None:
        """Start empty."""
        self._groups: dict[GroupKey, dict[str, Member]] = {}
        self._places: dict[GroupKey, WorkloadPlaces] = {}
        self._callers: dict[GroupKey, Callers] = {}
        self._group_of: dict[str, GroupKey] = {}
        self._finished: dict[str, tuple[GroupKey, str]] = {}
        self._present: dict[GroupKey, Counter[str]] = {}
        self._gathered: dict[GroupKey, Group] = {}
        self._left: dict[str, Admitted | None] = {}

    def update(self, pod: Pod, *, node: str, seen: bool = False) -> tuple[GroupKey | None, bool]:
        """Note a live pod on `node` (empty: waiting).

        What a pod was admitted with is read from its annotation when it is first seen on a node, and not again: it
        stays the same in another group, too.

        Args:
            pod: the pod.
            node: where it is.
            seen: whether it has been seen there before, in whichever group or in none.

        Returns its group (None when it has none) and whether group, workload or node are new.
        """
        place = membership(pod.metadata.labels)
        uid = pod.metadata.uid
        if place is None or pod.finished:
            left = self._leave(uid)
            return None, left is not None
        key = GroupKey(pod.metadata.namespace, place.appgroup)
        if self._group_of.get(uid, key) != key:
            self._leave(uid)
        members = self._groups.setdefault(key, {})
        known, before = members.get(uid), self._left.pop(uid, None)
        if known is not None and known.node == node:
            admitted = known.admitted
        else:
            admitted = before if seen else read_admitted(pod.metadata.annotations) if node else None
            if admitted is not None and not self.callers(key).takes(place.workload, admitted):
                admitted = None
        terminating = pod.metadata.deletion_timestamp is not None
        member = Member(uid, pod.key, place.workload, node, admitted, terminating)
        changed = known != member
        if known is None or known.workload != member.workload:
            if known is not None:
                self._count(key, known.workload, -1)
            self._count(key, member.workload, 1)
        self._group_of[uid] = key
        self._put(key, member)
        return key, changed

    def _leave(self, uid: str) -> GroupKey | None:
        """Forget a pod's group, but not what it was admitted with while it is on its node."""
        member = self.member(uid)
        if member is None:
            return None
        key = self.delete(uid)
        if member.node:
            self._left[uid] = member.admitted
        return key

    def delete(self, uid: str) -> GroupKey | None:
        """Forget a pod; returns the group it belonged to."""
        self._left.pop(uid, None)
        key = self._group_of.pop(uid, None)
        if key is not None:
            members = self._groups[key]
            member = members.pop(uid)
            self._places[key].remove(member)
            self._callers[key].remove(member)
            self._count(key, member.workload, -1)
            if not members:
                del self._groups[key], self._places[key], self._callers[key]
                self._gathered.pop(key, None)
        if uid in self._finished:
            self._count(*self._finished.pop(uid), -1)
        return key

    def finish(self, pod: Pod) -> None:
        """A pod has ended; until it is deleted, its workload is not waited for."""
        place = membership(pod.metadata.labels)
        if place is not None and pod.spec.node_name:
            key = GroupKey(pod.metadata.namespace, place.appgroup)
            self._finished[pod.metadata.uid] = key, place.workload
            self._count(key, place.workload, 1)

    def _count(self, key: GroupKey, workload: str, amount: int) -> None:
        """Change the number of a workload's pods, finished ones included."""
        counts = self._present.setdefault(key, Counter())
        counts[workload] += amount
        if not counts[workload]:
            del counts[workload]
            if not counts:
                del self._present[key]

    def move(self, uid: str, *, node: str, admitted: Admitted | None = None) -> None:
        """Note where a pod is now: assumed on a node with what it is admitted with, or waiting again (empty)."""
        key = self._group_of.get(uid)
        if key is not None:
            known = self._groups[key][uid]
            self._put(key, Member(known.uid, known.key, known.workload, node, admitted, known.terminating))
        elif not node:
            self._left.pop(uid, None)

    @contextmanager
    def set_aside(self, uid: str) -> Iterator[None]:
        """Have a pod be nowhere for a while, and then where it was with what it was admitted with.

        One that has left its group is nowhere already; what it was admitted with stays for when it comes back.
        """
        known = self.member(uid)
        if known is not None:
            self.move(uid, node="")
        try:
            yield
        finally:
            if known is not None:
                self.move(uid, node=known.node, admitted=known.admitted)

    def _put(self, key: GroupKey, member: Member) -> None:
        members, places = self._groups[key], self._places.setdefault(key, WorkloadPlaces())
        callers = self._callers.setdefault(key, Callers())
        if member.uid in members:
            places.remove(members[member.uid])
            callers.remove(members[member.uid])
        members[member.uid] = member
        places.add(member)
        callers.add(member)

    def group_of(self, uid: str) -> GroupKey | None:
        """The group a pod belongs to."""
        return self._group_of.get(uid)

    def of(self, key: GroupKey) -> list[Member]:
        """All live pods of a group."""
        return list(self._groups.get(key, {}).values())

    def places(self, key: GroupKey) -> WorkloadPlaces:
        """Where the live pods of a group are, counted."""
        return self._places.get(key) or WorkloadPlaces()

    def callers(self, key: GroupKey) -> Callers:
        """Its placed pods by what they were admitted with, counted."""
        return self._callers.get(key) or Callers()

    def member(self, uid: str) -> Member | None:
        """A pod of any group."""
        key = self._group_of.get(uid)
        return self._groups[key][uid] if key is not None else None

    def placed(self, key: GroupKey) -> list[Member]:
        """The pods of a group that have a node."""
        return [member for member in self._groups.get(key, {}).values() if member.node]

    def missing(self, group: Group) -> tuple[str, ...]:
        """Workloads without a pod that are still to be waited for, in declaration order."""
        present: Mapping[str, int] = self._present.get(group.key, {})
        gathered = self._gathered.get(group.key)
        before = gathered.selectors if gathered is not None else ()
        return tuple(selector for selector in group.selectors if selector not in present and selector not in before)

    def complete(self, group: Group) -> bool:
        """True when every workload has a pod and there are at least `numMembers` of them.

        Pods that have finished count until they are deleted. What a group once had is not waited for again while it
        has any pod: a workload that was scaled to zero, or a Job that is done.
        """
        gathered, present = self._gathered.get(group.key), self._present.get(group.key, Counter[str]())
        enough = present.total() >= group.members or (gathered is not None and gathered.members >= group.members)
        if not enough or self.missing(group):
            return False
        if gathered is not group and group.key in self._groups:
            self._gathered[group.key] = group
        return True
