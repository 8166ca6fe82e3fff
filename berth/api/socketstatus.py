"""SocketStatus: sockets of a node and the pods on them, ``berth.dev/v1alpha1``, cluster-scoped, named after its node.

The spec says where pods are to be, the status what the node's agent finds and has made true.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from berth.api import rules
from berth.api.base import ApiModel, ApiObject, Int32, Int64, TimestampOrNone
from berth.api.conditions import Condition
from berth.api.cpulist import MAX_CPU, format_cpulist, parse_cpulist
from berth.api.interference import InterferenceClass
from berth.api.labels import BERTH_GROUP

API_VERSION: Final = f"{BERTH_GROUP}/v1alpha1"
"""``apiVersion`` of every SocketStatus."""
KIND: Final = "SocketStatus"
"""``kind`` of every SocketStatus."""
PLURAL: Final = "socketstatuses"
"""Resource name in API paths."""

CONDITION_PINNED: Final = "Pinned"
"""True when every assigned pod that runs has the CPUs of its socket, or its part of them, and no others."""
REASON_UNABLE: Final = "Unable"
"""Reason of `Pinned` where nothing can be pinned at all, or the agent has ended."""
CONDITION_DRIFTED: Final = "Drifted"
"""True when somebody else changed CPUs that the agent had set, and it has not been able to set them again."""
CONDITION_OBSERVE_ONLY: Final = "ObserveOnly"
"""True when the agent changes nothing: the kubelet or another agent pins pods on the node."""
CONDITION_TOPOLOGY_UNKNOWN: Final = "TopologyUnknown"
"""True when the agent cannot tell the sockets of the node."""
AGENT_CONDITIONS: Final = (
    CONDITION_PINNED,
    CONDITION_DRIFTED,
    CONDITION_OBSERVE_ONLY,
    CONDITION_TOPOLOGY_UNKNOWN,
)
"""Types of the conditions that the node's agent writes."""
CONDITION_PAIRED: Final = "Paired"
"""True when no two assigned pods on one socket disturb each other; the socketstatus controller writes it."""

PLACEMENT_MANAGER: Final = "berth-placement-sockets"
"""Field manager of assignments that the placement controller writes: the sockets that pods are placed for."""
REPAIRING_MANAGER: Final = "berth-socketstatus"
"""Field manager of what the socketstatus controller writes: sockets of pods that it moves, and its condition."""

MAX_SOCKETS: Final = 64
"""Sockets of a node at most."""
MAX_PODS: Final = 512
"""Pods of a node at most, several times what a kubelet takes unless told otherwise."""
MAX_CACHES: Final = 256
"""Last-level caches of a socket at most."""
MAX_CORES: Final = 4096
"""Cores of a socket at most."""
_MAX_CPULIST: Final = 16_384
_RANGE: Final = "[0-9]{1,5}(-[0-9]{1,5})?"
_MAX_NAME: Final = 253
_MAX_LABEL: Final = 63


def _read_cpulist(value: Any) -> Any:
    return parse_cpulist(value) if isinstance(value, str) else value


CpuList = Annotated[
    frozenset[Annotated[int, Field(ge=0, le=MAX_CPU)]],
    BeforeValidator(_read_cpulist),
    PlainSerializer(format_cpulist, return_type=str),
    WithJsonSchema(
        {
            "description": "CPUs, such as 0-3,8.",
            "type": "string",
            "pattern": f"^({_RANGE}(,{_RANGE})*)?$",
            "maxLength": _MAX_CPULIST,
        }
    ),
]
"""CPUs: a set in Python, text such as ``0-3,8`` on the wire."""


class PodReference(ApiModel):
    """A pod, as both lists name it."""

    uid: str = Field(min_length=1, max_length=_MAX_LABEL, description="UID of the pod.")
    namespace: str = Field(min_length=1, max_length=_MAX_LABEL, description="Namespace of the pod.")
    name: str = Field(min_length=1, max_length=_MAX_NAME, description="Name of the pod.")
    interference_class: InterferenceClass | None = Field(
        default=None,
        description=(
            "Interference class of the pod. A: neither suffers nor makes others suffer. B: suffers. C: makes others "
            "suffer. D: both. Unset: it states none."
        ),
    )


class Assignment(PodReference):
    """Where a pod is to be."""

    socket: Int32 = Field(ge=0, description="Socket that the pod is to be on, by its number in status.sockets.")
    time: TimestampOrNone = Field(default=None, description="When the pod was assigned to that socket.")


class SocketStatusSpec(ApiModel):
    """Where pods are to be."""

    assignments: tuple[Assignment, ...] = Field(
        default=(),
        max_length=MAX_PODS,
        description="Sockets of the node's pods. A pod that is not listed keeps the CPUs it has without Berth.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
    )


