"""What is kept of a pod that occupies a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from berth.api.labels import ANNOTATION_SOCKET

if TYPE_CHECKING:
    from berth.kube.objects import Node, Pod
    from berth.scheduling.cache.pod_templates import PodTemplateInfo
    from berth.scheduling.cache.volumes import DiskUse
    from berth.scheduling.interference.policy import InterferencePolicy

_MAX_DIGITS: Final = 9
"""Digits of a socket's number at most, an int32 in the kind."""


@dataclass(slots=True, eq=False)
class PodRecord:
    """A pod that occupies a node."""

    uid: str
    """metadata.uid."""
    key: str
    """``namespace/name``."""
    template: PodTemplateInfo
    """Its compiled template."""
    node_name: str
    """Where it is or is going."""
    amounts: tuple[tuple[int, int], ...]
    """(resource column, amount) pairs it is charged with."""
    claims: tuple[str, ...]
    """``namespace/name`` of the claims it uses."""
    disks: tuple[DiskUse, ...]
    """In-tree disks it mounts."""
    policy: InterferencePolicy | None
    """How its socket is chosen, None where classes count for nothing."""
    owner: str
    """The workload that it is of, empty without one and where no class counts; for WorkloadProfiles."""
    bound_with: int | None
    """Number of its socket as its annotation said when it was seen bound, not while it waits."""
    terminating: bool
    """Whether it is being deleted."""
    ready: bool
    """Whether it serves."""
    assumed: bool
    """True until a watch event shows it on its node."""
    chosen: Node | None
    """The node as it was when the pod was assumed there; None once it is bound."""


def stated_socket(pod: Pod) -> int | None:
    """The socket that a pod's annotation says it was bound with; None where it says none."""
    text = pod.metadata.annotations.get(ANNOTATION_SOCKET, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else None
