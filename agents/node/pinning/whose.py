"""Whose container a process is in, by what the runtime and the kubelet did to it, for when the runtime takes its time.

The process that holds a pod's namespaces is the last of its pod that the kernel ends for want of memory: runtimes give
it ``oom_score_adj`` -998 (``defaultSandboxOOMAdj`` of containerd, ``PodInfraOOMAdj`` of CRI-O), and the kubelet has
containers have -997, 2 to 999 or 1000 by their class (``pkg/kubelet/qos/policy.go``). A runtime that may not go so low
gives it the lowest that it may, and so it does with containers that were to have less. It takes microseconds to read.

Into each container of a pod the kubelet mounts files of the pod's own directory: ``pods/UID/containers/NAME/...`` for
what it says when it ends, ``pods/UID/etc-hosts``. The runtime mounts none of them into the container that holds the
pod's namespaces, whose cgroup looks like all others. To read that takes up to seconds while a hundred containers start:
the kernel lets nobody see mounts while others mount.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from agents.node.pinning.cpuset import PROC

SANDBOX_SCORE: Final = -998
"""``oom_score_adj`` of what holds a pod's namespaces, where the runtime may go so low."""
GUARANTEED_SCORE: Final = -997
"""That of containers of class Guaranteed, and of pods that the node cannot do without."""
LEAST_SCORE: Final = 2
"""The least of all other containers."""
_ROOT: Final = re.compile(r".*/pods/([^/]+)/(?:containers/([^/]+)/[^/]+|etc-hosts)")
_PROCESSES: Final = 4
"""Processes of a cgroup that are looked at; the first may be about to end."""
_INSIDE: Final = 16
"""Cgroups that are searched for them."""


class Kinds(NamedTuple):
    """Cgroups of one pod, by their IDs."""

    containers: frozenset[str]
    """those of its containers"""
    sandboxes: frozenset[str]
    """those that hold its namespaces"""
    presumed: frozenset[str]
    """the one that most likely does so, where none surely does"""


def kinds(cgroups: Mapping[str, Path], *, proc: Path = PROC) -> Kinds:
    """Tell the containers of a pod from what holds its namespaces, by when the kernel ends them; some are neither.

    Args:
        cgroups: all cgroups of the pod, by ID.
        proc: where processes are.
    """
    scores = {key: score for key, cgroup in cgroups.items() if (score := _oom_score(cgroup, proc)) is not None}
    least = min(scores.values(), default=SANDBOX_SCORE)
    # Who may, gives himself less than what holds the namespaces has, as kube-proxy does: that is no container for it.
    containers = frozenset(key for key, score in scores.items() if score > least and _is_of_kubelet(score))
    if least <= SANDBOX_SCORE:
        return Kinds(containers, frozenset(key for key, score in scores.items() if score == SANDBOX_SCORE), frozenset())
    last = frozenset(key for key, score in scores.items() if score == least)
    # A runtime may keep no process for namespaces; then it is a container.
    return Kinds(containers, frozenset(), last if len(last) == 1 else frozenset())


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


def _is_of_kubelet(score: int) -> bool:
    """Whether the kubelet has containers have such a score."""
    return score == GUARANTEED_SCORE or score >= LEAST_SCORE


def _oom_score(cgroup: Path, proc: Path) -> int | None:
    """What the kernel adds for the first process of a cgroup that tells; None: none does."""
    for pid in _processes(cgroup):
        with contextlib.suppress(OSError, ValueError):  # it has ended, or is not to be seen
            return int((proc / pid / "oom_score_adj").read_text())
    return None


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
