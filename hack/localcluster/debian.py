"""Debian's packages, downloaded and unpacked without installing anything; needs apt-get and no rights."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from hack.localcluster.errors import ClusterError

TIMEOUT: Final = 300.0
"""Seconds that a command may take."""


def unpack(packages: Sequence[str], into: Path, *, only: Iterable[str] = ()) -> None:
    """Download packages and unpack them into a directory, which is made.

    Args:
        packages: their names; what they depend on is for the caller to name.
        into: where their files go.
        only: patterns of the files that are wanted, such as ``./boot/*``; without any, all are.

    Raises:
        ClusterError: apt-get, dpkg-deb or tar fails.
    """
    patterns = tuple(only)
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=".debian-") as scratch:
        _listed(["apt-get", "download", "--quiet", *packages], Path(scratch))
        for archive in Path(scratch).glob("*.deb"):
            if patterns:
                tree = archive.with_suffix(".tar")
                _run(["sh", "-c", 'dpkg-deb --fsys-tarfile "$0" > "$1"', str(archive), str(tree)], Path(scratch))
                _run(["tar", "-xf", str(tree), "-C", str(into), "--wildcards", *patterns], Path(scratch))
            else:
                _run(["dpkg-deb", "--extract", str(archive), str(into)], Path(scratch))


def missing(packages: Sequence[str]) -> list[str]:
    """Return the packages that an installation of these would add, those that they depend on among them.

    Raises:
        ClusterError: apt-get fails, as with a package that there is not.
    """
    text = _listed(["apt-get", "install", "--simulate", "--no-install-recommends", *packages], Path("/"))
    return re.findall(r"^Inst (\S+)", text, re.MULTILINE)


def latest(package: str) -> str:
    """Return the package that a package without contents stands for, such as that of the present kernel.

    Raises:
        ClusterError: there is none.
    """
    text = _listed(["apt-cache", "depends", "--important", package], Path("/"))
    match = re.search(r"^ +Depends: (\S+)", text, re.MULTILINE)
    if match is None:
        raise ClusterError(f"the package {package} depends on nothing: look at apt-cache depends {package}")
    return match[1]


def _listed(command: list[str], directory: Path) -> str:
    """Run a command that needs lists of packages; a fresh machine has none yet."""
    try:
        return _run(command, directory)
    except ClusterError:
        _run(["apt-get", "update", "--quiet"], directory)
        return _run(command, directory)


def _run(command: list[str], directory: Path) -> str:
    try:
        answer = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{' '.join(command)}: still running after {TIMEOUT:g} s") from error
    if answer.returncode != 0:
        raise ClusterError(f"{' '.join(command)}: {answer.stderr.strip()[-500:]}")
    return answer.stdout
