"""Responders and servers on loopback for tests of the prober."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from agents.node.probing.responder import ANSWER, Responder


@contextmanager
def running_responder(address: str = "127.0.0.1", port: int = 0) -> Iterator[Responder]:
    """A responder in a thread of its own."""
    responder = Responder(address, port)
    thread = threading.Thread(target=responder.serve)
    thread.start()
    try:
        yield responder
    finally:
        responder.close()
        thread.join(10)


_SERVE = """
from agents.node.probing.responder import Responder
responder = Responder("127.0.0.1", 0)
print(responder.port, flush=True)
responder.serve()
"""


@contextmanager
def responder_process() -> Iterator[tuple[int, int]]:
    """Port and process of a responder that can be stopped."""
    with subprocess.Popen([sys.executable, "-c", _SERVE], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), process.pid
        finally:
            process.kill()


@contextmanager
def stopped(process: int, seconds: float) -> Iterator[None]:
    """A child process gets no processor time from the begin on, for so long."""
    os.kill(process, signal.SIGSTOP)
    os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOWAIT)
    timer = threading.Timer(seconds, os.kill, (process, signal.SIGCONT))
    timer.start()
    try:
        yield
    finally:
        timer.join()


@contextmanager
def talkative_server() -> Iterator[int]:
    """Port of a server that greets whoever connects, as mail and shell servers do."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.send(b"220 welcome")
                        connection.recv(10)

        thread = threading.Thread(target=greet)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@contextmanager
def hasty_server() -> Iterator[tuple[int, list[socket.socket]]]:
    """Port of a server that answers before it is asked, and the connections it has taken."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as opened:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    taken.append(opened.enter_context(connection))
                    connection.send(100 * ANSWER)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield server.getsockname()[1], taken
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@contextmanager
def brief_server() -> Iterator[tuple[int, list[socket.socket]]]:
    """Port of a server that ends each connection after one answer, and the connections it has taken."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        taken.append(connection)
                        connection.recv(1)
                        connection.send(ANSWER)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield server.getsockname()[1], taken
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@contextmanager
def silent_server() -> Iterator[int]:
    """Port of a server whose kernel takes connections, and that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
