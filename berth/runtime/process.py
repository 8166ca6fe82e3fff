"""Runs one or several controllers in one process: election, health, signals, clean shutdown."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

import structlog

from berth.kube.client import ApiClient
from berth.kube.connection import Connection, ConnectionConfigError, load_connection
from berth.kube.events import EventRecorder
from berth.kube.lease import LeaderElection, LeadershipLost, LeaseTiming
from berth.runtime.component import Controller, ControllerContext, run_together
from berth.runtime.health import Checks, HealthPortError, HealthServer

log = structlog.get_logger(__name__)

ENTRY_POINT_GROUP = "berth.components"


SHUTDOWN_GRACE = 20.0
"""Seconds that controllers may take to stop, below the 30 that a pod is given."""


class UnknownControllerError(Exception):
    """A controller was named that is not installed or cannot be imported; the text lists those that are."""


class ControllerConfigError(Exception):
    """A controller refuses its options; the text says which and what to do."""


SETUP_ERRORS = (UnknownControllerError, ControllerConfigError, ConnectionConfigError, HealthPortError)
"""What is wrong with the command line or the environment, rather than with a controller."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a process runs its controllers."""

    kubeconfig: str | None = None
    """kubeconfig file; None: $KUBECONFIG, the service account, ~/.kube/config"""
    context: str | None = None
    """context of the kubeconfig"""
    leader_elect: bool = True
    """work only while holding the Lease ``berth-<controller>``"""
    lease_namespace: str | None = None
    """namespace of the Leases; None: the connection's namespace"""
    lease_timing: LeaseTiming = field(default_factory=LeaseTiming)
    """durations of the election"""
    health_host: str = "0.0.0.0"  # noqa: S104 - kubelet probes come from outside the pod
    """address of /healthz, /readyz and /metrics"""
    health_port: int = 8080
    """port of the same, 0 for any free one"""
    controller_options: dict[str, Any] = field(default_factory=dict)
    """passed on to the controllers"""


def available_controllers() -> dict[str, Any]:
    """Installed controllers: name to entry point."""
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def load_controllers(names: list[str]) -> dict[str, type[Controller]]:
    """Import controllers by name.

    Raises:
        UnknownControllerError: a name is not installed, or its module cannot be imported.
    """
    known = available_controllers()
    for name in names:
        if name not in known:
            raise UnknownControllerError(f"unknown controller {name!r}; choose from: {', '.join(sorted(known))}")
    classes: dict[str, type[Controller]] = {}
    for name in dict.fromkeys(names):
        try:
            classes[name] = known[name].load()
        except (ImportError, AttributeError) as error:
            raise UnknownControllerError(
                f"controller {name!r} ({known[name].value}) cannot be imported: {error}; reinstall kube-berth"
            ) from error
    return classes


async def run_controllers(names: list[str], options: RunOptions) -> int:
    """Run controllers until SIGTERM or SIGINT; returns the exit code (0 stopped, 1 failed or leadership lost).

    A second signal ends the process at once.

    Raises:
        UnknownControllerError: a name is not installed.
        ControllerConfigError: a controller refuses its options.
        ConnectionConfigError: no usable credentials.
        HealthPortError: the health port is taken.
    """
    stop = asyncio.Event()
    with _signals(stop):
        work = asyncio.ensure_future(_run(names, options, stop))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                log.info("stopping")
                work.cancel()
                await asyncio.wait({work}, timeout=SHUTDOWN_GRACE)
        finally:
            stopped.cancel()
            work.cancel()
    if not work.done():
        log.error("controllers do not stop, giving up on them", seconds=SHUTDOWN_GRACE)
        return 1
    return 0 if work.cancelled() else work.result()


@contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """Set `stop` on SIGTERM and SIGINT; afterwards both do again what they do by default."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def release() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)

    def stop_once() -> None:
        release()
        stop.set()

    for number in numbers:
        loop.add_signal_handler(number, stop_once)
    try:
        yield
    finally:
        release()


async def _run(names: list[str], options: RunOptions, stop: asyncio.Event) -> int:
    classes = load_controllers(names)
    connection = await load_connection(kubeconfig=options.kubeconfig, context=options.context)
    connection.ssl_context()  # unusable certificates are better told now than by every request
    identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"
    checks = Checks()
    rooms = [_Room.build(name, cls, connection, options, checks, identity) for name, cls in classes.items()]
    server = HealthServer(checks, host=options.health_host, port=options.health_port)
    await server.start()
    failures: list[Exception] = []

    async def guarded(room: _Room) -> None:
        try:
            await room.run()
            raise RuntimeError(f"controller {room.name} ended by itself")
        except Exception as error:
            # Told before the others are stopped, since that may take its time.
            failures.append(error)
            if isinstance(error, LeadershipLost):
                log.error("leadership lost, exiting so that a fresh process can compete", error=str(error))
            else:
                log.error("controller failed", controller=room.name, exc_info=error)
            stop.set()

    try:
        log.info("started", controllers=names, server=connection.server, health_port=server.port, identity=identity)
        await run_together(*(guarded(room) for room in rooms))
    except asyncio.CancelledError:
        if not failures:
            raise
    finally:
        await server.stop()
    return 1 if failures else 0


@dataclass(slots=True)
class _Room:
    """One controller with what belongs to it."""

    name: str
    client: ApiClient
    recorder: EventRecorder
    controller: Controller
    election: LeaderElection | None

    @classmethod
    def build(
        cls,
        name: str,
        kind: type[Controller],
        connection: Connection,
        options: RunOptions,
        checks: Checks,
        identity: str,
    ) -> _Room:
        client = ApiClient(connection, user_agent=f"berth-{name}")
        recorder = EventRecorder(client, controller=f"berth.dev/{name}", instance=identity)
        election = None
        if options.leader_elect:
            election = LeaderElection(
                client,
                name=f"berth-{name}",
                namespace=options.lease_namespace or connection.namespace,
                identity=identity,
                timing=options.lease_timing,
            )
        context = ControllerContext(
            connection=connection,
            client=client,
            recorder=recorder,
            checks=checks,
            identity=identity,
            options=options.controller_options,
            standby=lambda: election is not None and not election.is_leader,
        )
        try:
            controller = kind(context)
        except (ValueError, OSError) as error:
            raise ControllerConfigError(f"controller {name}: {error}") from error
        return cls(name, client, recorder, controller, election)

    async def run(self) -> None:
        async with self.client:
            recording = asyncio.create_task(self.recorder.run())
            try:
                await (self.election.run(self.controller.run) if self.election else self.controller.run())
            finally:
                recording.cancel()
                await asyncio.wait({recording})
