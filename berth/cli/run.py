"""``berth run``: run controllers in this process."""

from __future__ import annotations

import asyncio
import os
import threading
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from berth.kube.lease import LeaseTiming
from berth.runtime.logs import configure_logs
from berth.runtime.process import SETUP_ERRORS, RunOptions, available_controllers, run_controllers

EXIT_GRACE = 1.0
"""Seconds that tasks left over may take to end after the controllers have stopped."""


class LogFormat(StrEnum):
    """How log lines look."""

    json = "json"
    text = "text"


class LogLevel(StrEnum):
    """Least severity that is logged."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def run(
    controllers: Annotated[
        list[str],
        typer.Argument(
            help=f"Controllers to run in this process: {', '.join(sorted(available_controllers()))}.",
            show_default=False,
        ),
    ],
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="Kubeconfig file. Default: $KUBECONFIG, then the pod's service account, then ~/.kube/config."
        ),
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    leader_elect: Annotated[
        bool, typer.Option(help="Work only while holding the Lease berth-<controller>; needed with several replicas.")
    ] = True,
    lease_namespace: Annotated[
        str | None, typer.Option(help="Namespace of the Leases. Default: the connection's namespace.")
    ] = None,
    lease_duration: Annotated[
        float, typer.Option(min=1.0, max=3600.0, help="Seconds until another replica takes over from a dead one.")
    ] = 15.0,
    health_host: Annotated[str, typer.Option(help="Address of /healthz, /readyz and /metrics.")] = "0.0.0.0",  # noqa: S104 - kubelet probes come from outside the pod
    health_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the same; 0 picks a free one and logs it.")
    ] = 8080,
    placement_config: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Profiles of the placement controller (YAML). Default: built in."
        ),
    ] = None,
    path_algorithm: Annotated[
        str,
        typer.Option(
            help="Shortest paths of the networktopology controller and name of its weight set: Dijkstra or BellmanFord."
        ),
    ] = "Dijkstra",
    log_level: Annotated[LogLevel, typer.Option(help="Least severity that is logged.")] = LogLevel.info,
    log_format: Annotated[LogFormat, typer.Option(help="JSON lines, or text for a terminal.")] = LogFormat.json,
) -> None:
    """Run one or several controllers until SIGTERM or Ctrl-C.

    Exit status: 0 stopped by a signal, 1 a controller failed or lost its leadership, 2 wrong options or environment.
    """
    configure_logs(level=log_level.value, as_json=log_format is LogFormat.json)
    options = RunOptions(
        kubeconfig=str(kubeconfig) if kubeconfig else None,
        context=context,
        leader_elect=leader_elect,
        lease_namespace=lease_namespace,
        lease_timing=LeaseTiming.of(lease_duration),
        health_host=health_host,
        health_port=health_port,
        controller_options={
            "placement_config": str(placement_config) if placement_config else None,
            "path_algorithm": path_algorithm,
        },
    )
    try:
        code = asyncio.run(_run(controllers, options))
    except SETUP_ERRORS as error:
        typer.echo(f"berth run: {error}", err=True)
        raise typer.Exit(2) from error
    raise typer.Exit(code)


async def _run(controllers: list[str], options: RunOptions) -> int:
    code = await run_controllers(controllers, options)
    # asyncio waits for every task that is left; one that ignores its cancellation must not keep a process
    # alive that has lost its leadership.
    exit_anyway = threading.Timer(EXIT_GRACE, os._exit, (code or 1,))
    exit_anyway.daemon = True
    exit_anyway.start()
    return code
