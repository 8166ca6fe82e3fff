"""What real nodes leave on the machine beside processes: found by the instance's directory alone, and removed."""

from __future__ import annotations

import contextlib
import re
import subprocess
from pathlib import Path

from hack.localcluster.errors import ClusterError
from hack.localcluster.kubelets import cgroups, network
from hack.localcluster.kubelets.names import bridge

CONTAINER_LOGS = Path("/var/log/containers")
"""Where every kubelet links the logs of its containers."""

MOUNTS = Path("/proc/self/mounts")
CNI_RESULTS = Path("/var/lib/cni/results")
"""Where runtimes note which address a pod got."""


def mounts_below(home: Path, mounts: str) -> list[str]:
    """Mount points below *home*, the last one mounted first, of those in the text *mounts* of ``/proc/self/mounts``."""
    written = [line.split()[1] for line in mounts.splitlines()]
    # Blanks and the like are written as octal numbers.
    points = [re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point) for point in written]
    return [point for point in reversed(points) if point.startswith(f"{home}/")]


def unmount(point: str) -> None:
    """Unmount *point*, unless a shim that is ending has done so meanwhile.

    Raises:
        ClusterError: it is still mounted.
    """
    # Lazily: a mount may be busy for as long as the kernel takes to end the last process in it.
    answer = subprocess.run(["umount", "--lazy", point], capture_output=True, text=True, check=False)
    if answer.returncode != 0 and point in mounts_below(Path(point).parent, MOUNTS.read_text()):
        raise ClusterError(f"cannot unmount {point}: {answer.stderr.strip()}")


def remove(home: Path) -> None:
    """Remove containers, cgroups, mounts, namespaces, links and logs of the nodes of the instance in *home*.

    Does nothing where there are none. Its processes outside of containers must have ended.

    Raises:
        ClusterError: something stays; nothing below *home* may be deleted then.
    """
    cgroups.delete(f"{bridge(home)}-")
    for point in mounts_below(home, MOUNTS.read_text()):
        unmount(point)
    network.delete(home)
    for link in CONTAINER_LOGS.glob("*.log"):
        with contextlib.suppress(OSError):
            if link.readlink().is_relative_to(home):
                link.unlink()
    sandboxes = home.glob("nodes/*/run/io.containerd.grpc.v1.cri/sandboxes/*")
    for pattern in (f"{bridge(home)}-*", *(f"*-{sandbox.name}-*" for sandbox in sandboxes)):
        for result in CNI_RESULTS.glob(pattern):
            result.unlink(missing_ok=True)
