"""TLS for servers that many keep a connection to: asyncio's own takes 256 KiB of each as soon as it is made."""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import ClassVar, Final, cast

RECORD_BYTES: Final = 16_384
"""Bytes of a TLS record at most (RFC 8446, 5.1): no more is decrypted at a time anyway."""
HANDSHAKE_SECONDS: Final = 10
"""Seconds for the handshake; who says nothing is cut off."""


class TlsProtocol(SSLProtocol):
    """What a server listens with so that another protocol has what was decrypted, as `create_server(ssl=...)` has it.

    It reads a record at a time.
    """

    max_size: ClassVar[int] = RECORD_BYTES

    def __init__(self, protocol: asyncio.Protocol, context: ssl.SSLContext, ended: Callable[[], object]) -> None:
        """Prepare.

        Args:
            protocol: it begins once the handshake is done.
            context: TLS settings.
            ended: called when the connection has ended.
        """
        super().__init__(
            asyncio.get_running_loop(),
            protocol,
            context,
            None,  # type: ignore[arg-type]  # nobody waits for the handshake; typeshed knows of clients alone
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
        )
        self._ended = ended
        self._raw: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        self._raw = cast("asyncio.Transport", transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell of the end."""
        super().connection_lost(exc)
        self._ended()

    def cut(self) -> None:
        """End the connection without waiting for anything."""
        if self._raw is not None:
            self._raw.abort()
