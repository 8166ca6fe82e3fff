"""SocketStatuses and WorkloadProfiles, as much of them as placement reads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from berth.api.interference import InterferenceClass
from berth.api.socketstatus import (
    CONDITION_OBSERVE_ONLY,
    CONDITION_PINNED,
    CONDITION_TOPOLOGY_UNKNOWN,
    REASON_UNABLE,
)
from berth.kube.custom_object import CustomObject
from berth.kube.decoding import ObjectDecoder
from berth.kube.meta import Int64, Struct
from berth.kube.owners import owner_key
from berth.scheduling.interference.residents import UNKNOWN_LAYOUT, Layout, caches_of, cores_of

MILLI: Final = 1000
"""Thousandths of a CPU in one."""
LEAST: Final = 1.0
"""Stated slowdowns below count as this: nobody gains by neighbours."""
MOST: Final = 2.0
"""Stated slowdowns above count as this: one of hundreds would outweigh all else that is known of a node."""


class _Assignment(Struct):
    uid: str = ""
    socket: Int64 = 0
    time: str = ""
    interference_class: str = ""


class _Spec(Struct):
    assignments: list[_Assignment] = msgspec.field(default_factory=list)


class _Socket(Struct):
    socket: Int64 = 0
    cpu_count: Int64 = 0
    pinned_caches: Int64 = 1
    core_count: Int64 = 0


class _Condition(Struct):
    type: str = ""
    status: str = ""
    reason: str = ""


class _Status(Struct):
    sockets: list[_Socket] = msgspec.field(default_factory=list)
    conditions: list[_Condition] = msgspec.field(default_factory=list)


class _Target(Struct):
    kind: str = ""
    name: str = ""


class _Slowdown(Struct):
    beside: str = ""
    slowdown: str = ""


class _ProfileSpec(Struct):
    target_ref: _Target = msgspec.field(default_factory=_Target)
    interference_class: str = ""
    slowdowns: list[_Slowdown] = msgspec.field(default_factory=list)


_SPEC: Final = ObjectDecoder(_Spec)
_STATUS: Final = ObjectDecoder(_Status)
_PROFILE: Final = ObjectDecoder(_ProfileSpec)


class NodeSockets(NamedTuple):
    """What a SocketStatus says of its node."""

    numbers: tuple[int, ...]
    """numbers of the sockets, as the kernel counts them, ascending"""
    layout: Layout
    """the same sockets by place"""
    assignments: Mapping[str, int]
    """number of the socket by uid of the pod"""
    times: Mapping[str, str]
    """when the pod was assigned to it, by uid"""
    uid: str = ""
    """uid of the SocketStatus, empty without one"""
    classes: Mapping[str, str] = MappingProxyType({})
    """class of the pod as its assignment states it, by uid; of those that state one"""


class Profile(NamedTuple):
    """What a WorkloadProfile says of its workload."""

    name: str
    """``namespace/name`` of the profile"""
    target: str
    """the workload, as `owner_key` names it"""
    interference_class: InterferenceClass
    """class of the workload"""
    slowdowns: Mapping[str, float]
    """measured slowdown, `LEAST` to `MOST`, by ``namespace/name`` of the neighbour's profile"""


def read_sockets(obj: CustomObject) -> NodeSockets:
    """Return what a SocketStatus says.

    Raises:
        ValueError: spec or status has a shape that the kind does not allow.
    """
    spec, status = _SPEC.decode(obj.spec), _STATUS.decode(obj.status)
    assignments = {each.uid: each.socket for each in spec.assignments}
    times, uid = {each.uid: each.time for each in spec.assignments}, obj.metadata.uid
    classes = {each.uid: each.interference_class for each in spec.assignments if each.interference_class}
    true = {condition.type for condition in status.conditions if condition.status == "True"}
    found = sorted((each for each in status.sockets if each.cpu_count > 0), key=lambda each: each.socket)
    if not found or CONDITION_TOPOLOGY_UNKNOWN in true:
        return NodeSockets((), UNKNOWN_LAYOUT, assignments, times, uid, classes)
    capacities = tuple(MILLI * each.cpu_count for each in found)
    unable = any(each.type == CONDITION_PINNED and each.reason == REASON_UNABLE for each in status.conditions)
    caches = caches_of(each.pinned_caches for each in found)
    cores = cores_of((each.cpu_count, each.core_count) for each in found)
    layout = Layout(capacities, not unable and CONDITION_OBSERVE_ONLY not in true, caches, cores)
    return NodeSockets(tuple(each.socket for each in found), layout, assignments, times, uid, classes)


def read_profile(obj: CustomObject) -> Profile:
    """Return what a WorkloadProfile says.

    Raises:
        ValueError: a field has a value that the kind does not allow.
    """
    spec, namespace = _PROFILE.decode(obj.spec), obj.metadata.namespace
    if spec.interference_class not in set(InterferenceClass):
        text = f"spec.interferenceClass: {spec.interference_class!r} is no interference class; write one of "
        raise ValueError(text + ", ".join(InterferenceClass))
    return Profile(
        f"{namespace}/{obj.metadata.name}",
        owner_key(namespace, spec.target_ref.kind, spec.target_ref.name),
        InterferenceClass(spec.interference_class),
        {f"{namespace}/{each.beside}": min(MOST, max(LEAST, float(each.slowdown))) for each in spec.slowdowns},
    )
