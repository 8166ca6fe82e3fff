"""Boots the virtual machine and runs pytest in it."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hack.localcluster.errors import ClusterError
from hack.localcluster.paths import REPOSITORY
from hack.vm.initramfs import initramfs
from hack.vm.machine import run_machine
from hack.vm.packages import Parts
from hack.vm.qemu import Shape, command

TEST_TIMEOUT: Final = 600.0
"""Seconds that one test may take: where it hangs is told before the boot is over."""
DISK_MIB: Final = 32
"""Size of the disk."""
_SCRIPTS: Final = ("start.sh", "run.sh")
_UNITS: Final = Path(__file__).with_name("units")
SYSTEMD: Final = {Path("/lib/systemd/systemd"): "systemd", Path("/usr/bin/dbus-daemon"): "dbus"}
"""Programs that are needed to boot with systemd, and Debian's package that has each."""
_CHILD: Final = REPOSITORY / "hack" / "localcluster" / "child.py"
_PLUGINS: Final = ("pytest_asyncio.plugin", "pytest_timeout")
_KEPT: Final = ("HOME", "PATH", "XDG_CACHE_HOME")


def prepare(parts: Parts, directory: Path) -> None:
    """Make the disk, empty, and what the kernel starts from, in a directory that is there.

    Raises:
        ClusterError: the kernel lacks a module, or the disk cannot be made.
    """
    (directory / "initramfs").write_bytes(initramfs(parts.busybox, parts.modules))
    disk = directory / "disk"
    with disk.open("wb") as stream:
        stream.truncate(DISK_MIB * 2**20)
    made = subprocess.run(["mkfs.ext4", "-q", str(disk)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise ClusterError(f"mkfs.ext4 {disk}: {made.stderr.strip()}")


def boot(
    parts: Parts, directory: Path, name: str, tests: Sequence[str], *, shape: Shape, systemd: bool = False
) -> bool:
    """Boot what was prepared, run tests in it, and return whether all of them passed.

    What they say goes to standard output as it comes, and to ``NAME.xml`` in the directory (JUnit).

    Args:
        parts: programs and kernel.
        directory: where disk and results are.
        name: name of this boot.
        tests: what pytest is told to run.
        shape: processors and memory.
        systemd: whether systemd is the first process, which then has the cgroups; otherwise the tests are.

    Raises:
        ClusterError: the machine ended without a result, or not at all; or there is no systemd.
    """
    for program, package in SYSTEMD.items() if systemd else ():
        if not program.exists():
            raise ClusterError(f"the virtual machine needs {program} (Debian's {package}): install it")
    shared = directory / "shared"
    shared.mkdir(exist_ok=True)
    status = shared / "exit-status"
    status.unlink(missing_ok=True)
    for script in _SCRIPTS:
        (shared / script).write_bytes(Path(__file__).with_name(script).read_bytes())
    shutil.rmtree(shared / "units", ignore_errors=True)
    if systemd:
        shutil.copytree(_UNITS, shared / "units")
    (shared / "command.sh").write_text(_script(name, tests))
    # The kernel ends the machine with this process, however that ends.
    line = [sys.executable, str(_CHILD), str(os.getpid())]
    line += command(parts, initramfs=directory / "initramfs", shared=shared, disk=directory / "disk", shape=shape)
    began, worked = time.monotonic(), _processor_seconds()
    try:
        run_machine(line, parts.environment, shared / "begun")
    except ClusterError as error:
        raise ClusterError(f"{name}: {error}") from error
    results = shared / f"{name}.xml"
    if results.exists():
        results.replace(directory / results.name)
    if not status.exists():
        raise ClusterError(f"{name}: the virtual machine stopped without a result: see what it said last")
    worked = _processor_seconds() - worked
    print(f"{name}: {time.monotonic() - began:.0f} s, of a processor {worked:.0f} s", flush=True)
    return status.read_text().strip() == "0"


def _processor_seconds() -> float:
    """What children of this process that have ended have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _script(name: str, tests: Sequence[str]) -> str:
    kept = {key: os.environ[key] for key in _KEPT if key in os.environ}
    pytest = [sys.executable, "-m", "pytest", "-v", "--color=no", "--basetemp=/run/pytest"]
    pytest += [f"--junitxml=/vm/{name}.xml", "-p", "no:cacheprovider", f"--timeout={TEST_TIMEOUT:.0f}"]
    for plugin in _PLUGINS:
        pytest += ["-p", plugin]
    pytest += tests
    # Programs start slowly there: what is not needed is not loaded, and what is loaded once is not written.
    variables = {**kept, "TMPDIR": "/run", "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    exports = [f"export {key}={shlex.quote(value)}" for key, value in variables.items()]
    return "\n".join([*exports, f"cd {shlex.quote(str(REPOSITORY))}", f"exec {shlex.join(pytest)}", ""])
