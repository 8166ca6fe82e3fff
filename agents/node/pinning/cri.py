"""Asks the container runtime over its socket: which containers run, where they are, and to give them other CPUs.

Containers get another cpuset through the runtime first, since containerd and CRI-O store the value and apply it again
with every later update; what is written behind their back does not last.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from google.protobuf.message import DecodeError
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from agents.node.pinning.cri_messages import RUNNING, SERVICE, message

SOCKET: Final = Path("/run/containerd/containerd.sock")
"""Where containerd listens; CRI-O does at ``/run/crio/crio.sock``."""
TIMEOUT_SECONDS: Final = 2.0
"""How long the runtime may take for an answer."""
FIRST_RETRY_SECONDS: Final = 2.0
"""How long a runtime that said nothing about a container is asked about none: each time costs two seconds. It is twice
as long each time until it answers: a busy one is late once in a while, one that hangs would take half of the time."""
RETRY_SECONDS: Final = 30.0
"""Greatest length of that."""
HUNG_SECONDS: Final = 90.0
"""How long it is not asked about that container, as one whose shim hangs: else it is the first to be asked about again,
and the others are never asked about."""
LABEL_POD_UID: Final = "io.kubernetes.pod.uid"
"""Label by which the kubelet says whose a container is."""
LABEL_CONTAINER: Final = "io.kubernetes.container.name"
"""Label with the container's name in its pod."""


class CriError(Exception):
    """The runtime refused something, or cannot be reached; the text says which socket and why."""

    def __init__(self, text: str, *, answered: bool, unknown: bool = False) -> None:
        """Keep the text, whether the runtime answered at all, and whether it knows the container."""
        super().__init__(text)
        self.answered = answered
        """True for a refusal; False: nobody listens, or it took too long."""
        self.unknown = unknown
        """True when the runtime has no such container."""


class Container(NamedTuple):
    """A container that runs."""

    id: str
    """ID that the runtime has given it"""
    pod_uid: str
    """UID of its pod; of a static pod the hash of its configuration"""
    name: str
    """name in its pod"""


class Place(NamedTuple):
    """Where a container is on the machine."""

    cgroups_path: str
    """the runtime's ``linux.cgroupsPath``; empty: it does not say"""
    pid: int
    """first process in the runtime's PID namespace; 0: it does not say"""


class _Linux(msgspec.Struct, rename="camel"):
    cgroups_path: str = ""


class _RuntimeSpec(msgspec.Struct, rename="camel"):
    linux: _Linux = msgspec.field(default_factory=_Linux)


class _Info(msgspec.Struct, rename="camel"):
    pid: int = 0
    runtime_spec: _RuntimeSpec = msgspec.field(default_factory=_RuntimeSpec)


