"""Runs one or several components in one process: election, health, signals, clean shutdown."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import secrets
import signal
import socket
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from berth.kube.client import ApiClient
from berth.kube.connection import Connection, ConnectionConfigError, load_connection, no_connection
from berth.kube.events import WRITERS, EventRecorder
from berth.kube.leader_election import LeaderElection
from berth.kube.lease import LeadershipLost, LeaseTiming
from berth.kube.memory import give_back_free_memory, give_back_large_blocks
from berth.runtime import struct_types
from berth.runtime.component import Component, ComponentContext, run_together
from berth.runtime.health import Checks, HealthPortError, HealthServer
from berth.runtime.open_files import allow_most_files
from berth.runtime.operator import Operator
from berth.runtime.settings import ComponentSettings, RunSettings

log = structlog.get_logger(__name__)

SHUTDOWN_GRACE = 20.0
"""Seconds that components may take to stop, below the 30 that a pod is given."""


_STANDARD_ERROR = 2
"""Descriptor of the process; `sys.stderr` may have been replaced by something that is no file."""


class ComponentConfigError(Exception):
    """A component refuses its settings; the text says which and what to do."""


SETUP_ERRORS = (ComponentConfigError, ConnectionConfigError, HealthPortError)
"""What is wrong with the command line or the environment, rather than with a component."""


class Selected(NamedTuple):
    """A component to run."""

    name: str
    """name on the command line"""
    kind: type[Component]
    """its class"""
    settings: ComponentSettings
    """instance of the class's settings model"""


async def run_components(components: Sequence[Selected], settings: RunSettings) -> int:
    """Run components until SIGTERM or SIGINT; returns the exit code (0 stopped, 1 failed or leadership lost).

    A second signal ends the process at once.

    Raises:
        ComponentConfigError: a component refuses its settings.
        ConnectionConfigError: no usable credentials.
        HealthPortError: the health port is taken.
    """
    faulthandler.enable(_STANDARD_ERROR)  # a library that crashes would end us without a word
    struct_types.prepare()
    give_back_large_blocks()
    allow_most_files()
    stop = asyncio.Event()
    with _signals(stop):
        work = asyncio.ensure_future(_run(components, settings, stop))
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
        log.error("components did not stop in time, giving up on them", seconds=SHUTDOWN_GRACE)
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


async def _run(components: Sequence[Selected], settings: RunSettings, stop: asyncio.Event) -> int:
    asks = any(component.settings.asks_api_server for component in components)
    connection = await _connect(settings) if asks else no_connection()
    connection.ssl_context()  # unusable certificates are better told now than by every request
    identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"
    checks = Checks()
    operator = Operator()
    hosted = [_Hosted.build(component, connection, settings, checks, identity, operator) for component in components]
    server = HealthServer(checks, host=settings.health_host, port=settings.health_port)
    await server.start()
    failures: list[Exception] = []

    async def guarded(component: _Hosted) -> None:
        try:
            await component.run()
            raise RuntimeError(f"component {component.name} ended by itself")
        except Exception as error:
            # Told before the others are stopped, since that may take its time.
            failures.append(error)
            if isinstance(error, LeadershipLost):
                log.error("leadership lost, exiting so that a fresh process can compete", error=str(error))
            else:
                log.error("component failed", component=component.name, exc_info=error)
            stop.set()

    try:
        names = [component.name for component in components]
        log.info("started", components=names, server=connection.server, health_port=server.port, identity=identity)
        await run_together(operator.run(), give_back_free_memory(), *(guarded(component) for component in hosted))
    except asyncio.CancelledError:
        if not failures:
            raise
    finally:
        await server.stop()
    return 1 if failures else 0


def _connect(settings: RunSettings) -> Awaitable[Connection]:
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
    return load_connection(kubeconfig=kubeconfig, context=settings.context)


@dataclass(slots=True)
class _Hosted:
    """One component with what belongs to it."""

    name: str
    client: ApiClient
    events_client: ApiClient
    recorder: EventRecorder
    component: Component
    election: LeaderElection | None

    @classmethod
    def build(
        cls,
        selected: Selected,
        connection: Connection,
        settings: RunSettings,
        checks: Checks,
        identity: str,
        operator: Operator,
    ) -> _Hosted:
        name = selected.name
        election = None
        if settings.leader_elect and selected.settings.leader_elected:
            election = LeaderElection(
                connection,
                name=f"berth-{name}",
                namespace=settings.lease_namespace or connection.namespace,
                identity=identity,
                timing=LeaseTiming.of(settings.lease_duration),
            )
            # One that waits is ready, but not one that would never lead: nobody might notice before the leader ends.
            checks.add_ready(f"lease of {name}", election.problem)
        agent = f"berth-{name}"
        client = ApiClient(connection, user_agent=agent, before_write=election.check if election else None)
        # Events are for people and may follow the last of the work, when another leads already.
        events_client = ApiClient(connection, user_agent=f"{agent}-events", max_connections=WRITERS)
        recorder = EventRecorder(
            events_client, controller=f"berth.dev/{name}", instance=identity, gives_way_to=client.writes
        )
        context = ComponentContext(
            connection=connection,
            client=client,
            recorder=recorder,
            checks=checks,
            identity=identity,
            connect=lambda: _connect(settings),
            standby=lambda: election is not None and not election.is_leader,
            operator=operator,
        )
        try:
            component = selected.kind(context, selected.settings)
        except (ValueError, OSError) as error:
            raise ComponentConfigError(f"component {name}: {error}") from error
        return cls(name, client, events_client, recorder, component, election)

    async def run(self) -> None:
        async with self.client, self.events_client:
            recording = asyncio.create_task(self.recorder.run())
            try:
                await (self.election.run(self.component.run) if self.election else self.component.run())
            finally:
                recording.cancel()
                await asyncio.wait({recording})
