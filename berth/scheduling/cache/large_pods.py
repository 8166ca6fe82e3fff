"""Pods with more labels, selectors, ports or requests than anybody needs: of such a pod hardly anything is kept.

An API server stores a pod with a hundred thousand entries of this kind, each of which takes some 150 bytes as a Python
object. Such a pod is not placed (`berth.scheduling.plugins.unsupported_features`). On a node it takes what it requests,
and has no labels and no rules about others. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

from berth.api.labels import (
    ANNOTATION_ADMITTED_BANDWIDTH,
    ANNOTATION_DELETION_COST,
    ANNOTATION_SOCKET,
    LABEL_APPGROUP,
    LABEL_WORKLOAD,
)
from berth.kube.meta import MOST_ENTRIES, Amount, ResourceRequirements
from berth.kube.objects import Container, Pod, PodSpec, PodStatus
from berth.kube.resources import PODS, Resource
from berth.scheduling.cache.bandwidth_annotations import EGRESS, INGRESS
from berth.scheduling.requests import pod_requests
from berth.scheduling.units import CPU

_FIRST: Final = (CPU, "memory", "ephemeral-storage")
"""Requests that are kept of a pod that has too many even of these."""
_KEPT_CONDITIONS: Final = frozenset(("PodScheduled",))

_OF_PLACED: Final = (ANNOTATION_ADMITTED_BANDWIDTH, ANNOTATION_SOCKET, ANNOTATION_DELETION_COST, INGRESS, EGRESS)
"""Annotations that are read of a pod with a node; all of them may have 256 KiB."""

_Count = Callable[[Any], int]


def cut_down(pod: Pod) -> None:
    """Leave out, of a pod with more than `MOST_ENTRIES`, all that its books on a node do not need.

    How many it had is noted in ``spec.omitted_entries``. What the pod requests becomes that of one container; if it
    cannot be read, it is left out as well.
    """
    count = entries(pod)
    if count <= MOST_ENTRIES:
        return
    meta, spec, status = pod.metadata, pod.spec, pod.status
    try:
        requests = _requests(pod)
    except ValueError:
        requests = {}
    pod.metadata = msgspec.structs.replace(meta, labels={}, annotations={}, owner_references=[])
    pod.spec = PodSpec(
        node_name=spec.node_name,
        scheduler_name=spec.scheduler_name,
        priority=spec.priority,
        containers=[Container(resources=ResourceRequirements(requests=requests))],
        scheduling_gates=spec.scheduling_gates[:1],
        omitted_entries=count,
    )
    pod.status = PodStatus(
        phase=status.phase,
        reason=status.reason,
        conditions=[condition for condition in status.conditions if condition.type in _KEPT_CONDITIONS][:1],
    )


class BoundedPod(Pod):
    """A pod as it is followed: cut down if it is large; once it has a node, without annotations that nobody reads."""

    def __post_init__(self) -> None:
        """Let go of what it has too many of. A pod that waits keeps its annotations: its decision has to fit beside."""
        cut_down(self)
        if (known := self.metadata.annotations) and self.spec.node_name:
            self.metadata.annotations = {name: known[name] for name in _OF_PLACED if name in known}


class BoundedMember(Pod):
    """A pod of an AppGroup as it is told of: cut down if it is large, still a member of its AppGroup."""

    def __post_init__(self) -> None:
        """Let go of what it has too many of, but for the labels that say whose it is."""
        labels = self.metadata.labels
        cut_down(self)
        if self.spec.omitted_entries:
            self.metadata.labels = {name: labels[name] for name in (LABEL_APPGROUP, LABEL_WORKLOAD) if name in labels}


BOUNDED_PODS: Final[Resource[Pod]] = Resource(PODS.group, PODS.version, PODS.plural, PODS.kind, BoundedPod)
"""Pods, each bounded in what it takes."""
BOUNDED_MEMBERS: Final[Resource[Pod]] = Resource(PODS.group, PODS.version, PODS.plural, PODS.kind, BoundedMember)
"""Pods, each bounded in what it takes, by the AppGroup that they name."""


def entries(pod: Pod) -> int:
    """Entries of all lists and maps of a pod that Berth reads, those inside each other included."""
    return _counter(Pod)(pod)


def _requests(pod: Pod) -> dict[str, Amount]:
    amounts = pod_requests(pod)
    names = (*(name for name in _FIRST if name in amounts), *sorted(amounts.keys() - set(_FIRST)))
    return {name: f"{amounts[name]}m" if name == CPU else str(amounts[name]) for name in islice(names, MOST_ENTRIES)}


@cache
def _counter(kind: type) -> _Count:
    """What counts the entries of a struct: the fields that may have some are found once."""
    info = cast(inspect.StructType, inspect.type_info(kind))
    counts = [(field.name, count) for field in info.fields if (count := _count_of(field.type)) is not None]

    def counter(value: Any) -> int:
        found = 0
        for name, count in counts:
            part = getattr(value, name)
            if part:
                found += count(part)
        return found

    return counter


def _count_of(kind: inspect.Type) -> _Count | None:
    """What counts the entries of a value of a type; None where it has none."""
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, map(_count_of, kind.types)), None)
    if isinstance(kind, inspect.StructType):
        return _counter(kind.cls)
    if isinstance(kind, inspect.DictType):
        return len
    if isinstance(kind, inspect.ListType):
        inner = _count_of(kind.item_type)
        return len if inner is None else lambda items: len(items) + sum(map(inner, items))
    return None