class CacheReport(ApiModel):
    """An outermost cache of a socket."""

    level: Int32 | None = Field(
        default=None, ge=1, le=9, description="3 for an L3. Unset: no cache is known, and these CPUs may share one."
    )
    size_bytes: Int64 | None = Field(default=None, ge=0, description="Size of the cache. Unset: not known.")
    cpus: CpuList = Field(description="CPUs that share it, such as 0-3,8.")


class SocketReport(ApiModel):
    """One socket of the node."""

    socket: Int32 = Field(ge=0, description="Number of the socket, as the kernel counts them.")
    numa_nodes: tuple[Annotated[Int32, Field(description="Number of a NUMA node.")], ...] = Field(
        default=(),
        max_length=MAX_SOCKETS,
        description="NUMA nodes with CPUs of the socket; a node may have CPUs of several sockets.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    cpus: CpuList = Field(description="Online CPUs of the socket, such as 0-3,8.")
    cpu_count: Int32 = Field(ge=1, description="Number of these.")
    memory_bytes: Int64 | None = Field(
        default=None,
        ge=0,
        description="Memory of its NUMA nodes. Unset: not known, or of several sockets together.",
    )
    caches: tuple[CacheReport, ...] = Field(
        default=(),
        max_length=MAX_CACHES,
        description="Outermost caches of the socket: its L3 caches on most machines.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    pinned_caches: Int32 | None = Field(
        default=None,
        ge=1,
        le=MAX_CACHES,
        description="Number of its caches that the agent keeps pods apart in. Unset: they have all of its CPUs.",
    )
    core_count: Int32 | None = Field(
        default=None,
        ge=1,
        description="Number of its cores, where some have several of its CPUs. Unset: none has, or it is not known.",
    )
    smt_siblings: tuple[CpuList, ...] = Field(
        default=(),
        max_length=MAX_CORES,
        description="CPUs of each core that has several, such as 0,64.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class PodReport(PodReference):
    """A pod with a class or an assignment, as it runs."""

    socket: Int32 | None = Field(
        default=None, ge=0, description="Socket that all its CPUs are of. Unset: they are of several."
    )
    cache: Int32 | None = Field(
        default=None,
        ge=0,
        le=MAX_CACHES,
        description=(
            "Cache that it is kept to, by its place in the caches of its socket, counted from 0. Unset: it may use all "
            "of the socket."
        ),
    )
    cpus: CpuList | None = Field(
        default=None, description="CPUs that the agent asked for. Unset: none, it leaves the pod alone."
    )
    effective_cpus: CpuList | None = Field(
        default=None, description="CPUs that its containers may use, of all together. Unset: not known."
    )
    since: TimestampOrNone = Field(
        default=None, description="Since when the pod has had what was asked for. Unset: it has not."
    )


class SocketStatusStatus(ApiModel):
    """What the node's agent has found and done."""

    observed_generation: Int64 | None = Field(
        default=None, ge=0, description="Generation of the spec that the agent has acted on."
    )
    time: TimestampOrNone = Field(default=None, description="When the agent last wrote.")
    socket_count: Int32 | None = Field(default=None, ge=0, description="Number of sockets, for kubectl get.")
    pinned: str | None = Field(
        default=None,
        max_length=16,
        description="Pods with the CPUs of their socket, or their part of them, of those with a class, such as 3/4.",
    )
    violations: Int32 | None = Field(
        default=None, ge=0, description="Pairs of pods on one socket whose classes do not fit together."
    )
    sockets: tuple[SocketReport, ...] = Field(
        default=(),
        max_length=MAX_SOCKETS,
        description="Sockets of the node.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["socket"]},
    )
    pods: tuple[PodReport, ...] = Field(
        default=(),
        max_length=MAX_PODS,
        description="Pods with a class or an assignment that run on the node.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description=(
            "State of the node. Pinned: assigned pods have the CPUs of their socket, or their part of them. Drifted: "
            "somebody else changes them. ObserveOnly: the agent changes nothing. TopologyUnknown: the sockets cannot "
            "be told. Paired: no two pods on one socket disturb each other."
        ),
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


class SocketStatus(ApiObject):
    """The sockets of a node and the pods on them; named after the node."""

    api_version: str = Field(default=API_VERSION, description=rules.API_VERSION_DESCRIPTION)
    kind: str = Field(default=KIND, description=rules.KIND_DESCRIPTION)
    spec: SocketStatusSpec = Field(default_factory=SocketStatusSpec, description="Where pods are to be.")
    status: SocketStatusStatus = Field(
        default_factory=SocketStatusStatus, description="What the node's agent has found and done."
    )
