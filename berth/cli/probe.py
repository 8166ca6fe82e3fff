"""``berth-agent probe``: round trips to hosts, measured as the node agent measures them."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from agents.node import boot_clock
from agents.node.probing.disturbance import DisturbanceDetector
from agents.node.probing.exhaustion import ExhaustedError
from agents.node.probing.icmp import Icmp
from agents.node.probing.responder import DEFAULT_PORT, Responder
from agents.node.probing.rounds import EXHAUSTED, Prober, Target
from agents.node.probing.window import Figures, Window
from berth.api.text import shortened
from berth.cli.commands import fail
from berth.cli.output import Output, print_document
from berth.cli.progress import progress_on_stderr
from berth.runtime.open_files import allow_most_files

NOT_REACHED: Final = 3
"""Exit status: a host answered nothing."""
_NO_ICMP: Final = (
    "berth-agent probe: the kernel does not let this process send ICMP: hosts without a responder show as lost even "
    "where they answer; run it with a group in net.ipv4.ping_group_range or with CAP_NET_RAW"
)
_LONGEST: Final = 100
"""Bytes of a host in an error."""
_COLUMNS: Final = ("HOST", "ADDRESS", "METHOD", "P50 MS", "P90 MS", "P99 MS", "JITTER MS", "LOSS", "SAMPLES")


def probe(
    hosts: Annotated[list[str], typer.Argument(metavar="HOST", help="Names or addresses; HOST:PORT for a port.")],
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of the agents' responders, where HOST has none.")
    ] = DEFAULT_PORT,
    rounds: Annotated[int, typer.Option(min=1, max=10_000, help="How often each host is probed.")] = 10,
    rate: Annotated[float, typer.Option(min=0.1, max=1000.0, help="Probes a second at most, of all hosts.")] = 50.0,
    output: Annotated[Output, typer.Option("--output", "-o", help="Form of the answer.")] = Output.table,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")] = False,
) -> None:
    """Show round trips to hosts: percentiles, jitter and loss.

    By TCP where a node agent's responder answers, else by ICMP. The machine probes itself as well: a round in
    which that takes much longer than usual is left out.

    Examples:

      berth-agent probe node-2 node-3

      berth-agent probe 10.0.0.7:9470 [fd00::7] --rounds 100 -o json

    Exit status: 0 all hosts answered, 3 one did not, 2 a host has no address.
    """
    try:
        targets = [target(host, port) for host in dict.fromkeys(hosts)]
    except ValueError as error:
        fail(f"berth-agent probe: {error}")
    allow_most_files()  # each host takes one
    try:
        with progress_on_stderr(quiet=quiet) as report:
            found, dropped = measure(targets, rounds, rate, report)
    except ExhaustedError:
        fail(
            f"berth-agent probe: no descriptor or memory is left to probe {len(targets)} hosts, each of which takes a "
            "connection; name fewer, or allow more (ulimit -n)"
        )
    figures = [fields(item, found.get(item.name)) for item in targets]
    document = {"rounds": rounds, "roundsDropped": dropped, "hosts": figures}
    print_document(document, output, lambda: table(document))
    if any("p50Microseconds" not in host for host in figures):
        if not Icmp().permitted:
            typer.echo(_NO_ICMP, err=True)
        raise typer.Exit(NOT_REACHED)


def target(host: str, port: int) -> Target:
    """Find a host's address.

    Args:
        host: ``name``, ``name:port``, an address, or an IPv6 address in brackets with or without a port.
        port: the port if it names none.

    Raises:
        ValueError: it has no address, or the port is none; the text says which.
    """
    name, own_port = host, ""
    if host.startswith("["):
        name, _, own_port = host[1:].partition("]")
        own_port = own_port.removeprefix(":")
    elif host.count(":") == 1:
        name, own_port = host.split(":")
    if not name:
        raise ValueError(f"{host!r} names no host; write a name or an address")
    if own_port and not (re.fullmatch("[0-9]{1,5}", own_port) and 0 < int(own_port) < 65536):
        problem = f"{shortened(own_port, _LONGEST)!r} is no port; write a number from 1 to 65535"
        raise ValueError(f"{shortened(host, _LONGEST)}: {problem}")
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4]
        # As text once more: the zone of a link-local address is no part of found[0], and without it it leads nowhere.
        address, _ = socket.getnameinfo(found, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)
    except (OSError, UnicodeError) as error:
        raise ValueError(f"{shortened(host, _LONGEST)}: no address found; check the name") from error
    return Target(host, address, int(own_port or port))


def measure(
    targets: Sequence[Target], rounds: int, rate: float, report: Callable[[str, int, int], None]
) -> tuple[dict[str, Figures], int]:
    """Run rounds; figures by host, and how many rounds were dropped.

    Raises:
        ExhaustedError: there is no room to probe so many.
    """
    windows = {item.name: Window(seconds=float("inf"), samples=5 * rounds) for item in targets}
    detector, dropped, done = DisturbanceDetector(), 0, 0

    def probed(_: Target) -> None:
        nonlocal done
        done += 1
        report("probing", done, rounds * len(targets))

    with _prober(rate) as prober:
        for _ in range(rounds):
            measured = prober.run(targets, probed)
            if measured == EXHAUSTED:
                raise ExhaustedError
            if detector.disturbed(measured.self_probes):
                dropped += 1
                continue
            for name, samples in measured.samples.items():
                windows[name].add(samples)
    now = boot_clock.now()
    found = {name: window.figures(now) for name, window in windows.items()}
    return {name: figures for name, figures in found.items() if figures is not None}, dropped


@contextlib.contextmanager
def _prober(rate: float) -> Iterator[Prober]:
    responder = Responder("127.0.0.1", 0)
    thread = threading.Thread(target=responder.serve, daemon=True)
    thread.start()
    prober = Prober(Target("", "127.0.0.1", responder.port), rate=rate)
    try:
        yield prober
    finally:
        prober.close()
        responder.close()
        thread.join()


def fields(item: Target, figures: Figures | None) -> dict[str, Any]:
    """The entry of one host in the document; without latency where it answered nothing."""
    entry: dict[str, Any] = {"host": item.name, "address": item.address}
    if figures is None:
        return entry
    if figures.latency is not None:
        entry |= {
            "method": figures.method.value,
            "p50Microseconds": figures.latency.p50,
            "p90Microseconds": figures.latency.p90,
            "p99Microseconds": figures.latency.p99,
            "jitterMicroseconds": figures.latency.jitter,
        }
    return entry | {"loss": round(figures.loss, 6), "samples": figures.samples}


def table(document: Mapping[str, Any]) -> str:
    """The document for people."""
    rows = [_COLUMNS, *(_row(host) for host in document["hosts"])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    if document["roundsDropped"]:
        dropped = f"{document['roundsDropped']} of {document['rounds']} rounds"
        lines.append(f"\n{dropped} left out: this machine was too busy.")
    return "\n".join(lines) + "\n"


def _row(host: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("p50Microseconds", "p90Microseconds", "p99Microseconds", "jitterMicroseconds")
    times = tuple(f"{host[name] / 1000:.3f}" if name in host else "-" for name in names)
    loss = f"{100 * host['loss']:.1f} %" if "loss" in host else "-"
    return (host["host"], host["address"], host.get("method", "-"), *times, loss, str(host.get("samples", "-")))
