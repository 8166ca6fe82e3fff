"""Who is sent to another node's router, so that it measures how far that node is from the user. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cachetools import TTLCache

from berth.api.latency_exchange import TRAVELS, Instructions

AGAIN_SECONDS: Final = 30.0
"""Seconds for which a user is not sent away a second time: one that comes back must be served, not sent round."""
MOST_REMEMBERED: Final = 10_000
"""Users that are remembered for that."""
SAFE: Final = ("GET", "HEAD")
"""Methods that clients repeat elsewhere without asking anybody (RFC 9110, 15.4)."""


class Steering:
    """Finds the URL to redirect a request to."""

    def __init__(self, url: str, node: str, clock: Callable[[], float]) -> None:
        """Prepare.

        Args:
            url: how users reach the router on a node, with ``{node}`` or ``{address}`` in it; empty: not at all.
            node: name of the node that this router runs on.
            clock: tells seconds of a monotonic clock.
        """
        self.routers: Mapping[str, str] = {}
        """addresses of the ready routers, by name of their node"""
        self._url = url
        self._node = node
        self._sent: TTLCache[str, bool] = TTLCache(MOST_REMEMBERED, AGAIN_SECONDS, clock)

    def location(self, user: str, method: str, target: str, instructions: Instructions) -> str | None:
        """Return where a request is to be sent; None: it is served here.

        Args:
            user: keyed hash of the user's identity.
            method: such as ``GET``.
            target: path and query.
            instructions: what the controller has said last.
        """
        node = instructions.steer.get(user)
        if node is None or node == self._node or not self._url or method not in SAFE:
            return None
        if instructions.identity.source not in TRAVELS or user in self._sent:
            return None
        address = self.routers.get(node)
        if address is None:
            return None
        self._sent[user] = True
        host = f"[{address}]" if ":" in address else address
        return self._url.replace("{node}", node).replace("{address}", host).rstrip("/") + target
