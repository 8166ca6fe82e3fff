"""``python -m bench.meter.new_users``: so many requests a second, each of a user who was never there; prints JSON.

Sockets without a library around them: one process writes more than a proxy of one process reads.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import time
from typing import Final

from bench.load import ANSWER

REQUEST: Final = b"GET /cart?id=7 HTTP/1.1\r\nHost: shop.example\r\nAccept: */*\r\nX-User: %s-%d\r\n\r\n"
WINDOW: Final = 64
"""Requests of one kept connection that wait for their answers at most."""
TURN_SECONDS: Final = 0.002
"""Seconds from one turn to the next at most."""


class Connection:
    """One of them, and what is under way on it."""

    def __init__(self, port: int) -> None:
        """Connect; what is written waits until that is so."""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(("127.0.0.1", port))
        self.waiting = 0
        """requests without an answer"""
        self.unsent = b""
        """what the kernel has not taken"""
        self._come = b""

    def ask(self, requests: bytes, count: int) -> None:
        """Send so many more."""
        self.waiting += count
        self.unsent += requests
        self.send()

    def send(self) -> None:
        """Write what the kernel takes."""
        try:
            self.unsent = self.unsent[self.socket.send(self.unsent) :]
        except BlockingIOError:
            return

    def read(self) -> tuple[int, bool]:
        """Read; how many answers came, and whether the connection has ended.

        Raises:
            OSError: it is broken, or an answer is a refusal.
        """
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return 0, False
        self._come += data
        if not b"HTTP/1.1 200".startswith(self._come[:12]):
            raise ConnectionError("refused")
        found = self._come.count(ANSWER[-6:])
        if found:
            self._come = self._come[self._come.rindex(ANSWER[-6:]) + 6 :]
        self.waiting -= found
        return found, not data


class Flood:
    """New users until the time is over."""

    def __init__(self, port: int, rate: float, connections: int, *, fresh: bool) -> None:
        """Prepare.

        Args:
            port: of the proxy on this machine.
            rate: requests a second.
            connections: at a time at most.
            fresh: whether each user has a connection of his own, and else one of those that are kept.
        """
        self._port, self._rate, self._most, self._fresh = port, rate, connections, fresh
        self._window = 1 if fresh else WINDOW
        self._open: dict[int, Connection] = {}
        self._poll = select.epoll()
        self._name = b"new-%d" % os.getpid()
        self.sent = self.answered = self.broken = 0

    def run(self, seconds: float) -> None:
        """Ask for so long. What cannot be written is held back, and is no more than what was due by then."""
        begun = time.perf_counter()
        while (now := time.perf_counter()) < begun + seconds:
            due = int((now - begun) * self._rate) - self.sent
            if due > 0:
                self._ask(due)
            for descriptor, event in self._poll.poll(TURN_SECONDS):
                self._turn(self._open[descriptor], event)

    def _ask(self, due: int) -> None:
        while due > 0 and len(self._open) < self._most:
            connection = Connection(self._port)
            self._open[connection.socket.fileno()] = connection
            self._poll.register(connection.socket, select.EPOLLIN | select.EPOLLOUT)
            due -= self._ask_by(connection, 1)
        free = [each for each in self._open.values() if each.waiting < self._window and not each.unsent]
        for each in () if self._fresh else free:
            due -= self._ask_by(each, min(due // len(free) + 1, self._window - each.waiting))
            if due <= 0:
                break

    def _ask_by(self, connection: Connection, count: int) -> int:
        text = b"".join(REQUEST % (self._name, self.sent + number) for number in range(count))
        self.sent += count
        try:
            connection.ask(text, count)
            if connection.unsent:
                self._poll.modify(connection.socket, select.EPOLLIN | select.EPOLLOUT)
        except OSError:
            self._end(connection, broken=True)
        return count

    def _turn(self, connection: Connection, event: int) -> None:
        try:
            if event & select.EPOLLOUT:
                if connection.unsent:
                    connection.send()
                if not connection.unsent:
                    self._poll.modify(connection.socket, select.EPOLLIN)
            if event & ~select.EPOLLOUT:
                found, over = connection.read()
                self.answered += found
                if over or (self._fresh and found):
                    self._end(connection, broken=connection.waiting > 0)
        except OSError:
            self._end(connection, broken=True)

    def _end(self, connection: Connection, *, broken: bool) -> None:
        self.broken += broken
        del self._open[connection.socket.fileno()]
        connection.socket.close()


def main() -> None:
    """Ask, and print a line."""
    parser = argparse.ArgumentParser(prog="python -m bench.meter.new_users", description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--rate", type=float, default=5000.0, help="requests a second (default: 5000)")
    parser.add_argument("--seconds", type=float, default=30.0, help="for how long (default: 30)")
    parser.add_argument("--connections", type=int, default=32, help="at a time (default: 32)")
    parser.add_argument("--fresh", action="store_true", help="a connection for each user")
    options = parser.parse_args()
    flood = Flood(options.port, options.rate, options.connections, fresh=options.fresh)
    flood.run(options.seconds)
    print(json.dumps({"sent": flood.sent, "answered": flood.answered, "broken": flood.broken}))


if __name__ == "__main__":
    main()
