"""The pods of every AppGroup, reduced to the few facts that a status depends on.

A pod belongs to the group that its label names *in its own namespace*: equal names in other namespaces
are other groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from berth.api.labels import membership
from berth.kube.objects import ObjectMeta
from berth.network.groups import GroupKey


class GroupPodSpec(msgspec.Struct, gc=False, rename="camel"):
    """corev1.PodSpec, the part a status depends on."""

    node_name: str = ""


class GroupPodStatus(msgspec.Struct, gc=False, rename="camel"):
    """corev1.PodStatus, the part a status depends on."""

    phase: str = ""


class GroupPod(msgspec.Struct, gc=False, rename="camel"):
    """corev1.Pod, the part a status depends on."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: GroupPodSpec = msgspec.field(default_factory=GroupPodSpec)
    status: GroupPodStatus = msgspec.field(default_factory=GroupPodStatus)


class PodFacts(NamedTuple):
    """One pod as a status sees it; two equal values need no new status."""

    name: str
    """metadata.name"""
    uid: str
    """metadata.uid"""
    workload: str
    """selector of the workload that its label names, empty without the label"""
    node: str
    """node it is bound to, empty while it waits"""
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown"""
    created: datetime | None
    """metadata.creationTimestamp"""
    deleting: bool
    """True once it has been asked to stop"""

    @property
    def finished(self) -> bool:
        """True when its containers have ended for good: it holds no node any more."""
        return self.phase in ("Succeeded", "Failed")


class PodIndex:
    """Facts about pods by group, kept up to date by changes."""

    def __init__(self) -> None:
        """Start empty."""
        self._groups: dict[GroupKey, dict[str, PodFacts]] = {}
        self._group_of: dict[tuple[str, str], GroupKey] = {}

    def __len__(self) -> int:
        """Return the number of pods."""
        return len(self._group_of)

    def of(self, group: GroupKey) -> Iterable[PodFacts]:
        """Return the pods of a group, in no particular order."""
        return self._groups.get(group, {}).values()

    def update(self, pod: GroupPod) -> tuple[GroupKey, ...]:
        """Take in a new or changed pod and return the groups whose facts changed: none, one, or two on a move."""
        metadata = pod.metadata
        identity = (metadata.namespace, metadata.name)
        before = self._group_of.get(identity)
        member = membership(metadata.labels)
        after = GroupKey(metadata.namespace, member.appgroup) if member is not None else None
        changed: list[GroupKey] = []
        if before is not None and before != after:
            self._drop(identity)
            changed.append(before)
        if member is not None and after is not None:
            facts = _facts(pod, member.workload)
            group = self._groups.setdefault(after, {})
            if group.get(metadata.name) != facts:
                group[metadata.name] = facts
                changed.append(after)
            self._group_of[identity] = after
        return tuple(changed)

    def remove(self, metadata: ObjectMeta) -> tuple[GroupKey, ...]:
        """Forget a deleted pod and return the group that lost it, if any."""
        identity = (metadata.namespace, metadata.name)
        group = self._group_of.get(identity)
        if group is None:
            return ()
        self._drop(identity)
        return (group,)

    def _drop(self, identity: tuple[str, str]) -> None:
        group = self._group_of.pop(identity)
        pods = self._groups[group]
        del pods[identity[1]]
        if not pods:
            del self._groups[group]


def _facts(pod: GroupPod, workload: str) -> PodFacts:
    metadata = pod.metadata
    return PodFacts(
        name=metadata.name,
        uid=metadata.uid,
        workload=workload,
        node=pod.spec.node_name,
        phase=pod.status.phase,
        created=datetime.fromisoformat(metadata.creation_timestamp) if metadata.creation_timestamp else None,
        deleting=metadata.deletion_timestamp is not None,
    )


def count_phase(pods: Iterable[PodFacts], phase: str) -> int:
    """Return how many of ``pods`` are in ``phase``."""
    return sum(1 for pod in pods if pod.phase == phase)


def group_by_workload(pods: Iterable[PodFacts]) -> Mapping[str, list[PodFacts]]:
    """Return the pods of each workload, sorted by name."""
    result: dict[str, list[PodFacts]] = {}
    for pod in sorted(pods):
        result.setdefault(pod.workload, []).append(pod)
    return result
