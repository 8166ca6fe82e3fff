"""A real containerd of a test's own, with containers in real cgroups laid out as the kubelet does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from grpclib.client import Channel, UnaryUnaryMethod

from agents.node.pinning.cri import LABEL_CONTAINER, LABEL_POD_UID
from agents.node.pinning.cri_messages import MAP, SERVICE, Messages
from hack.localcluster import processes
from hack.localcluster.kubelets import cgroups, images, packages
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from hack.localcluster.paths import tools_cache

_NODE = 2
"""NamespaceMode NODE: no network plug-in is needed."""

MESSAGES = Messages(
    {
        "NamespaceOption": {"network": (1, "int32"), "pid": (2, "int32"), "ipc": (3, "int32")},
        "SandboxSecurityContext": {"namespace_options": (1, "NamespaceOption")},
        "LinuxPodSandboxConfig": {"cgroup_parent": (1, "string"), "security_context": (2, "SandboxSecurityContext")},
        "PodSandboxMetadata": {"name": (1, "string"), "uid": (2, "string"), "namespace": (3, "string")},
        "PodSandboxConfig": {
            "metadata": (1, "PodSandboxMetadata"),
            "log_directory": (3, "string"),
            "labels": (6, MAP),
            "linux": (8, "LinuxPodSandboxConfig"),
        },
        "RunPodSandboxRequest": {"config": (1, "PodSandboxConfig")},
        "RunPodSandboxResponse": {"pod_sandbox_id": (1, "string")},
        "PodSandboxRef": {"pod_sandbox_id": (1, "string")},
        "ContainerMetadata": {"name": (1, "string"), "attempt": (2, "uint32")},
        "ImageSpec": {"image": (1, "string")},
        "ContainerSecurityContext": {"namespace_options": (3, "NamespaceOption")},
        "Resources": {"cpu_period": (1, "int64"), "cpu_quota": (2, "int64"), "cpu_shares": (3, "int64")},
        "LinuxContainerConfig": {"resources": (1, "Resources"), "security_context": (2, "ContainerSecurityContext")},
        "ContainerConfig": {
            "metadata": (1, "ContainerMetadata"),
            "image": (2, "ImageSpec"),
            "labels": (9, MAP),
            "log_path": (11, "string"),
            "linux": (15, "LinuxContainerConfig"),
        },
        "CreateContainerRequest": {
            "pod_sandbox_id": (1, "string"),
            "config": (2, "ContainerConfig"),
            "sandbox_config": (3, "PodSandboxConfig"),
        },
        "CreateContainerResponse": {"container_id": (1, "string")},
        "ContainerRef": {"container_id": (1, "string")},
        "Empty": {},
    }
)


@dataclass
class Containerd:
    """The running daemon."""

    directory: Path
    root: str
    """cgroup below which its pods are"""
    pid: int = 0
    """the daemon's process"""
    sandboxes: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """ID and configuration of each pod's sandbox, by UID"""

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.directory / "c.sock"

    async def start(self, uid: str, name: str = "main", *, shares: int = 512, quota: int = 50_000) -> str:
        """Start a container of the pod `uid`, burstable, and return its ID."""
        if uid not in self.sandboxes:
            config = MESSAGES("PodSandboxConfig")(log_directory=str(self.directory / "logs"))
            config.metadata.name, config.metadata.uid, config.metadata.namespace = f"pod-{uid}", uid, "default"
            config.labels[LABEL_POD_UID] = uid
            config.linux.cgroup_parent = f"/{self.root}/kubepods/burstable/pod{uid}"
            config.linux.security_context.namespace_options.network = _NODE
            request = MESSAGES("RunPodSandboxRequest")(config=config)
            answer = await self.call("RunPodSandbox", request, "RunPodSandboxResponse")
            self.sandboxes[uid] = (answer.pod_sandbox_id, config)
        sandbox, config = self.sandboxes[uid]
        request = MESSAGES("CreateContainerRequest")(pod_sandbox_id=sandbox, sandbox_config=config)
        wanted = request.config
        wanted.metadata.name, wanted.image.image, wanted.log_path = name, PAUSE_IMAGE, f"{name}.log"
        wanted.labels[LABEL_POD_UID], wanted.labels[LABEL_CONTAINER] = uid, name
        resources = wanted.linux.resources
        resources.cpu_period, resources.cpu_quota, resources.cpu_shares = 100_000, quota, shares
        wanted.linux.security_context.namespace_options.network = _NODE
        container = (await self.call("CreateContainer", request, "CreateContainerResponse")).container_id
        await self.call("StartContainer", MESSAGES("ContainerRef")(container_id=container), "Empty")
        return str(container)

    async def end(self, uid: str) -> None:
        """End the pod `uid` with all of its containers."""
        sandbox, _ = self.sandboxes.pop(uid)
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            await self.call(method, MESSAGES("PodSandboxRef")(pod_sandbox_id=sandbox), "Empty")

    async def call(self, method: str, request: Any, answer: str) -> Any:
        """Ask the runtime service."""
        channel = Channel(path=str(self.socket))
        try:
            return await UnaryUnaryMethod(channel, f"{SERVICE}/{method}", type(request), MESSAGES(answer))(request)
        finally:
            channel.close()

    def log(self) -> str:
        """What the daemon has logged."""
        return (self.directory / "log").read_text()


def configuration(directory: Path) -> str:
    """Configuration of a containerd that has everything below a directory."""
    return f"""\
version = 2
root = "{directory}/root"
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
"""


@contextmanager
def containerd(directory: Path) -> Iterator[Containerd]:
    """A containerd with the image of a container that does nothing; all of it is gone afterwards."""
    problem = packages.problem(directory)
    pause = sorted(tools_cache().glob("*/pause"))
    if problem or not pause:
        pytest.skip(problem or "no image for containers: run hack/cluster build pause")
    root = f"berth-test-{os.getpid()}-{directory.name}"[:60]
    running = Containerd(directory, root)
    (directory / "config.toml").write_text(configuration(directory))
    environment = {**os.environ, "PATH": packages.search_path(), processes.MARK: str(directory)}
    cgroups.create(root)
    command = [str(packages.locate("containerd")), "--config", str(directory / "config.toml")]
    with (directory / "log").open("wb") as log:
        daemon = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    running.pid = daemon.pid
    try:
        _import(running, pause[-1])
        yield running
        asyncio.run(_end_all(running))
    finally:
        daemon.terminate()
        daemon.wait()
        cgroups.delete(root)
        for pid in processes.marked(str(directory)):
            os.kill(pid, 9)


async def _end_all(running: Containerd) -> None:
    for uid in list(running.sandboxes):
        await running.end(uid)


def _import(running: Containerd, program: Path) -> None:
    archive = running.directory / "pause.tar"
    images.write_pause(archive, program)
    command = [str(packages.locate("ctr")), f"--address={running.socket}", "--namespace=k8s.io"]
    deadline = time.monotonic() + 60
    while subprocess.run([*command, "images", "import", str(archive)], capture_output=True, check=False).returncode:
        assert time.monotonic() < deadline, running.log()
        time.sleep(0.1)
