"""Whose container a process is in, by the files that the kubelet mounts into it, for when the runtime takes its time.

Into each container of a pod the kubelet mounts files of the pod's own directory: ``pods/UID/containers/NAME/...`` for
what it says when it ends, ``pods/UID/etc-hosts``. The runtime mounts none of them into the container that holds the
pod's namespaces, whose cgroup looks like all others.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Final

from agents.node.pinning.cpuset import PROC

_ROOT: Final = re.compile(r".*/pods/([^/]+)/(?:containers/([^/]+)/[^/]+|etc-hosts)")
_PROCESSES: Final = 4
"""Processes of a cgroup that are looked at; the first may be about to end."""
_INSIDE: Final = 16
"""Cgroups that are searched for them."""


def container_name(cgroup: Path, pod_uid: str, *, proc: Path = PROC) -> str | None:
    """Return the name of a pod's container by its processes; empty if they do not tell.

    None: it is not sure that it is a container of the pod, as without the host's PID namespace, or before it has its
    root directory.
    """
    found = None
    for pid in _processes(cgroup):
        for uid, name in _mounted(proc / pid / "mountinfo") if pid != "0" else ():
            if uid == pod_uid:
                found = name or found or ""
        if found:
            break
    return found


def _processes(cgroup: Path) -> list[str]:
    """The first processes of a cgroup; of those inside if it has none itself, as where a container runs systemd."""
    for directory in islice((Path(found) for found, _, _ in os.walk(cgroup)), _INSIDE):
        try:
            pids = (directory / "cgroup.procs").read_text().split()
        except OSError:
            continue  # it is gone, or has threads alone
        if pids:
            return pids[:_PROCESSES]
    return []


def _mounted(mountinfo: Path) -> list[tuple[str, str]]:
    """UIDs of pods and names of containers that files are mounted from."""
    try:
        # Paths may hold any bytes.
        lines = mountinfo.read_bytes().decode(errors="replace").splitlines()
    except OSError:
        return []
    roots = (line.split(" ", 4)[3] for line in lines if line.count(" ") > 3)
    return [(match[1], match[2] or "") for root in roots if (match := _ROOT.fullmatch(root))]
