"""The pods of every node, cut down to what their sockets depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from berth.api.interference import stated_class
from berth.api.labels import ANNOTATION_SOCKET
from berth.kube.objects import Pod, PodSpec, PodStatus
from berth.kube.owners import owner_of
from berth.kube.resources import Resource
from berth.scheduling.cache.sockets import SocketTable
from berth.scheduling.interference.slowdown import Workload
from berth.scheduling.requests import pod_requests
from berth.scheduling.units import CPU

T = TypeVar("T")

_MOST: Final = 2**40
"""Thousandths of a CPU, more than any machine has: sums of them are to stay whole numbers of 64 bits."""


class SocketPod(Pod):
    """A pod without what its socket does not depend on: its containers, its annotations and most of its status.

    Nor with its labels where it has thousands of them: then it is as one without class.
    """

    cpu: int = 0
    """thousandths of a CPU that it requests"""
    bound_with_socket: bool = False
    """whether placement chose a socket for it, which it will assign"""

    def __post_init__(self) -> None:
        """Work out what is asked for, and let go of the rest."""
        self.cpu = min(pod_requests(self).get(CPU, 0), _MOST)
        self.bound_with_socket = ANNOTATION_SOCKET in self.metadata.annotations
        self.metadata.annotations = {}
        self.metadata = self.metadata.bounded()
        self.spec = PodSpec(node_name=self.spec.node_name)
        self.status = PodStatus(phase=self.status.phase)

    @property
    def leaving(self) -> bool:
        """Whether it is to end: it matters to nobody any more."""
        return self.metadata.deletion_timestamp is not None


SOCKET_PODS: Final = Resource("", "v1", "pods", "Pod", SocketPod)
"""Pods, cut down."""


class _Facts(NamedTuple):
    node: str
    workload: Workload
    cpu: int
    leaving: bool


class NodePods:
    """The pods that are on nodes, kept up to date by changes."""

    def __init__(self, table: SocketTable, class_label: str) -> None:
        """Start empty.

        Args:
            table: knows the WorkloadProfiles.
            class_label: label with the class of a pod.
        """
        self._table = table
        self._class_label = class_label
        self._nodes: dict[str, dict[str, SocketPod]] = {}
        self._workloads: dict[str, dict[str, str]] = {}

    def of(self, node: str) -> Mapping[str, SocketPod]:
        """Return the pods of a node that have not finished, by uid."""
        return self._nodes.get(node, {})

    def nodes_of(self, workloads: Iterable[str]) -> set[str]:
        """Return the nodes with pods of any of these workloads, as `owner_of` names them."""
        return {node for name in workloads for node in self._workloads.get(name, {}).values()}

    def workload(self, pod: SocketPod) -> Workload | None:
        """Return what the slowdown model knows a pod by; None for one without class."""
        stated = stated_class(pod.metadata.labels, self._class_label).interference_class
        return self._table.workload(stated, owner_of(pod))

    def update(self, old: SocketPod | None, new: SocketPod | None) -> list[str]:
        """Take in a change, as a watch reports it, and return the nodes to which it matters.

        Pods without class matter to none.
        """
        before, after = self._facts(old), self._facts(new)
        for pod in (old, new):
            if pod is not None and pod.spec.node_name:
                self._keep(pod, there=pod is new and not pod.finished)
        if before == after:
            return []
        return list(dict.fromkeys(facts.node for facts in (before, after) if facts is not None))

    def _keep(self, pod: SocketPod, *, there: bool) -> None:
        node, owner = pod.spec.node_name, owner_of(pod)
        _set(self._nodes, node, pod.metadata.uid, pod if there else None)
        if owner:
            _set(self._workloads, owner, pod.metadata.uid, node if there else None)

    def _facts(self, pod: SocketPod | None) -> _Facts | None:
        if pod is None or not pod.spec.node_name or pod.finished:
            return None
        workload = self.workload(pod)
        return None if workload is None else _Facts(pod.spec.node_name, workload, pod.cpu, pod.leaving)


def _set(groups: dict[str, dict[str, T]], group: str, key: str, value: T | None) -> None:
    """Have a value in a group, or none; groups without any are forgotten."""
    found = groups.setdefault(group, {})
    if value is not None:
        found[key] = value
    else:
        found.pop(key, None)
    if not found:
        del groups[group]
