"""Runs one or several controllers in one process: election, health, signals, clean shutdown."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import signal
import socket
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

import structlog

from berth.kube.client import ApiClient
from berth.kube.connection import Connection, load_connection
from berth.kube.controller import Controller, ControllerContext, run_together
from berth.kube.events import EventRecorder
from berth.kube.lease import LeaderElection, LeadershipLost, LeaseTiming
from berth.kube.serving import Checks, HealthServer

log = structlog.get_logger(__name__)

ENTRY_POINT_GROUP = "berth.controllers"


class UnknownControllerError(Exception):
    """A controller was named that is not installed; the text lists those that are."""


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
        UnknownControllerError: a name is not installed.
    """
    known = available_controllers()
    for name in names:
        if name not in known:
            raise UnknownControllerError(f"unknown controller {name!r}; choose from: {', '.join(sorted(known))}")
    return {name: known[name].load() for name in dict.fromkeys(names)}


async def run_controllers(names: list[str], options: RunOptions) -> int:
    """Run controllers until SIGTERM or SIGINT; returns the exit code (0 stopped, 1 failed or leadership lost).

    Raises:
        UnknownControllerError: a name is not installed.
        ConnectionConfigError: no usable credentials.
        OSError: the health port is taken.
    """
    classes = load_controllers(names)
    connection = await load_connection(kubeconfig=options.kubeconfig, context=options.context)
    identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"
    checks = Checks()
    server = HealthServer(checks, host=options.health_host, port=options.health_port)
    await server.start()
    log.info("started", controllers=list(classes), server=connection.server, health_port=server.port, identity=identity)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    work = asyncio.ensure_future(
        run_together(*(_run_one(cls, connection, options, checks, identity) for cls in classes.values()))
    )
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            log.info("stopping")
            work.cancel()
            await asyncio.wait({work})
            return 0
        failure = work.exception()
        if failure is None:
            return 0
        if isinstance(failure, LeadershipLost):
            log.error("leadership lost, exiting so that a fresh process can compete", error=str(failure))
        else:
            log.error("controller failed", exc_info=failure)
        return 1
    finally:
        stopped.cancel()
        await server.stop()


async def _run_one(
    cls: type[Controller], connection: Connection, options: RunOptions, checks: Checks, identity: str
) -> None:
    async with ApiClient(connection, user_agent=f"berth-{cls.name}") as client:
        recorder = EventRecorder(client, controller=f"berth.dev/{cls.name}", instance=identity)
        context = ControllerContext(
            connection=connection,
            client=client,
            recorder=recorder,
            checks=checks,
            identity=identity,
            options=options.controller_options,
        )
        controller = cls(context)
        recording = asyncio.create_task(recorder.run())
        try:
            if not options.leader_elect:
                await controller.run()
                return
            election = LeaderElection(
                client,
                name=f"berth-{cls.name}",
                namespace=options.lease_namespace or connection.namespace,
                identity=identity,
                timing=options.lease_timing,
            )
            await election.run(controller.run)
        finally:
            recording.cancel()
            await asyncio.gather(recording, return_exceptions=True)


def settle_memory() -> None:
    """Take everything loaded so far out of the garbage collector's sight; call it after the first lists."""
    gc.collect()
    gc.freeze()
