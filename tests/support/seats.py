"""Pods on sockets of a node n1 as the socketstatus controller reads them, in a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.api.socketstatus import API_VERSION, KIND, SocketStatus
from berth.scheduling.cache.sockets import SocketTable
from controllers.socketstatus.pods import NodePods, SocketPod
from controllers.socketstatus.seats import Seats, read_seats


def pod(name: str = "web", letter: str = "D", *, node: str = "n1", cpu: str = "1", **fields: Any) -> SocketPod:
    """A pod as the API server sends it."""
    labels = {LABEL_INTERFERENCE_CLASS: letter} if letter else {}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels} | fields
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu}}}
    phase = metadata.pop("phase", "Running")
    document = {
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container], "priority": 7},
        "status": {"phase": phase, "message": "long"},
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=SocketPod)


def status(
    assigned: Mapping[str, int],
    *,
    cpus: Mapping[int, int] | None = None,
    true: Sequence[str] = (),
    unpinned: str = "",
) -> SocketStatus:
    """SocketStatus of n1 with the sockets 0 and 2 of 4 CPUs; sockets by name of the pod, why Pinned is not true."""
    stated = [(name, "True", "R") for name in true] + ([("Pinned", "False", unpinned)] if unpinned else [])
    conditions = [
        {"type": name, "status": is_so, "reason": why, "message": "", "lastTransitionTime": "2026-01-31T12:00:00Z"}
        for name, is_so, why in stated
    ]
    sockets = {0: 4, 2: 4} if cpus is None else cpus
    document: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "n1"},
        "spec": {
            "assignments": [
                {"uid": f"uid-{name}", "namespace": "default", "name": name, "socket": socket}
                for name, socket in assigned.items()
            ]
        },
        "status": {
            "sockets": [{"socket": number, "cpus": "0", "cpuCount": count} for number, count in sockets.items()],
            "conditions": conditions,
        },
    }
    return SocketStatus.parse(document)


def node(*found: SocketPod) -> NodePods:
    """The pods of n1."""
    pods = NodePods(SocketTable(), LABEL_INTERFERENCE_CLASS)
    for each in found:
        pods.update(None, each)
    return pods


def seats(of: SocketStatus, pods: NodePods, *movable: str) -> Seats:
    """Who sits where; `movable` are the names of pods whose assignments may be changed."""
    return read_seats(of, frozenset(f"uid-{name}" for name in movable), pods, LABEL_INTERFERENCE_CLASS)
