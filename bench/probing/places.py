"""Where peers are for the benchmark: addresses of loopback, or a network namespace behind a veth pair."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

PORT = 9471
NAMESPACE = "berth-probing"

_SERVE = f"from agents.node.probing.responder import Responder; Responder('', {PORT}).serve()"


@contextmanager
def loopback(peers: int) -> Iterator[list[str]]:
    """Addresses of so many peers, all on this machine's loopback."""
    with _responder([]):
        yield [f"127.0.1.{number + 1}" for number in range(peers)]


@contextmanager
def veth(peers: int) -> Iterator[list[str]]:
    """Addresses of so many peers, all on the other end of a veth pair; needs root."""
    _remove()  # what a run that was killed has left
    _ip("netns", "add", NAMESPACE)
    try:
        _ip("link", "add", "berth-probe0", "type", "veth", "peer", "name", "berth-probe1", "netns", NAMESPACE)
        _ip("addr", "add", "10.213.0.1/24", "dev", "berth-probe0")
        _ip("link", "set", "berth-probe0", "up")
        addresses = [f"10.213.0.{number + 2}" for number in range(peers)]
        for address in addresses:
            _ip("-n", NAMESPACE, "addr", "add", f"{address}/24", "dev", "berth-probe1")
        _ip("-n", NAMESPACE, "link", "set", "berth-probe1", "up")
        with _responder(["nsenter", f"--net=/run/netns/{NAMESPACE}"]):
            yield addresses
    finally:
        _remove()


def _remove() -> None:
    # The link goes with the namespace, some time after it.
    for what in (["netns", "delete", NAMESPACE], ["link", "delete", "berth-probe0"]):
        subprocess.run(["ip", *what], check=False, capture_output=True)


@contextmanager
def _responder(enter: list[str]) -> Iterator[None]:
    process = subprocess.Popen([*enter, sys.executable, "-c", _SERVE])
    try:
        time.sleep(1.0)  # it listens, addresses are usable
        yield
    finally:
        process.kill()
        process.wait()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
