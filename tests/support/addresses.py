"""Addresses of the machine that tests run on."""

from __future__ import annotations

import functools
import socket


@functools.cache
def own_address() -> str:
    """An address that is neither loopback nor link-local: EndpointSlices hold none of these, and users have none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        unsent.connect(("192.0.2.1", 9))
        found: str = unsent.getsockname()[0]
        return found
