"""A real containerd of a test's own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.node.pinning.cgroup_paths import Driver
from hack.harness.cluster import eventually
from hack.localcluster import processes
from hack.localcluster.kubelets import cgroups, images, packages
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from hack.localcluster.paths import tools_cache
from tests.support.running_runtime import RunningRuntime


def configuration(directory: Path, driver: Driver, kept: Path) -> str:
    """Configuration of a containerd that has everything below a directory, but for what outlives a boot."""
    return f"""\
version = 2
root = "{kept}"
state = "{directory}/state"
oom_score = 0
[grpc]
  address = "{directory}/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = {str(driver is Driver.SYSTEMD).lower()}
"""


@contextmanager
def containerd(directory: Path, driver: Driver = Driver.CGROUPFS) -> Iterator[RunningRuntime]:
    """A containerd with the image of a container that does nothing; all of it is gone afterwards."""
    root = f"berth-test-{os.getpid()}-{directory.name}"[:60]
    running = RunningRuntime(directory, root, driver=driver)
    daemon = launch(running)
    try:
        give_image(running)
        yield running
        asyncio.run(running.end_all())
    finally:
        daemon.terminate()
        daemon.wait()
        cgroups.delete(root)
        processes.kill_marked(str(directory))


def launch(running: RunningRuntime, kept: Path | None = None) -> subprocess.Popen[bytes]:
    """Start the daemon, which does not serve yet; what outlives a boot may be elsewhere than the rest.

    Skips the test where it cannot run, and says why.
    """
    directory = running.directory
    problem = packages.problem(directory)
    if problem or not _pause():
        pytest.skip(problem or "no image for containers: run hack/cluster build pause")
    (directory / "config.toml").write_text(configuration(directory, running.driver, kept or directory / "root"))
    environment = {**os.environ, "PATH": packages.search_path(), processes.MARK: str(directory)}
    cgroups.create(running.root)
    command = [str(packages.locate("containerd")), "--config", str(directory / "config.toml")]
    with (directory / "log").open("wb") as log:
        daemon = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    running.pid = daemon.pid
    return daemon


def give_image(running: RunningRuntime) -> None:
    """Have it take the image of a container that does nothing, as soon as it serves."""
    archive = running.directory / "pause.tar"
    images.write_pause(archive, _pause()[-1])
    command = [str(packages.locate("ctr")), f"--address={running.socket}", "--namespace=k8s.io"]
    deadline = time.monotonic() + 60
    while subprocess.run([*command, "images", "import", str(archive)], capture_output=True, check=False).returncode:
        assert time.monotonic() < deadline, running.log()
        time.sleep(0.1)
    eventually(lambda: asyncio.run(running.has_image(PAUSE_IMAGE)), timeout=60, what=f"image {PAUSE_IMAGE}")


def _pause() -> list[Path]:
    return sorted(tools_cache().glob("*/pause"))
