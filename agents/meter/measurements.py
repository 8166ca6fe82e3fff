"""GET /measurements: what was measured, for whoever shows the token. Reading changes nothing."""

from __future__ import annotations

import asyncio
import hmac
from pathlib import Path
from typing import Final

import msgspec
import structlog
from aiohttp import web

from berth.kube.lease import boot_clock
from berth.runtime.health import MAX_CONNECTIONS
from berth.runtime.measuring.users import UserTable
from berth.runtime.site import Site

log = structlog.get_logger(__name__)

LEAST_TOKEN: Final = 16
"""Characters that the token of readers has at least."""
MAX_TOKEN: Final = 4096
"""Characters at most."""


class MeasuredUser(msgspec.Struct, frozen=True):
    """One user."""

    user: str
    """keyed hash of the identity"""
    microseconds: tuple[int, ...]
    """the newest round trips, oldest first"""
    age: float
    """seconds since the newest of them"""
    sequence: int
    """that of the newest of them"""


class Measurements(msgspec.Struct, frozen=True):
    """The answer."""

    instance: str
    """random name of the process; the sequence of another begins anew"""
    sequence: int
    """round trips measured since the start; one more with each"""
    users: tuple[MeasuredUser, ...]
    """those with a round trip that is newer than what the reader has"""


class MeasurementsServer:
    """Serves them on a port of their own."""

    def __init__(self, table: UserTable, *, instance: str, host: str, port: int, token_file: Path) -> None:
        """Prepare.

        Args:
            table: the users.
            instance: random name of the process.
            host: address to listen on; empty: all of them.
            port: 0 picks a free one, readable as :attr:`port` after start.
            token_file: holds what readers show as bearer token; read for each request, as it may be renewed.
        """
        self._table = table
        self._instance = instance
        self._token_file = token_file
        app = web.Application()
        app.router.add_get("/measurements", self._measurements)
        self._site = Site(app, host=host, port=port, most=MAX_CONNECTIONS)

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return self._site.port

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: address or port cannot be used.
        """
        await self._site.start()

    async def stop(self) -> None:
        """Stop listening."""
        await self._site.stop()

    async def _measurements(self, request: web.Request) -> web.Response:
        token = await asyncio.to_thread(self._token)
        if not token:
            return web.Response(status=503, text="the token of readers cannot be read\n")
        shown = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if not hmac.compare_digest(shown, b"Bearer " + token):
            return web.Response(status=401, text="show the token\n", headers={"WWW-Authenticate": "Bearer"})
        after = request.query.get("after", "0")
        if not (after.isascii() and after.isdigit() and len(after) < 20):
            return web.Response(status=400, text="after is the sequence of an answer\n")
        answer = measurements(self._table, self._instance, after=int(after), now=boot_clock())
        return web.Response(
            body=msgspec.json.encode(answer), content_type="application/json", headers={"Cache-Control": "no-store"}
        )

    def _token(self) -> bytes:
        """The token; nothing while there is none that is long enough."""
        try:
            with self._token_file.open("rb") as file:
                token = file.read(MAX_TOKEN + 1).strip()
        except OSError as error:
            log.warning("measurements are not shown", error=str(error))
            return b""
        if not LEAST_TOKEN <= len(token) <= MAX_TOKEN:
            log.warning("measurements are not shown", error=f"the token needs {LEAST_TOKEN} to {MAX_TOKEN} characters")
            return b""
        return token


def measurements(table: UserTable, instance: str, *, after: int, now: float) -> Measurements:
    """Return what was measured after a number of the sequence; 0: all that is remembered.

    Args:
        table: the users.
        instance: random name of the process.
        after: sequence of the answer that the reader has.
        now: by the boot clock, for ages.
    """
    users = (
        MeasuredUser(user.name, tuple(user.microseconds), round(max(0.0, now - user.measured), 3), user.change)
        for user in table
        if user.change > after
    )
    return Measurements(instance, table.changes, tuple(users))
