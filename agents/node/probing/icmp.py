"""ICMP echo, for loss and where a peer has no responder.

icmplib measures in this program, so a busy machine shows in its round trips; few at a time keep that small.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

from agents.node.probing.exhaustion import ExhaustedError, exhausted


@contextmanager
def _without_asyncio() -> Iterator[None]:
    """Import what only mentions asyncio: that brings TLS along, half of the prober's memory."""
    if "asyncio" in sys.modules:
        yield
        return
    sys.modules["asyncio"] = ModuleType("asyncio")
    try:
        yield
    finally:
        del sys.modules["asyncio"]


with _without_asyncio():
    from icmplib import ICMPLibError, SocketPermissionError, ping

PROBE_TIMEOUT: Final = 1.0
"""Seconds after which a probe is lost."""


class Icmp:
    """Echo requests, by the least privilege that the kernel wants.

    Datagram sockets need a group in ``net.ipv4.ping_group_range``, raw ones CAP_NET_RAW.
    """

    def __init__(self, timeout: float = PROBE_TIMEOUT) -> None:
        """Find out what is permitted.

        Args:
            timeout: in seconds.

        Raises:
            ExhaustedError: there is no room for a socket, so that it cannot be found out.
        """
        self._timeout = timeout
        self._privileged = False
        self.permitted = self._try() or self._try(privileged=True)
        """Whether probes can be sent at all."""

    def probe(self, address: str) -> int | None:
        """Return the round trip of one echo in microseconds; None if it was lost or cannot be sent.

        Raises:
            ExhaustedError: there is no room for its socket.
        """
        start = time.perf_counter_ns()
        try:
            host = ping(address, count=1, timeout=self._timeout, privileged=self._privileged)
        except (ICMPLibError, OSError) as error:
            if exhausted(error):
                raise ExhaustedError from error
            return None
        if not host.is_alive:
            return None
        # icmplib reads the wall clock, which may be set in between.
        elapsed = max(1, (time.perf_counter_ns() - start) // 1000)
        measured = round(host.avg_rtt * 1000)
        return measured if 0 < measured < elapsed else elapsed

    def _try(self, *, privileged: bool = False) -> bool:
        try:
            ping("127.0.0.1", count=1, timeout=0, privileged=privileged)
        except SocketPermissionError:
            return False
        except (ICMPLibError, OSError) as error:
            if exhausted(error):
                raise ExhaustedError from error
            # No loopback, or no answer at once; the socket was permitted.
        self._privileged = privileged
        return True
