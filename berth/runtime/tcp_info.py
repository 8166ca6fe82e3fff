"""What the kernel knows about a TCP connection, from ``struct tcp_info`` (linux/tcp.h)."""

from __future__ import annotations

import socket
import struct
from typing import Final, NamedTuple

_FIELDS: Final = struct.Struct("=68xI28xI24xQ12xI40xI")


class TcpInfo(NamedTuple):
    """Part of what the kernel says."""

    round_trip: int
    """smoothed round trip in microseconds; each new one counts an eighth"""
    retransmissions: int
    """segments sent again since the connection began"""
    received: int = 0
    """bytes that have come since then, read or not; its end counts as one"""
    least_round_trip: int = 0
    """shortest round trip of the last five minutes in microseconds, of which acknowledgements that the other side has
    put off are no part; before anything was sent, that of the handshake"""
    delivered: int = 0
    """segments that the other side has acknowledged, modulo 2**32"""


def tcp_info(connection: socket.socket) -> TcpInfo:
    """Return what the kernel says now.

    Raises:
        OSError: the connection is closed.
    """
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _FIELDS.size)
    return TcpInfo(*_FIELDS.unpack(raw))


def segments_acknowledged(connection: socket.socket) -> int:
    """Return how many segments of ours the other side has acknowledged, modulo 2**32; 0 where nobody knows."""
    try:
        return tcp_info(connection).delivered
    except OSError:
        return 0


def last_round_trip(before: TcpInfo, after: TcpInfo, elapsed: int) -> int | None:
    """Return the one round trip that lies between two readings, in microseconds; None if it cannot be told.

    The kernel smooths: after = (7 * before + last) / 8. It states whole microseconds, so the answer is within 8 of the
    truth. What was sent again has no round trip of its own.

    Args:
        before: reading before a byte was sent.
        after: reading after its answer.
        elapsed: microseconds between sending and answer as the program saw it, which no round trip exceeds.
    """
    if after.retransmissions != before.retransmissions:
        return None
    return max(1, min(8 * after.round_trip - 7 * before.round_trip, elapsed))
