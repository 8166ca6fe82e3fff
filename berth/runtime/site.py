"""Pages of a process's own, and the port that they are served on."""

from __future__ import annotations

import ssl

from aiohttp import web


class Site:
    """An application that listens between `start` and `stop`."""

    def __init__(
        self, application: web.Application, *, host: str | None, port: int, context: ssl.SSLContext | None = None
    ) -> None:
        """Prepare.

        Args:
            application: what answers.
            host: address to listen on; empty or None: all of them.
            port: 0 picks a free one, readable as :attr:`port` after start.
            context: TLS settings; None: without TLS.
        """
        self.port = port
        """port that it listens on"""
        self._host = host or None
        self._context = context
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError, OverflowError: address or port cannot be used.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self.port, ssl_context=self._context).start()
        except (OSError, OverflowError):
            await self.stop()
            raise
        self.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening; requests under way have a second."""
        await self._runner.cleanup()
