"""A real CRI-O of a test's own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.node.pinning.cgroup_paths import Driver, Runtime
from hack.crio import programs
from hack.crio.programs import Programs
from hack.localcluster import processes
from hack.localcluster.kubelets import cgroups, images, packages, remains
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from hack.localcluster.paths import tools_cache
from tests.support.running_runtime import IMAGES, MESSAGES, RunningRuntime

PATIENCE = 300.0
"""Seconds until it serves: a virtual machine is slow."""


def configuration(running: RunningRuntime, found: Programs, network: Path) -> str:
    """Configuration of a CRI-O that has everything below a directory, and its images from an archive there.

    The configuration of the pods' network is in a directory `network`.
    """
    directory, driver = running.directory, running.driver
    conmon_cgroup = "pod" if driver is Driver.CGROUPFS else "system.slice"
    return f"""\
[crio]
  root = "{directory}/root"
  runroot = "{directory}/run"
  storage_driver = "vfs"
  log_dir = "{directory}/logs"
  version_file = "{directory}/version"
  version_file_persist = "{directory}/version-persist"
  clean_shutdown_file = "{directory}/clean"
[crio.api]
  listen = "{running.socket}"
  stream_port = "0"
[crio.runtime]
  cgroup_manager = "{driver}"
  conmon_cgroup = "{conmon_cgroup}"
  pinns_path = "{found.pinns}"
  namespaces_dir = "{directory}/ns"
  container_exits_dir = "{directory}/exits"
  container_attach_socket_dir = "{directory}/attach"
  decryption_keys_path = "{directory}/keys"
  hooks_dir = []
  disable_hostport_mapping = true
  default_runtime = "runc"
[crio.runtime.runtimes.runc]
  runtime_path = "{directory}/runc.sh"
  runtime_root = "{directory}/runc"
  monitor_path = "{found.conmon}"
  monitor_cgroup = "{conmon_cgroup}"
[crio.image]
  default_transport = "docker-archive:{directory}/images.tar:"
  pause_image = "{PAUSE_IMAGE}"
  signature_policy = "{directory}/policy.json"
[crio.network]
  network_dir = "{network}"
  plugin_dirs = ["{packages.unpacked()}/usr/lib/cni", "/usr/lib/cni", "/opt/cni/bin"]
[crio.nri]
  enable_nri = false
"""


def require_crio(directory: Path) -> Path:
    """Skip the test where CRI-O cannot run, and say why; the program of containers that do nothing.

    CRI-O is built if it is not there, or is waited for where it is being built: ``make test`` does so beside tests.
    """
    problem = packages.problem(directory)
    pause = sorted(tools_cache().glob("*/pause"))
    if problem or not pause or programs.ensure(report=print) is None:
        pytest.skip(problem or "no packages of CRI-O, or no image for containers: run make tools crio")
    return pause[-1]


@contextmanager
def crio(directory: Path, driver: Driver = Driver.CGROUPFS) -> Iterator[RunningRuntime]:
    """A CRI-O with the image of a container that does nothing; all of it is gone afterwards."""
    pause = require_crio(directory)
    running = RunningRuntime(directory, f"berth-test-{os.getpid()}-{directory.name}"[:60], Runtime.CRIO, driver)
    images.write_pause(directory / "images.tar", pause)
    cgroups.create(running.root)
    try:
        with started(running):
            asyncio.run(pull(running, PAUSE_IMAGE))
            yield running
            asyncio.run(running.end_all())
    finally:
        cgroups.delete(running.root)
        clean(directory)


def clean(directory: Path) -> None:
    """End what containers have left, and unmount what is below a directory."""
    processes.kill_marked(str(directory))
    for mount in remains.mounts_below(directory, remains.MOUNTS.read_text()):
        remains.unmount(mount)


def runc(program: Path) -> str:
    """A script that is runc without limits of huge pages, for which CRI-O asks also where no cgroups have them."""
    return f"""\
#!/bin/sh
for word; do
  [ "$before" = --bundle ] && sed -i '/"hugepageLimits": [[]$/,/[]]/{{/hugepageLimits\\|[]]/!d}}' "$word/config.json"
  before=$word
done
exec {program} "$@"
"""


@contextmanager
def started(
    running: RunningRuntime, *, mark: Path | None = None, network: Path | None = None, prefix: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the daemon, which serves when the block begins.

    Args:
        running: the runtime.
        mark: directory of the instance whose end is that of the daemon too; its own without.
        network: directory with the configuration of the pods' network.
        prefix: command before its own, that enters namespaces.
    """
    directory, found = running.directory, programs.locate()
    assert found is not None
    (directory / "crio.conf").write_text(configuration(running, found, network or directory / "cni"))
    (directory / "runc.sh").write_text(runc(found.runc))
    (directory / "runc.sh").chmod(0o755)
    (directory / "policy.json").write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
    environment = {**os.environ, "PATH": packages.search_path(), processes.MARK: str(mark or directory)}
    command = [*prefix, str(found.crio), f"--config={directory}/crio.conf", f"--config-dir={directory}/none"]
    with (directory / "log").open("ab") as log:
        daemon = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    running.pid = daemon.pid
    try:
        deadline = time.monotonic() + PATIENCE
        while not running.socket.exists():
            assert time.monotonic() < deadline, running.log()
            assert daemon.poll() is None, running.log()
            time.sleep(0.1)
        yield daemon
    finally:
        daemon.terminate()
        daemon.wait()
        running.socket.unlink(missing_ok=True)


async def pull(running: RunningRuntime, image: str) -> None:
    """Take an image from the archive."""
    request = MESSAGES("PullImageRequest")()
    request.image.image = image
    await running.call("PullImage", request, "Empty", service=IMAGES)
