"""The responder: answers each byte of a peer's prober with one of its own."""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import time
from collections import OrderedDict
from typing import Final

from berth.runtime.listening import listen

DEFAULT_PORT: Final = 9470
"""Port of the agents' responders."""
MAX_CONNECTIONS: Final = 256
"""Connections at a time; one more closes the one that has been silent for longest, as where the process has no
descriptor left."""
IDLE_SECONDS: Final = 60.0
"""Silence after which a connection is closed."""
MOST_A_SECOND: Final = 5000.0
"""Answers a second at most, of all connections together: whoever reaches the port could have a core work for him alone.
Peers ask for a hundredth of them, and are answered in turn."""
ANSWER: Final = b"!"
"""What a responder says, whatever it is asked."""
_READ: Final = 64
_ACCEPTED: Final = 64
"""Connections that are accepted in a row, before those that are there are looked at."""
_FULL: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Errors of an accept when the process or the machine has no room for one more connection, which stays in the queue."""
_FULL_SECONDS: Final = 1.0
"""Seconds for which nobody is accepted where closing a connection makes no room."""


class Responder:
    """A TCP server in one thread. What it is sent counts only as being there: one byte back for whatever has come."""

    def __init__(self, address: str, port: int) -> None:
        """Listen.

        Args:
            address: where to listen; empty: everywhere, on IPv6 as well where there is some.
            port: 0 picks a free one.

        Raises:
            OSError: the address is not this machine's, or the port is taken.
        """
        self._server = listen(address, port)
        self.port: int = self._server.getsockname()[1]
        """Port that it listens on."""
        self._wake, self._closing = socket.socketpair()
        self._connections: OrderedDict[socket.socket, float] = OrderedDict()
        self._accepts_from = 0.0
        self._selector = selectors.DefaultSelector()
        for source in (self._server, self._wake):
            self._selector.register(source, selectors.EVENT_READ, source)

    def serve(self) -> None:
        """Answer until :meth:`close` is called in another thread."""
        try:
            while True:
                seconds = _FULL_SECONDS if self._accepts_from else IDLE_SECONDS
                ready: list[socket.socket] = [key.data for key, _ in self._selector.select(seconds)]
                if self._wake in ready:
                    return
                answers = 0
                for source in ready:
                    if source is self._server:
                        self._accept_waiting()
                    elif source in self._connections:
                        answers += self._answer(source)
                self._close_idle()
                self._accept_again()
                time.sleep(answers / MOST_A_SECOND)
        finally:
            for opened in (*self._connections, self._server, self._wake):
                opened.close()
            self._selector.close()

    def close(self) -> None:
        """End :meth:`serve`."""
        self._closing.close()

    def _accept_waiting(self) -> None:
        """Accept those that wait, since where many ask it is long until the next look at them."""
        accepted = 0
        while accepted < _ACCEPTED and self._accept(waits=not accepted):
            accepted += 1

    def _accept(self, *, waits: bool) -> bool:
        """Accept one and return True, or if there is none False; `waits`: one is known to be there."""
        try:
            connection, _ = self._server.accept()
        except OSError as error:
            # Without a descriptor the kernel does not look whether there is one. Else it was given up meanwhile.
            if waits and error.errno in _FULL:
                self._make_room(error.errno)
            return False
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        acknowledge_at_once(connection)
        self._connections[connection] = time.monotonic()
        self._selector.register(connection, selectors.EVENT_READ, connection)
        if len(self._connections) > MAX_CONNECTIONS:
            self._drop(next(iter(self._connections)))
        return True

    def _answer(self, connection: socket.socket) -> bool:
        """Answer what has come, close what has ended; returns whether something had come."""
        try:
            if not connection.recv(_READ):
                self._drop(connection)
                return False
            connection.send(ANSWER)
            acknowledge_at_once(connection)
        except BlockingIOError:
            return True  # of who does not read his answers
        except OSError:
            self._drop(connection)
            return False
        self._connections[connection] = time.monotonic()
        self._connections.move_to_end(connection)
        return True

    def _make_room(self, shortage: int) -> None:
        """Close the connection that has been silent for longest if that makes room, else wait for some.

        Where the machine is short of files or memory, others would take what is given back, and peers that are
        measured well would go one after another.
        """
        if shortage == errno.EMFILE and self._connections:
            self._drop(next(iter(self._connections)))
            return
        self._selector.unregister(self._server)
        self._accepts_from = time.monotonic() + _FULL_SECONDS

    def _accept_again(self) -> None:
        if self._accepts_from and time.monotonic() >= self._accepts_from:
            self._selector.register(self._server, selectors.EVENT_READ, self._server)
            self._accepts_from = 0.0

    def _close_idle(self) -> None:
        oldest = time.monotonic() - IDLE_SECONDS
        while self._connections:
            connection, last = next(iter(self._connections.items()))
            if last > oldest:
                return
            self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        del self._connections[connection]
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection)
        connection.close()


def acknowledge_at_once(connection: socket.socket) -> None:
    """Have the kernel acknowledge the next byte when it arrives, before this program has seen it.

    Else it waits for the answer to carry the acknowledgement, and the prober would measure this program. The kernel
    forgets it with every exchange.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
