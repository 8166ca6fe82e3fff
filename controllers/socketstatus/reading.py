"""What the controller takes in of a SocketStatus. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.api.base import read_timestamp
from berth.api.socketstatus import SocketStatus

_OF_SOCKETS = ("socket", "cpuCount", "pinnedCaches", "coreCount")


def read(raw: Mapping[str, Any]) -> SocketStatus:
    """Return the object without the status' lists of CPUs and of pods: nothing is decided by them.

    A list of CPUs is a few bytes in the object, and up to four megabytes here. A status has room for a hundred
    thousand of them, and it is a node that writes it.

    A time of an assignment that only the API server understands is left out: one that somebody has edited must not
    keep the other pods of the node from being paired.

    Raises:
        berth.api.errors.InvalidObjectError: the object does not fit.
    """
    spec = raw.get("spec")
    if isinstance(spec, Mapping) and isinstance(assignments := spec.get("assignments"), list):
        raw = {**raw, "spec": {**spec, "assignments": [_with_a_time_or_none(each) for each in assignments]}}
    status = raw.get("status")
    if not isinstance(status, Mapping):
        return SocketStatus.parse(raw)
    sockets = [
        {"cpus": "", **{name: each[name] for name in _OF_SOCKETS if name in each}}
        for each in status.get("sockets") or ()
    ]
    return SocketStatus.parse({**raw, "status": {"sockets": sockets, "conditions": status.get("conditions") or ()}})


def _with_a_time_or_none(assignment: Any) -> Any:
    time = assignment.get("time") if isinstance(assignment, Mapping) else None
    if time is None or read_timestamp(time) is not None:
        return assignment
    return {name: value for name, value in assignment.items() if name != "time"}
