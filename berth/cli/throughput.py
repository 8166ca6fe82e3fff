"""``berth-agent throughput``: what one TCP connection carries to a node agent."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from agents.node.throughput.duty import MEGABYTE
from agents.node.throughput.receiver import DEFAULT_PORT
from agents.node.throughput.sender import SECONDS, RefusedError, measure
from berth.cli.commands import fail
from berth.cli.output import Output, print_document
from berth.cli.probe import NOT_REACHED, target


def throughput(
    host: Annotated[str, typer.Argument(metavar="HOST", help="Name or address; HOST:PORT for a port.")],
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port for throughput tests, where HOST has none.")
    ] = DEFAULT_PORT,
    megabytes: Annotated[int, typer.Option(min=1, max=100_000, help="Megabytes that are sent at most.")] = 100,
    seconds: Annotated[float, typer.Option(min=0.1, max=25.0, help="Seconds for which is sent at most.")] = SECONDS,
    output: Annotated[Output, typer.Option("--output", "-o", help="Form of the answer.")] = Output.table,
) -> None:
    """Measure what one TCP connection carries to a node agent.

    It takes what others could use meanwhile. The agent there must allow it (--node-throughput-megabytes), and takes no
    more than that from this machine within an hour, from one sender at a time.

    Examples:

      berth-agent throughput node-2

      berth-agent throughput 10.0.0.7 --megabytes 500 --seconds 5 -o json

    Exit status: 0 measured, 3 the agent did not answer or refused, 2 the host has no address.
    """
    try:
        found = target(host, port)
    except ValueError as error:
        fail(f"berth-agent throughput: {error}")
    try:
        result = asyncio.run(measure(found.address, found.port, limit=megabytes * MEGABYTE, seconds=seconds))
    except (RefusedError, OSError) as error:
        reason = _reason(error)
        typer.echo(f"berth-agent throughput: {host} port {found.port}: {reason}", err=True)
        raise typer.Exit(NOT_REACHED) from error
    document = {
        "host": host,
        "address": found.address,
        "bitsPerSecond": result.bits_per_second,
        "bytes": result.octets,
        "seconds": round(result.seconds, 6),
    }
    carried = f"{result.octets / MEGABYTE:.1f} MB in {result.seconds:.2f} s"
    print_document(document, output, lambda: f"{host}  {result.bits_per_second / 1e6:.0f} Mbit/s  ({carried})\n")


def _reason(error: Exception) -> str:
    """Why nothing was measured, with what to do about it."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused; no agent there allows tests (--node-throughput-megabytes)"
    if isinstance(error, OSError) and error.errno:
        return f"{os.strerror(error.errno).lower()}; check the way to that port"
    return str(error) or "no answer in time; check the way to that port"
