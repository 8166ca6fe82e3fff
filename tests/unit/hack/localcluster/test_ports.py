"""Port allocation against real sockets of this machine."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

import pytest

from hack.localcluster import ClusterError, ports


@pytest.fixture
def listener() -> Iterator[int]:
    """A port in the range that somebody listens on."""
    (port,) = ports.allocate(1)
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        yield port


def test_ports_are_distinct_free_and_below_the_ephemeral_range() -> None:
    found = ports.allocate(50)
    assert len(set(found)) == 50
    assert all(ports.LOWEST <= port <= ports.HIGHEST < 32768 for port in found)
    for port in found:
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))


def test_a_listening_port_is_not_free(listener: int) -> None:
    assert not ports.is_free(listener)


def test_a_listening_port_is_never_handed_out(listener: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "LOWEST", listener)
    monkeypatch.setattr(ports, "HIGHEST", listener)
    with pytest.raises(ClusterError, match=r"only 0 of 1 ports.*hack/cluster list"):
        ports.allocate(1)


def test_promised_ports_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ports.allocate(2)
    monkeypatch.setattr(ports, "LOWEST", min(first, second))
    monkeypatch.setattr(ports, "HIGHEST", max(first, second))
    everything = set(range(min(first, second), max(first, second) + 1))
    assert ports.allocate(1, avoid=everything - {second}) == [second]


def test_callers_at_the_same_moment_draw_different_ports() -> None:
    assert ports.allocate(5, rng=random.Random(1)) != ports.allocate(5, rng=random.Random(2))


def test_a_just_closed_listener_with_connections_is_free_again() -> None:
    (port,) = ports.allocate(1)
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = server.accept()
            # The side that closes first keeps the port in TIME_WAIT.
            accepted.close()
    assert ports.is_free(port)