class RuntimeClient:
    """One connection to a runtime; opened when it is first needed, and again when it was lost."""

    def __init__(
        self, socket: Path, *, timeout: float = TIMEOUT_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepare without I/O.

        Args:
            socket: where the runtime listens.
            timeout: seconds that a call may take.
            clock: monotonic seconds.
        """
        self._socket = socket
        self._timeout = timeout
        self._clock = clock
        self._silent_until, self._pause = 0.0, FIRST_RETRY_SECONDS
        self._hung: dict[str, float] = {}
        self._away = False
        self._channel: Channel | None = None
        # A runtime that is slow must not find all that was asked meanwhile in its queue.
        self._turn = asyncio.Lock()

    async def containers(self) -> tuple[Container, ...]:
        """Return the containers that run.

        Raises:
            CriError: the runtime does not say.
        """
        request = message("ListContainersRequest")()
        request.filter.state.state = RUNNING
        try:
            answer = await self._call("ListContainers", request, "ListContainersResponse")
        except CriError as error:
            self._away = not error.answered
            raise
        if self._away:
            # It is there again, and is asked about containers at once.
            self._away, self._silent_until, self._pause = False, 0.0, FIRST_RETRY_SECONDS
            self._hung.clear()
        return tuple(
            Container(found.id, found.labels[LABEL_POD_UID], found.labels.get(LABEL_CONTAINER) or found.metadata.name)
            for found in answer.containers
            if LABEL_POD_UID in found.labels
        )

    async def place(self, container_id: str) -> Place:
        """Return where a container is.

        Raises:
            CriError: the runtime does not say, as of one that has ended.
        """
        request = message("ContainerStatusRequest")(container_id=container_id, verbose=True)
        answer = await self._ask("ContainerStatus", request, "ContainerStatusResponse")
        return place_in(dict(answer.info))

    async def set_cpuset(self, container_id: str, cpus: str, mems: str) -> None:
        """Have a container run on these CPUs and use memory of these NUMA nodes; nothing else of it changes.

        Args:
            container_id: ID of the container.
            cpus: list of CPUs; not empty, which would mean no change.
            mems: list of NUMA nodes; given with every update, since runtimes apply both together.

        Raises:
            CriError: the runtime refuses, as CPUs that are not there, or does not answer.
        """
        request = message("UpdateContainerResourcesRequest")(container_id=container_id)
        request.linux.cpuset_cpus, request.linux.cpuset_mems = cpus, mems
        await self._ask("UpdateContainerResources", request, "UpdateContainerResourcesResponse")

    def close(self) -> None:
        """Let go of the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    @property
    def silent(self) -> bool:
        """Whether it is asked about no container, since it said nothing a short time ago."""
        return self._clock() < self._silent_until

    async def _ask(self, method: str, request: Any, answer: str) -> Any:
        """Ask about one container, unless the runtime is silent: many that wait in turn would take minutes."""
        now, container = self._clock(), request.container_id
        if self.silent or now < self._hung.get(container, 0.0):
            text = f"{self._socket}: {method}: not asked, since it said nothing a short time ago"
            raise CriError(text, answered=False)
        try:
            found = await self._call(method, request, answer)
        except CriError as error:
            if error.answered:
                self._pause = FIRST_RETRY_SECONDS
            else:
                now = self._clock()
                self._silent_until, self._pause = now + self._pause, min(2 * self._pause, RETRY_SECONDS)
                self._hung = {key: until for key, until in self._hung.items() if until > now}
                self._hung[container] = now + HUNG_SECONDS
            raise
        self._pause = FIRST_RETRY_SECONDS
        return found

    async def _call(self, method: str, request: Any, answer: str) -> Any:
        async with self._turn:
            if self._channel is None:
                self._channel = Channel(path=str(self._socket))
            call = UnaryUnaryMethod(self._channel, f"{SERVICE}/{method}", type(request), message(answer))
            try:
                async with asyncio.timeout(self._timeout):
                    return await call(request)
            except GRPCError as error:
                text = f"{self._socket}: {method}: {error.status.name}: {error.message or 'no reason given'}"
                raise CriError(text, answered=True, unknown=error.status is Status.NOT_FOUND) from error
            except DecodeError as error:
                raise CriError(f"{self._socket}: {method}: no answer that can be read", answered=True) from error
            except TimeoutError as error:
                self.close()
                text = f"{self._socket}: {method}: no answer within {self._timeout:g} s"
                raise CriError(text, answered=False) from error
            except (OSError, StreamTerminatedError) as error:
                self.close()
                raise CriError(f"{self._socket}: {method}: {error or repr(error)}", answered=False) from error


def place_in(info: Mapping[str, str]) -> Place:
    """Return what the verbose part of a ContainerStatus says; containerd and CRI-O have it as JSON under ``info``."""
    try:
        found = msgspec.json.decode(info.get("info", "{}"), type=_Info)
    except (ValueError, RecursionError):
        return Place("", 0)
    return Place(found.runtime_spec.linux.cgroups_path, found.pid)
