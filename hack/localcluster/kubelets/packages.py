"""The programs that real nodes need beside those that are built: the installed ones, or Debian's packages unpacked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from hack.localcluster import debian
from hack.localcluster.paths import tools_cache

PACKAGES = {
    "containerd": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "host-local": "containernetworking-plugins",
    "loopback": "containernetworking-plugins",
}
"""Programs that may be unpacked, and Debian's package that has each; iproute2 has another ``bridge``."""

INSTALLED = {"ip": "iproute2", "nsenter": "util-linux", "umount": "mount", "sysctl": "procps"}
"""Programs that must be installed, and Debian's package that has each."""

_USUAL = ("/usr/sbin", "/sbin", "/usr/lib/cni", "/opt/cni/bin")
_DIRECTORIES = ("usr/bin", "usr/sbin", "usr/lib/cni")
LONGEST_HOME = 70
"""Length of the directory of an instance; the names of sockets below it may have 107 characters."""


def unpacked() -> Path:
    """Directory of unpacked packages."""
    return tools_cache() / "debian"


def search_path() -> str:
    """``PATH`` with the CNI plugins and the unpacked packages at its end."""
    own = [str(unpacked() / name) for name in _DIRECTORIES]
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *_USUAL, *own])


def locate(program: str) -> Path | None:
    """Path of *program*, None if it is neither installed nor unpacked."""
    found = shutil.which(program, path=search_path())
    return Path(found) if found else None


def problem(home: Path) -> str | None:
    """Why real nodes cannot be started for an instance in *home*, and the remedy; None if they can."""
    if os.geteuid() != 0:
        return "real nodes need root, for network namespaces, mounts and cgroups: run it as root, or without --kubelets"
    if len(str(home)) > LONGEST_HOME:
        return f"{home} is too long for the sockets of real nodes: use a shorter name, or another BERTH_CLUSTERS_DIR"
    missing = sorted({package for program, package in {**INSTALLED, **PACKAGES}.items() if locate(program) is None})
    if missing:
        return f"real nodes need {', '.join(missing)}: run hack/cluster build kubelet, or install them"
    return None


def ensure(*, report: Callable[[str], None]) -> None:
    """Unpack the packages whose programs are missing, on a machine with apt-get; nothing is installed.

    Raises:
        ClusterError: apt-get or dpkg-deb fails.
    """
    missing = sorted({package for program, package in PACKAGES.items() if locate(program) is None})
    if not missing or shutil.which("apt-get") is None:
        return
    report(f"unpacking {', '.join(missing)} into {unpacked()}")
    debian.unpack(missing, unpacked())
