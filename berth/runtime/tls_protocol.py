"""TLS for servers that many keep a connection to: asyncio's own takes 256 KiB of each as soon as it is made."""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from typing import ClassVar, Final

RECORD_BYTES: Final = 16_384
"""Bytes of a TLS record at most (RFC 8446, 5.1): no more is decrypted at a time anyway."""
HANDSHAKE_SECONDS: Final = 10
"""Seconds for the handshake; who says nothing is cut off."""


class _Records(SSLProtocol):
    """Reads a record at a time."""

    max_size: ClassVar[int] = RECORD_BYTES


def server_side(protocol: asyncio.Protocol, context: ssl.SSLContext) -> asyncio.BaseProtocol:
    """Return what a server listens with so that `protocol` has what was decrypted, as `create_server(ssl=...)` has it.

    Args:
        protocol: it begins once the handshake is done.
        context: TLS settings.
    """
    return _Records(
        asyncio.get_running_loop(),
        protocol,
        context,
        None,  # type: ignore[arg-type]  # nobody waits for the handshake; typeshed knows of clients alone
        server_side=True,
        ssl_handshake_timeout=HANDSHAKE_SECONDS,
    )
