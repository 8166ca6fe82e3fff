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
from hack.localcluster.kubelets import cgroups, images, packages
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from hack.localcluster.paths import tools_cache
from tests.support.running_runtime import MESSAGES, RunningRuntime

PATIENCE = 300.0
"""Seconds until it serves: a virtual machine is slow."""
_IMAGES = "/runtime.v1.ImageService"


def configuration(directory: Path, found: Programs, driver: Driver) -> str:
    """Configuration of a CRI-O that has everything below a directory, and its images from an archive there."""
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
  listen = "{directory}/c.sock"
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
  runtime_path = "{found.runc}"
  runtime_root = "{directory}/runc"
  monitor_path = "{found.conmon}"
  monitor_cgroup = "{conmon_cgroup}"
[crio.image]
  default_transport = "docker-archive:{directory}/images.tar:"
  pause_image = "{PAUSE_IMAGE}"
  signature_policy = "{directory}/policy.json"
[crio.network]
  network_dir = "{directory}/cni"
  plugin_dirs = ["{directory}/plugins"]
[crio.nri]
  enable_nri = false
"""


@contextmanager
def crio(directory: Path, driver: Driver = Driver.CGROUPFS) -> Iterator[RunningRuntime]:
    """A CRI-O with the image of a container that does nothing; all of it is gone afterwards."""
    problem = packages.problem(directory)
    pause, found = sorted(tools_cache().glob("*/pause")), programs.locate()
    if problem or not pause or found is None:
        pytest.skip(problem or "no CRI-O, or no image for containers: run make tools")
    running = RunningRuntime(directory, f"berth-test-{os.getpid()}-{directory.name}"[:60], Runtime.CRIO, driver)
    images.write_pause(directory / "images.tar", pause[-1])
    cgroups.create(running.root)
    try:
        with started(running, found):
            asyncio.run(_pull(running))
            yield running
            asyncio.run(running.end_all())
    finally:
        cgroups.delete(running.root)
        for pid in processes.marked(str(directory)):
            os.kill(pid, 9)
        for mount in _mounts_below(directory):
            subprocess.run(["umount", "--lazy", mount], check=True)


@contextmanager
def started(running: RunningRuntime, found: Programs, prefix: Sequence[str] = ()) -> Iterator[None]:
    """Run the daemon, with a command before its own that enters namespaces; it serves when the block begins."""
    directory = running.directory
    (directory / "crio.conf").write_text(configuration(directory, found, running.driver))
    (directory / "policy.json").write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
    environment = {**os.environ, "PATH": packages.search_path(), processes.MARK: str(directory)}
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
        yield
    finally:
        daemon.terminate()
        daemon.wait()


async def _pull(running: RunningRuntime) -> None:
    request = MESSAGES("PullImageRequest")()
    request.image.image = PAUSE_IMAGE
    await running.call("PullImage", request, "Empty", service=_IMAGES)


def _mounts_below(directory: Path) -> list[str]:
    """Where something is mounted, the innermost first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return sorted((place for line in lines if (place := line.split()[1]).startswith(f"{directory}/")), reverse=True)
