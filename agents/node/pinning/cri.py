"""Asks the container runtime over its socket: which containers run, where they are, and to give them other CPUs.

Containers get another cpuset through the runtime first, since containerd and CRI-O store the value and apply it again
with every later update; what is written behind their back does not last.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
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
PATIENCE_SECONDS: Final = 0.25
"""How long who has other things to do waits for an answer about a container: the runtime of a node on which a hundred
start takes a second for one, and meanwhile nobody would see those that have started."""
FIRST_RETRY_SECONDS: Final = 2.0
"""How long a runtime that said nothing about a container is asked about none: each time costs two seconds. It is twice
as long each time until it answers: a busy one is late once in a while, one that hangs would take half of the time."""
RETRY_SECONDS: Final = 30.0
"""Greatest length of that."""
HUNG_SECONDS: Final = 90.0
"""How long it is not asked about that container, as one whose shim hangs: else it is the first to be asked about again,
and the others are never asked about."""
KEPT_SECONDS: Final = 10.0
"""How long an answer is kept that came after who had asked went on with other things."""
LABEL_POD_UID: Final = "io.kubernetes.pod.uid"
"""Label by which the kubelet says whose a container is."""
LABEL_CONTAINER: Final = "io.kubernetes.container.name"
"""Label with the container's name in its pod."""


class CriError(Exception):
    """The runtime refused something, or cannot be reached; the text says which socket and why."""

    def __init__(self, text: str, *, answered: bool, unknown: bool = False, awaited: bool = False) -> None:
        """Keep the text, whether the runtime answered, whether it knows the container, and whether it is awaited."""
        super().__init__(text)
        self.answered = answered
        """True for a refusal; False: nobody listens, or it took too long."""
        self.unknown = unknown
        """True when the runtime has no such container."""
        self.awaited = awaited
        """True while it may still answer, and who asks the same again gets that answer."""


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


@dataclass(slots=True)
class _Question:
    """What is asked about a container."""

    request: bytes
    answer: asyncio.Task[Any]
    answered_at: float = math.inf


