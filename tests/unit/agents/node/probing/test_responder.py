"""The responder on loopback: what it answers, and what it closes."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from agents.node.probing import responder as module
from agents.node.probing.responder import Responder
from berth.runtime.listening import listen
from tests.support.probing import running_responder

FEW_DESCRIPTORS = """
import os, resource, sys, threading
from agents.node.probing.responder import Responder
responder = Responder("127.0.0.1", 0)
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
lowest = os.dup(0)
os.close(lowest)
def spare(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + count, hard))
threading.Thread(target=responder.serve, daemon=True).start()
spare(int(sys.argv[1]))
print(responder.port, flush=True)
for line in sys.stdin:
    spare(int(line))
"""


@contextmanager
def few_descriptors(spare: int) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Port of a responder whose process may have so many connections, and that process; a line changes how many."""
    command = [sys.executable, "-c", FEW_DESCRIPTORS, str(spare)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), process
        finally:
            process.kill()


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


def test_it_rests_after_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks without a pause has not a core to himself."""
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    with running_responder() as responder, connect(responder) as one, connect(responder) as other:
        for _ in range(50):
            assert [ask(one), ask(other)] == [b"!", b"!"]
    assert sum(rests) >= 100 / module.MOST_A_SECOND


def test_those_who_wait_are_accepted_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else where many ask there is a rest for all of them before each of the new ones."""
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    responder = Responder("127.0.0.1", 0)
    with ExitStack() as opened:
        address = ("127.0.0.1", responder.port)
        connections = [opened.enter_context(socket.create_connection(address, 10)) for _ in range(40)]
        thread = threading.Thread(target=responder.serve)
        thread.start()
        connections[-1].send(b"?")
        assert connections[-1].recv(10) == b"!"
        assert len(rests) < 10
        responder.close()
        thread.join(10)


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


def test_without_free_descriptors_the_one_silent_for_longest_goes() -> None:
    with few_descriptors(3) as (port, _), ExitStack() as opened:
        connections = [opened.enter_context(socket.create_connection(("127.0.0.1", port), 10)) for _ in range(8)]
        for number in (5, 6, 7):
            assert ask(connections[number]) == b"!"
        assert connections[0].recv(10) == b""


def test_with_nothing_to_close_it_accepts_as_soon_as_there_is_room() -> None:
    with few_descriptors(0) as (port, process), socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.send(b"?")
        assert process.stdin is not None
        process.stdin.write("3\n")
        process.stdin.flush()
        assert connection.recv(10) == b"!"


class CrowdedMachine(socket.socket):
    """Listens on a machine that has room for two connections, and for one more after three that were refused."""

    accepted, refused, shortage = 0, 0, errno.ENFILE

    def accept(self) -> tuple[socket.socket, object]:
        if self.accepted == 2 and self.refused < 3:
            self.refused += 1
            raise OSError(self.shortage, os.strerror(self.shortage))
        self.accepted += 1
        return super().accept()


@pytest.mark.parametrize("shortage", [errno.ENFILE, errno.ENOBUFS, errno.ENOMEM], ids=errno.errorcode.get)
def test_where_the_machine_has_no_room_those_that_are_there_stay(
    monkeypatch: pytest.MonkeyPatch, shortage: int
) -> None:
    listening = listen("127.0.0.1", 0)
    crowded = CrowdedMachine(fileno=listening.detach())
    crowded.setblocking(False)
    crowded.shortage = shortage
    monkeypatch.setattr(module, "listen", lambda *_: crowded)
    monkeypatch.setattr(module, "_FULL_SECONDS", 0.01)
    with running_responder() as responder, ExitStack() as opened:
        connections = [opened.enter_context(connect(responder)) for _ in range(3)]
        assert [ask(connection) for connection in connections] == [b"!"] * 3
    assert crowded.refused == 3


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
