"""The programs of CRI-O: itself is built, what it starts is installed or unpacked from Debian's packages."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from hack.localcluster import debian, tools
from hack.localcluster.errors import ClusterError
from hack.localcluster.kubelets import packages

CRIO: Final = tools.Tool(
    name="crio",
    package="github.com/cri-o/cri-o/cmd/crio",
    module=Path(__file__).resolve().parent,
    # Without libraries in C: signatures of images by Go alone, and no images on file systems that need them.
    tags=("containers_image_openpgp", "exclude_graphdriver_btrfs"),
)
"""The daemon."""
PACKAGES: Final = {"conmon": "conmon", "runc": "runc"}
"""Programs that it starts, and Debian's package that has each."""
PINNS: Final = Path(__file__).with_name("pinns.sh")
"""What makes the namespaces of pods."""
_MISSING: Final = """\
{error}
CRI-O, which tests of pinning need, could not be built: have GOPROXY name a proxy that has github.com/cri-o/cri-o and \
the other modules of {module}/go.mod, or copy the program from a machine where 'make crio' has built it, as {program}"""


class Programs(NamedTuple):
    """Where the programs are."""

    crio: Path
    """the daemon"""
    conmon: Path
    """what watches a container"""
    runc: Path
    """what starts a container"""
    pinns: Path
    """what makes the namespaces of pods"""


def locate() -> Programs | None:
    """Return the programs; None if one of them is not there yet."""
    crio, conmon, runc = tools.apart(CRIO), packages.locate("conmon"), packages.locate("runc")
    if not crio.exists() or conmon is None or runc is None:
        return None
    return Programs(crio, conmon, runc, PINNS)


def ensure(*, report: Callable[[str], None]) -> Programs | None:
    """Return the programs, after building and unpacking what is missing; None if packages cannot be had here.

    Raises:
        ClusterError: the build fails, or apt-get or dpkg-deb does.
    """
    try:
        tools.ensure_apart(CRIO, report=report)
    except ClusterError as error:
        text = _MISSING.format(error=error, module=CRIO.module, program=tools.apart(CRIO))
        raise ClusterError(text) from error
    missing = [package for program, package in PACKAGES.items() if packages.locate(program) is None]
    if missing and shutil.which("apt-get") is not None:
        report(f"unpacking {', '.join(missing)} into {packages.unpacked()}")
        debian.unpack(missing, packages.unpacked())
    return locate()
