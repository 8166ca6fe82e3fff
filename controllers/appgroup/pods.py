"""The pods of every AppGroup, reduced to the few facts that a status depends on.

A pod belongs to the group that its label names *in its own namespace*: equal names in other namespaces
are other groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from berth.api.labels import LABEL_APPGROUP, LABEL_WORKLOAD, membership
from berth.kube.objects import ObjectMeta
from berth.kube.resources import Resource
from berth.network.groups import GroupKey

_LABELS: Final = (LABEL_APPGROUP, LABEL_WORKLOAD)


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

    def __post_init__(self) -> None:
        """Let go of what no status depends on: a pod may have a hundred thousand labels."""
        metadata = self.metadata
        metadata.labels = {key: metadata.labels[key] for key in _LABELS if key in metadata.labels}
        metadata.annotations, metadata.owner_references = {}, []


GROUP_PODS: Final = Resource("", "v1", "pods", "Pod", GroupPod)
"""Pods, decoded to the few fields that matter here."""


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


class GroupPods:
    """The pods of every group, kept up to date by changes."""

    def __init__(self) -> None:
        """Start empty."""
        self._groups: dict[GroupKey, dict[str, GroupPod]] = {}

    def __len__(self) -> int:
        """Return the number of pods."""
        return sum(len(pods) for pods in self._groups.values())

    def of(self, group: GroupKey) -> list[PodFacts]:
        """Return the pods of a group, in no particular order."""
        return [_facts(pod) for pod in self._groups.get(group, {}).values()]

    def update(self, old: GroupPod | None, new: GroupPod | None) -> list[GroupKey]:
        """Take in a change, as a watch reports it, and return the groups to which it matters.

        None if no fact has changed, one, or two if the pod has moved from one group to another.
        """
        before, after = _group_of(old), _group_of(new)
        if old is not None and before is not None and before != after:
            pods = self._groups[before]
            del pods[old.metadata.name]
            if not pods:
                del self._groups[before]
        if new is not None and after is not None:
            self._groups.setdefault(after, {})[new.metadata.name] = new
            if old is not None and before == after and _facts(old) == _facts(new):
                return []
        return [group for group in dict.fromkeys((before, after)) if group is not None]


def _group_of(pod: GroupPod | None) -> GroupKey | None:
    member = membership(pod.metadata.labels) if pod is not None else None
    return GroupKey(pod.metadata.namespace, member.appgroup) if pod is not None and member is not None else None


def _facts(pod: GroupPod) -> PodFacts:
    metadata = pod.metadata
    member = membership(metadata.labels)
    return PodFacts(
        name=metadata.name,
        uid=metadata.uid,
        workload=member.workload if member is not None else "",
        node=pod.spec.node_name,
        phase=pod.status.phase,
        created=datetime.fromisoformat(metadata.creation_timestamp) if metadata.creation_timestamp else None,
        deleting=metadata.deletion_timestamp is not None,
    )


def group_by_workload(pods: Iterable[PodFacts]) -> Mapping[str, list[PodFacts]]:
    """Return the pods of each workload, sorted by name."""
    result: dict[str, list[PodFacts]] = {}
    for pod in sorted(pods):
        result.setdefault(pod.workload, []).append(pod)
    return result