class RuntimeClient:
    """One connection to a runtime; opened when it is first needed, and again when it was lost."""

    def __init__(
        self,
        socket: Path,
        *,
        timeout: float = TIMEOUT_SECONDS,
        patience: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare without I/O.

        Args:
            socket: where the runtime listens.
            timeout: seconds that a call may take.
            patience: seconds that who is in a hurry waits for an answer about a container; None: as long as others.
            clock: monotonic seconds.
        """
        self._socket = socket
        self._timeout, self._patience = timeout, patience
        self._clock = clock
        self._silent_until, self._pause = 0.0, FIRST_RETRY_SECONDS
        self._hung: dict[str, float] = {}
        self._away = False
        self._channel: Channel | None = None
        # A runtime that is slow must not find all that was asked meanwhile in its queue.
        self._turn = asyncio.Lock()
        self._answer: asyncio.Task[Any] | None = None
        """to what was asked last about a container"""
        self._late: dict[tuple[str, str], _Question] = {}
        """what is asked or was, by method and container, and whose answer nobody has had"""

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

    async def place(self, container_id: str, *, hurry: bool = False) -> Place:
        """Return where a container is.

        Args:
            container_id: ID of the container.
            hurry: wait a short time; an answer that comes later is that to who asks the same.

        Raises:
            CriError: the runtime does not say, as of one that has ended, or has not yet.
        """
        request = message("ContainerStatusRequest")(container_id=container_id, verbose=True)
        answer, _ = await self._ask("ContainerStatus", request, "ContainerStatusResponse", hurry=hurry)
        return place_in(dict(answer.info))

    async def set_cpuset(self, container_id: str, cpus: str, mems: str, *, hurry: bool = False) -> bool:
        """Have a container run on these CPUs and use memory of these NUMA nodes; nothing else of it changes.

        Return whether it was asked just now, and has not answered an earlier request of the same.

        Args:
            container_id: ID of the container.
            cpus: list of CPUs; not empty, which would mean no change.
            mems: list of NUMA nodes; given with every update, since runtimes apply both together.
            hurry: wait a short time; an answer that comes later is that to who asks the same.

        Raises:
            CriError: the runtime refuses, as CPUs that are not there, or does not answer, or has not yet.
        """
        request = message("UpdateContainerResourcesRequest")(container_id=container_id)
        request.linux.cpuset_cpus, request.linux.cpuset_mems = cpus, mems
        method, answer = "UpdateContainerResources", "UpdateContainerResourcesResponse"
        _, fresh = await self._ask(method, request, answer, hurry=hurry)
        return fresh

    async def settled(self) -> None:
        """Wait until the runtime does nothing more about any container, or says no more about it."""
        if self._answer is not None:
            await asyncio.wait({self._answer})

    def close(self) -> None:
        """Let go of the connection, and of what is still to be answered."""
        if self._answer is not None:
            self._answer.cancel()
            self._answer = None
            self._late.clear()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    @property
    def silent(self) -> bool:
        """Whether it is asked about no container, since it said nothing a short time ago."""
        return self._clock() < self._silent_until

    async def _ask(self, method: str, request: Any, answer: str, *, hurry: bool) -> tuple[Any, bool]:
        """Ask about one container, and wait for the answer; nothing else is asked about any before it is there.

        An answer that came too late for one in a hurry is given to the next who asks the same soon. With it comes
        whether it is that of a question that was asked just now.
        """
        end = asyncio.get_running_loop().time() + self._patience if hurry and self._patience is not None else None
        key, text, fresh = (method, request.container_id), request.SerializeToString(deterministic=True), False
        self._late = {at: each for at, each in self._late.items() if not self._is_old(each)}
        while (asked := self._late.get(key)) is None or asked.request != text:
            if self._answer is not None and not self._answer.done():
                await self._wait(self._answer, method, end)
                continue
            answer_task = asyncio.ensure_future(self._about(method, request, answer))
            self._late[key] = asked = _Question(text, answer_task)
            self._answer, fresh = answer_task, True
            answer_task.add_done_callback(partial(self._seen, asked))
        await self._wait(asked.answer, method, end)
        if self._late.get(key) is asked:
            del self._late[key]
        if asked.answer.cancelled():
            raise CriError(f"{self._socket}: {method}: the connection was closed", answered=False)
        return asked.answer.result(), fresh

    def _is_old(self, question: _Question) -> bool:
        """Whether an answer has been there for so long that it says nothing of what is so now."""
        return question.answer.done() and self._clock() - question.answered_at > KEPT_SECONDS

    def _seen(self, question: _Question, answer: asyncio.Task[Any]) -> None:
        """Keep in mind when an answer came, and have nobody complain that it was not looked at."""
        question.answered_at = self._clock()
        if not answer.cancelled():
            answer.exception()

    async def _wait(self, answer: asyncio.Task[Any], method: str, end: float | None) -> None:
        patience = None if end is None else max(end - asyncio.get_running_loop().time(), 0.0)
        if not (await asyncio.wait({answer}, timeout=patience))[0]:
            raise CriError(f"{self._socket}: {method}: no answer yet", answered=False, awaited=True)

    async def _about(self, method: str, request: Any, answer: str) -> Any:
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
                if not error.unknown and method != "ContainerStatus":
                    error.unknown = await self._knows_none(container)
            else:
                now = self._clock()
                self._silent_until, self._pause = now + self._pause, min(2 * self._pause, RETRY_SECONDS)
                self._hung = {key: until for key, until in self._hung.items() if until > now}
                self._hung[container] = now + HUNG_SECONDS
            raise
        self._pause = FIRST_RETRY_SECONDS
        return found

    async def _knows_none(self, container: str) -> bool:
        """Whether the runtime has no such container: CRI-O tells who asks about it, and not who has it changed."""
        request = message("ContainerStatusRequest")(container_id=container)
        try:
            await self._call("ContainerStatus", request, "ContainerStatusResponse")
        except CriError as error:
            return error.unknown
        return False

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
                self._disconnect()
                text = f"{self._socket}: {method}: no answer within {self._timeout:g} s"
                raise CriError(text, answered=False) from error
            except (OSError, StreamTerminatedError) as error:
                self._disconnect()
                raise CriError(f"{self._socket}: {method}: {error or repr(error)}", answered=False) from error


def place_in(info: Mapping[str, str]) -> Place:
    """Return what the verbose part of a ContainerStatus says; containerd and CRI-O have it as JSON under ``info``."""
    try:
        found = msgspec.json.decode(info.get("info", "{}"), type=_Info)
    except (ValueError, RecursionError):
        return Place("", 0)
    return Place(found.runtime_spec.linux.cgroups_path, found.pid)
