"""TCP request-response with a peer's responder, one byte each way on a connection that is kept.

The sample is the kernel's round trip, not the program's: a busy machine delays programs far more than acknowledgements.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Final

from agents.node.probing.exhaustion import ExhaustedError, exhausted
from agents.node.probing.responder import ANSWER
from berth.runtime.tcp_info import last_round_trip, tcp_info

PROBE_TIMEOUT: Final = 1.0
"""Seconds after which a probe is lost."""
PROBES_IN_A_ROW: Final = 15
"""Probes of one connection without a pause. Of bytes that come so, the peer's kernel acknowledges sixteen as they
arrive, further ones when its program reads them or after 40 ms: a busy machine would look as far as another continent.
"""
PAUSE_SECONDS: Final = 1.0
"""A pause after which it begins anew: one longer than the peer's retransmission timeout, which is 0.2 s and a round
trip."""


class RequestResponse:
    """Probes of one responder, one at a time."""

    def __init__(
        self,
        address: str,
        port: int,
        timeout: float = PROBE_TIMEOUT,
        *,
        once_more: Callable[[], object] = lambda: None,
    ) -> None:
        """Prepare without I/O.

        Args:
            address: IP address or host name of the responder.
            port: its port.
            timeout: seconds after which a probe is lost.
            once_more: called before a probe is made again on a new connection.
        """
        self._target = (address, port)
        self._once_more = once_more
        self._timeout = timeout
        self._connection: socket.socket | None = None
        self._answers = 0
        self._in_a_row = 0
        self._last = 0.0

    @property
    def connected(self) -> bool:
        """Whether the responder answered when it was last asked."""
        return self._connection is not None

    def probe(self) -> int | None:
        """Return the round trip of one probe in microseconds; None if it was lost.

        A connection that the responder has closed, as one that restarts does, or on which it has said more than it was
        asked is made anew. So is one whose next byte would not be acknowledged at once.

        Raises:
            ExhaustedError: there is no room for a connection.
        """
        kept = self._connection is not None
        try:
            return self._exchange()
        except TimeoutError:
            self.close()
        except OSError as error:
            self.close()
            if exhausted(error):
                raise ExhaustedError from error
            if kept:
                self._once_more()
                return self.probe()
        return None

    def close(self) -> None:
        """Close the connection; the next probe makes a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self) -> int | None:
        now = time.monotonic()
        if now - self._last >= PAUSE_SECONDS:
            self._in_a_row = 0
        elif self._in_a_row >= PROBES_IN_A_ROW:
            self.close()
        self._last = now
        if self._connection is None:
            self._connection = socket.create_connection(self._target, self._timeout)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._answers = self._in_a_row = 0
        self._in_a_row += 1
        connection = self._connection
        before = tcp_info(connection)
        if before.received != self._answers:
            # An answer that is there before the question would make the peer look as near as this node itself.
            raise ConnectionError("closed by the responder, or it has said more than it was asked")
        start = time.perf_counter_ns()
        connection.send(b"?")
        if connection.recv(1) != ANSWER:
            raise ConnectionError("closed by the responder, or none")
        self._answers += 1
        elapsed = (time.perf_counter_ns() - start) // 1000
        return last_round_trip(before, tcp_info(connection), elapsed)
