"""A container runtime that a test scripts, for what a real one does not do on request: gRPC, and cgroups."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server

from agents.node.pinning.cri import LABEL_CONTAINER, LABEL_POD_UID, RuntimeClient
from agents.node.pinning.cri_messages import RUNNING, SERVICE, message

PATIENCE = 60.0
"""Seconds that an answer may take which comes, however busy the machine is."""
HURRY = 0.3
"""Seconds that are waited for one which does not; the runtime has been asked by then."""


@dataclass
class Known:
    """A container that the runtime knows."""

    uid: str
    """UID of its pod"""
    cgroup: Path
    """directory of its cgroup"""
    path: str
    """the same from the top of the hierarchy"""
    pid: int = 0
    """its first process"""
    name: str = "main"
    """name of the container in its pod"""
    keeps: tuple[str, str] = ("", "")
    """CPUs and NUMA nodes that it was told to have, applied again with every update"""


@dataclass
class ScriptedRuntime:
    """The running server."""

    socket: Path
    containers: dict[str, Known] = field(default_factory=dict)
    """by ID"""
    asked: list[str] = field(default_factory=list)
    """methods, in the order that they were called in"""
    hangs: set[str] = field(default_factory=set)
    """methods that are never answered"""
    hangs_about: set[str] = field(default_factory=set)
    """IDs of containers about which no question is answered"""
    refuses: dict[str, GRPCError] = field(default_factory=dict)
    """methods that are refused, and what is said"""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """while it is not set, updates wait before they do what they were told, whoever has hung up meanwhile"""
    listing: asyncio.Event = field(default_factory=asyncio.Event)
    """while it is not set, what runs is said later, as it was when it was asked"""
    updating: asyncio.Event = field(default_factory=asyncio.Event)
    """set when an update has arrived"""
    before_update: Callable[[], None] = lambda: None
    """called when an update has arrived"""
    _server: Server | None = None
    _updates: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        """Listen."""
        self.gate.set()
        self.listing.set()
        self._server = Server([self])
        await self._server.start(path=str(self.socket))

    async def stop(self) -> None:
        """Stop listening; the socket is gone."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None
            self.socket.unlink(missing_ok=True)

    async def settle(self) -> None:
        """Let updates end that wait, and wait until they have."""
        self.gate.set()
        await asyncio.gather(*self._updates, return_exceptions=True)

    def says_nothing(self, method: str, request: Any) -> bool:
        """Whether a call is never answered, or as late as it pleases the test."""
        shut = method == "UpdateContainerResources" and not self.gate.is_set()
        return shut or method in self.hangs or getattr(request, "container_id", "") in self.hangs_about

    def __mapping__(self) -> dict[str, Handler]:
        """Methods by path, as gRPC servers are asked for them."""
        return {
            f"{SERVICE}/{name}": Handler(
                self._method(name, work), Cardinality.UNARY_UNARY, message(f"{request}Request"), message(answer)
            )
            for name, work, request, answer in (
                ("ListContainers", self._list, "ListContainers", "ListContainersResponse"),
                ("ContainerStatus", self._status, "ContainerStatus", "ContainerStatusResponse"),
                (
                    "UpdateContainerResources",
                    self._update,
                    "UpdateContainerResources",
                    "UpdateContainerResourcesResponse",
                ),
            )
        }

    def _method(self, name: str, work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def serve(stream: Any) -> None:
            request = await stream.recv_message()
            self.asked.append(name)
            if name in self.hangs or getattr(request, "container_id", "") in self.hangs_about:
                await asyncio.Event().wait()
            if name in self.refuses:
                raise self.refuses[name]
            await stream.send_message(await work(request))

        return serve

    async def _list(self, _: Any) -> Any:
        answer = message("ListContainersResponse")()
        for identity, known in self.containers.items():
            found = answer.containers.add(id=identity, state=RUNNING)
            found.labels[LABEL_POD_UID], found.labels[LABEL_CONTAINER] = known.uid, known.name
        await self.listing.wait()
        return answer

    async def _status(self, request: Any) -> Any:
        answer = message("ContainerStatusResponse")()
        known = self._known(request.container_id)
        info = {"pid": known.pid, "runtimeSpec": {"linux": {"cgroupsPath": known.path}}}
        answer.info["info"] = json.dumps(info)
        return answer

    async def _update(self, request: Any) -> Any:
        known = self._known(request.container_id)
        self.before_update()
        task = asyncio.ensure_future(self._apply(known, request.linux.cpuset_cpus, request.linux.cpuset_mems))
        self._updates.add(task)
        self.updating.set()
        await asyncio.shield(task)
        return message("UpdateContainerResourcesResponse")()

    async def _apply(self, known: Known, cpus: str, mems: str) -> None:
        await self.gate.wait()
        before, known.keeps = known.keeps, (cpus or known.keeps[0], mems or known.keeps[1])
        try:
            self.update(known)
        except OSError as error:
            known.keeps = before
            raise GRPCError(Status.UNKNOWN, str(error)) from error

    def update(self, known: Known) -> None:
        """Apply what a container was told to have, as with an update of something else."""
        for name, value in zip(("cpuset.cpus", "cpuset.mems"), known.keeps, strict=True):
            if value:
                (known.cgroup / name).write_text(value)

    def _known(self, identity: str) -> Known:
        if identity not in self.containers:
            raise GRPCError(Status.NOT_FOUND, f"container {identity} is not there")
        return self.containers[identity]


class ScriptedClient(RuntimeClient):
    """Knows which calls are never answered, and waits long for the others alone; one call at a time."""

    def __init__(self, runtime: ScriptedRuntime, *, clock: Callable[[], float], patience: float | None = None) -> None:
        """Ask a runtime; `clock` is in monotonic seconds; `patience` as that of the client."""
        super().__init__(runtime.socket, clock=clock, patience=patience)
        self._runtime = runtime

    async def _call(self, method: str, request: Any, answer: str) -> Any:
        self._timeout = HURRY if self._runtime.says_nothing(method, request) else PATIENCE
        return await super()._call(method, request, answer)
