"""The responder on loopback: what it answers, and what it closes."""

from __future__ import annotations

import socket
import threading

import pytest

from agents.node.probing import responder as module
from agents.node.probing.responder import Responder
from tests.support.probing import running_responder


def connect(responder: Responder) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", responder.port), 10)
    ask(connection)
    return connection


def ask(connection: socket.socket) -> bytes:
    connection.send(b"?")
    return connection.recv(10)


@pytest.mark.parametrize("address", [pytest.param("127.0.0.1", id="one address"), pytest.param("", id="everywhere")])
def test_a_byte_is_answered_by_one(address: str) -> None:
    with running_responder(address) as responder, connect(responder) as one, connect(responder) as other:
        assert [ask(one), ask(other), ask(one)] == [b"!"] * 3


def test_it_answers_ipv6_too() -> None:
    with running_responder("") as responder, socket.create_connection(("::1", responder.port), 10) as connection:
        assert ask(connection) == b"!"


def test_much_is_answered_by_little() -> None:
    with running_responder() as responder, connect(responder) as connection:
        connection.send(b"?" * 64)
        assert connection.recv(100) in (b"!", b"!!")


def test_a_peer_that_resets_its_connection_does_no_harm() -> None:
    with running_responder() as responder, connect(responder) as stays:
        gone = connect(responder)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        gone.send(b"?")
        gone.close()
        assert ask(stays) == b"!"


def test_beyond_its_limit_the_one_silent_for_longest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 2)
    with running_responder() as responder, connect(responder) as first, connect(responder) as second:
        ask(first)
        with connect(responder) as third:
            assert second.recv(10) == b""
            assert [ask(first), ask(third)] == [b"!", b"!"]


def test_a_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.05)
    with running_responder() as responder, connect(responder) as connection:
        assert connection.recv(10) == b""


def test_a_taken_port_is_said() -> None:
    with running_responder() as responder, pytest.raises(OSError, match="in use"):
        Responder("127.0.0.1", responder.port)


def test_it_ends_when_closed() -> None:
    responder = Responder("127.0.0.1", 0)
    thread = threading.Thread(target=responder.serve)
    thread.start()
    responder.close()
    thread.join(10)
    assert not thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", responder.port), 10)
