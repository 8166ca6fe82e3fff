"""Where agents listen."""

from __future__ import annotations

import socket

import pytest

from berth.runtime.listening import listen


@pytest.mark.parametrize(
    ("address", "reached"),
    [
        pytest.param("", "127.0.0.1", id="everywhere, by IPv4"),
        pytest.param("", "::1", id="everywhere, by IPv6"),
        pytest.param("127.0.0.1", "127.0.0.1", id="one address"),
        pytest.param("::1", "::1", id="one address of IPv6"),
    ],
)
def test_it_is_reached(address: str, reached: str) -> None:
    with listen(address, 0) as server, socket.create_connection((reached, server.getsockname()[1]), 10):
        assert not server.getblocking()


def test_one_address_is_not_all() -> None:
    with listen("127.0.0.1", 0) as server, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.getsockname()[1]), 10)


def test_a_taken_port_is_an_error() -> None:
    with listen("127.0.0.1", 0) as server, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", server.getsockname()[1])
