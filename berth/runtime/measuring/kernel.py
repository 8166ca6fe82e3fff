"""The round trip of a user by the connection that the user has made: one clock, and whatever client.

Every acknowledgement tells the kernel a round trip. Two are truer than the rest: that of the handshake, which nobody
puts off, and the least of the last five minutes. Between them, the last round trip is worked out of the smoothed one
where a single segment was acknowledged. It is too long where the client has waited with the acknowledgement (RFC 9293,
3.8.6.3: up to half a second; Linux 40 ms and more) or has sent it along with the next request. So it counts only where
it is not much longer than the least one; else there is no news.

When a request comes, the answer to the one before has been acknowledged: that is when a reading is fresh.
"""

from __future__ import annotations

import socket
import time
from typing import Final

from berth.runtime.tcp_info import TcpInfo, last_round_trip, tcp_info

LOOK_SECONDS: Final = 5.0
"""Seconds from one look at connections whose requests are being answered to the next."""
LONGER: Final = 1 / 3
"""Share of the least round trip by which another may exceed it."""
LONGER_MICROSECONDS: Final = 20_000
"""The same in microseconds at most: half of the least time that Linux puts an acknowledgement off."""
ALWAYS_MICROSECONDS: Final = 1000
"""What it may exceed it by in any case: what a busy machine takes."""


def fresh_round_trip(before: TcpInfo | None, after: TcpInfo, elapsed: int) -> int | None:
    """Return the round trip that a reading tells, in microseconds; None: nothing that is new and sure.

    Args:
        before: the reading before; None where there was none, and nothing but the handshake has been acknowledged.
        after: this one.
        elapsed: microseconds between them.
    """
    least = after.least_round_trip
    if before is None:
        return after.round_trip or None
    acknowledged = (after.delivered - before.delivered) % 2**32
    if not acknowledged:
        return None
    found = last_round_trip(before, after, elapsed) if acknowledged == 1 else after.round_trip
    if found is None or found > least + min(LONGER * least, LONGER_MICROSECONDS) + ALWAYS_MICROSECONDS:
        return None
    return max(found, least)


class AcceptedConnection:
    """A connection of a user, read now and then."""

    __slots__ = ("_before", "_read", "_socket", "least")

    def __init__(self, connection: socket.socket) -> None:
        """Prepare.

        Args:
            connection: its socket, before anything but its handshake was acknowledged.
        """
        self._socket = connection
        self._before: TcpInfo | None = None
        self._read = 0.0
        self.least = 0
        """least round trip of the last five minutes in microseconds, as of the last reading; 0: not known"""

    def round_trip(self) -> int | None:
        """Read, and return a round trip in microseconds if there is a new one."""
        try:
            after = tcp_info(self._socket)
        except OSError:
            return None  # closed meanwhile
        now = time.monotonic()
        found = fresh_round_trip(self._before, after, round(1e6 * (now - self._read)))
        self._before, self._read = after, now
        # The kernel states the greatest number where it knows none.
        self.least = after.least_round_trip if after.least_round_trip < 2**32 - 1 else 0
        return found
