"""A real container runtime of a test's own, with containers in real cgroups laid out as the kubelet does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from grpclib.client import Channel, UnaryUnaryMethod

from agents.node.pinning.cgroup_paths import Driver, QosClass, Runtime, pod_path
from agents.node.pinning.cri import LABEL_CONTAINER, LABEL_POD_UID
from agents.node.pinning.cri_messages import MAP, SERVICE, Messages
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE

IMAGES = "/runtime.v1.ImageService"
_NODE = 2
"""NamespaceMode NODE: no network plug-in is needed."""
_CONTAINER = 1
"""NamespaceMode CONTAINER, as the kubelet has processes unless a pod asks for one namespace."""

MESSAGES = Messages(
    {
        "NamespaceOption": {"network": (1, "int32"), "pid": (2, "int32"), "ipc": (3, "int32")},
        "SandboxSecurityContext": {"namespace_options": (1, "NamespaceOption")},
        "LinuxPodSandboxConfig": {"cgroup_parent": (1, "string"), "security_context": (2, "SandboxSecurityContext")},
        "PodSandboxMetadata": {
            "name": (1, "string"),
            "uid": (2, "string"),
            "namespace": (3, "string"),
            "attempt": (4, "uint32"),
        },
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
        "ImageSpec": {"image": (1, "string"), "user_specified_image": (18, "string")},
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
        "ListedContainer": {"id": (1, "string")},
        "ListedContainers": {"containers": (1, "ListedContainer list")},
        "PullImageRequest": {"image": (1, "ImageSpec")},
        "ImageStatusRequest": {"image": (1, "ImageSpec")},
        "Image": {"id": (1, "string")},
        "ImageStatusResponse": {"image": (1, "Image")},
        "Empty": {},
    }
)


@dataclass
class RunningRuntime:
    """The running daemon."""

    directory: Path
    root: str
    """cgroup below which its pods are; with the driver systemd they are in slices at the top"""
    kind: Runtime = Runtime.CONTAINERD
    """which one it is"""
    driver: Driver = Driver.CGROUPFS
    """who makes cgroups"""
    pid: int = 0
    """the daemon's process"""
    sandboxes: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """ID and configuration of each pod's sandbox, by UID"""

    @property
    def socket(self) -> Path:
        """Where it listens; CRI-O in a directory of its own, as it lets only such a one be mounted privately."""
        return self.directory.joinpath(*(["s"] if self.kind is Runtime.CRIO else []), "c.sock")

    async def start(
        self, uid: str, name: str = "main", *, shares: int = 512, quota: int = 50_000, attempt: int = 0
    ) -> str:
        """Start a container of the pod `uid`, burstable, and return its ID.

        The attempt counts those of the same pod and name that were there before, as the kubelet does.
        """
        if uid not in self.sandboxes:
            config = MESSAGES("PodSandboxConfig")(log_directory=str(self.directory / "logs"))
            config.metadata.name, config.metadata.uid, config.metadata.namespace = f"pod-{uid}", uid, "default"
            config.metadata.attempt = attempt
            config.labels[LABEL_POD_UID] = uid
            config.linux.cgroup_parent = self._parent(uid)
            namespaces = config.linux.security_context.namespace_options
            namespaces.network, namespaces.pid = _NODE, _CONTAINER
            request = MESSAGES("RunPodSandboxRequest")(config=config)
            answer = await self.call("RunPodSandbox", request, "RunPodSandboxResponse")
            self.sandboxes[uid] = (answer.pod_sandbox_id, config)
        sandbox, config = self.sandboxes[uid]
        request = MESSAGES("CreateContainerRequest")(pod_sandbox_id=sandbox, sandbox_config=config)
        wanted = request.config
        wanted.metadata.name, wanted.metadata.attempt, wanted.log_path = name, attempt, f"{name}.log"
        wanted.image.image = wanted.image.user_specified_image = PAUSE_IMAGE
        wanted.labels[LABEL_POD_UID], wanted.labels[LABEL_CONTAINER] = uid, name
        resources = wanted.linux.resources
        resources.cpu_period, resources.cpu_quota, resources.cpu_shares = 100_000, quota, shares
        namespaces = wanted.linux.security_context.namespace_options
        namespaces.network, namespaces.pid = _NODE, _CONTAINER
        container = (await self.call("CreateContainer", request, "CreateContainerResponse")).container_id
        await self.call("StartContainer", MESSAGES("ContainerRef")(container_id=container), "Empty")
        return str(container)

    async def end(self, uid: str) -> None:
        """End the pod `uid` with all of its containers."""
        sandbox, _ = self.sandboxes.pop(uid)
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            await self.call(method, MESSAGES("PodSandboxRef")(pod_sandbox_id=sandbox), "Empty")

    async def all_containers(self) -> frozenset[str]:
        """Return the IDs of all containers, and so of those that have ended."""
        answer = await self.call("ListContainers", MESSAGES("Empty")(), "ListedContainers")
        return frozenset(each.id for each in answer.containers)

    async def has_image(self, image: str) -> bool:
        """Whether containers may be of an image: containerd imports one a moment before its CRI part hears of that."""
        request = MESSAGES("ImageStatusRequest")()
        request.image.image = image
        return bool((await self.call("ImageStatus", request, "ImageStatusResponse", service=IMAGES)).image.id)

    def pod(self, uid: str) -> PurePosixPath:
        """Where the cgroup of a pod is below a hierarchy."""
        path = pod_path(self.driver, QosClass.BURSTABLE, uid)
        return path if self.driver is Driver.SYSTEMD else PurePosixPath("/", self.root, path.relative_to("/"))

    def _parent(self, uid: str) -> str:
        """That, as the kubelet states it to the runtime: a slice by its name alone."""
        return self.pod(uid).name if self.driver is Driver.SYSTEMD else str(self.pod(uid))

    async def call(self, method: str, request: Any, answer: str, *, service: str = SERVICE) -> Any:
        """Ask one of its services."""
        channel = Channel(path=str(self.socket))
        try:
            return await UnaryUnaryMethod(channel, f"{service}/{method}", type(request), MESSAGES(answer))(request)
        finally:
            channel.close()

    def log(self) -> str:
        """What the daemon has logged."""
        return (self.directory / "log").read_text()

    async def end_all(self) -> None:
        """End all pods."""
        for uid in list(self.sandboxes):
            await self.end(uid)
