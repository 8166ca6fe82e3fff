"""What the virtual machine is made of: programs that are installed, or Debian's packages unpacked; and a kernel."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from hack.localcluster import debian
from hack.localcluster.errors import ClusterError
from hack.localcluster.paths import tools_cache

PROGRAMS: Final = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static"}
"""Programs, and Debian's package that has each."""
KERNEL: Final = "linux-image-amd64"
"""Package that depends on Debian's present kernel; the one for clouds cannot mount directories of the host."""
MODULES: Final = ("crypto", "drivers/block", "drivers/char/hw_random", "drivers/virtio", "fs", "lib", "net/9p")
"""Directories of the kernel's modules that are unpacked."""
LIBRARIES: Final = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
"""Where packages have the emulator's libraries."""
FIRMWARE: Final = ("usr/share/qemu", "usr/share/seabios")
"""Where packages have its firmware."""


class Parts(NamedTuple):
    """What a virtual machine is started with."""

    qemu: Path
    """the emulator"""
    busybox: Path
    """a program with a shell in it that loads no libraries"""
    kernel: Path
    """the kernel's image"""
    modules: Path
    """directory of its modules"""
    root: Path
    """directory of unpacked packages, with libraries and firmware of the emulator"""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the emulator needs."""
        return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(str(self.root / path) for path in LIBRARIES)}


def parts(*, report: Callable[[str], None]) -> Parts:
    """Return what a virtual machine is started with; packages are unpacked the first time, and nothing is installed.

    Raises:
        ClusterError: this machine has another architecture, or a program that is needed and no apt-get.
    """
    if platform.machine() != "x86_64":
        raise ClusterError(
            f"the virtual machine is for x86_64, this is {platform.machine()}: run it on another machine"
        )
    for program, package in {"apt-get": "apt", "mkfs.ext4": "e2fsprogs"}.items():
        if _locate(program) is None:
            raise ClusterError(f"the virtual machine needs {program} (Debian's {package}): run it on Debian")
    root = tools_cache() / "vm"
    if not root.is_dir():
        _unpack(root, report)
    programs = {name: _locate(name, root) for name in PROGRAMS}
    images = sorted(root.glob("boot/vmlinuz-*"))
    if not images or None in programs.values():
        raise ClusterError(f"{root} is not complete: remove it and run this again")
    qemu, busybox = (Path(str(path)) for path in programs.values())
    return Parts(qemu, busybox, images[-1], root / "lib" / "modules", root)


def _unpack(root: Path, report: Callable[[str], None]) -> None:
    kernel = debian.latest(KERNEL)
    programs = debian.missing([*PROGRAMS.values()])
    report(f"unpacking {', '.join([kernel, *programs])} into {root}")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=".vm-") as scratch:
        whole = Path(scratch) / "root"
        directories = [f"./lib/modules/*/kernel/{name}/*" for name in MODULES]
        debian.unpack([kernel], whole, only=["./boot/vmlinuz-*", *directories])
        if programs:
            debian.unpack(programs, whole)
        whole.rename(root)


def _locate(program: str, root: Path = Path("/")) -> Path | None:
    """An unpacked program before an installed one: the installed busybox may load libraries."""
    own = [str(root / directory) for directory in ("usr/bin", "usr/sbin", "bin", "sbin")]
    found = shutil.which(program, path=os.pathsep.join([*own, os.environ.get("PATH", os.defpath)]))
    return Path(found) if found else None
