"""Sockets to listen on."""

from __future__ import annotations

import socket


def listen(address: str, port: int) -> socket.socket:
    """Return a listening TCP socket that does not block.

    Args:
        address: where to listen; empty: everywhere, on IPv6 as well where there is some.
        port: 0 picks a free one.

    Raises:
        OSError: the address is not this machine's, or the port is taken.
    """
    if not address and socket.has_dualstack_ipv6():
        server = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    else:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        server = socket.create_server((address, port), family=family)
    server.setblocking(False)
    return server
