"""What the controller takes in of a SocketStatus. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.api.socketstatus import SocketStatus

_OF_SOCKETS = ("socket", "cpuCount", "pinnedCaches", "coreCount")


def read(raw: Mapping[str, Any]) -> SocketStatus:
    """Return the object without the status' lists of CPUs and of pods: nothing is decided by them.

    A list of CPUs is a few bytes in the object, and up to four megabytes here. A status has room for a hundred
    thousand of them, and it is a node that writes it.

    Raises:
        berth.api.errors.InvalidObjectError: the object does not fit.
    """
    status = raw.get("status")
    if not isinstance(status, Mapping):
        return SocketStatus.parse(raw)
    sockets = [
        {"cpus": "", **{name: each[name] for name in _OF_SOCKETS if name in each}}
        for each in status.get("sockets") or ()
    ]
    return SocketStatus.parse({**raw, "status": {"sockets": sockets, "conditions": status.get("conditions") or ()}})
