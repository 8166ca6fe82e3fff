"""Tells the latency controller what was measured, again and again, and hands on what it answers."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import aiohttp
import msgspec
import structlog

from berth.api.latency_exchange import MAX_USERS, ROUND_TRIPS_PATH, Instructions
from berth.api.text import one_line
from berth.runtime.measuring.instructions import MAX_BYTES, decode_instructions
from berth.runtime.measuring.metrics import REPORTS, TELLING, TOLD
from berth.runtime.measuring.reports import Reports

log = structlog.get_logger(__name__)

LEAST_SECONDS: Final = 1.0
"""Seconds from one message to the next at least, whoever comes."""
PAUSES: Final = (1.0, 60.0)
"""Seconds after the first message that failed and, doubled each time, after the last; by chance down to half of it."""
ANSWER_SECONDS: Final = 10.0
"""Seconds that a message and its answer may take."""
MAX_TOKEN: Final = 16_384
"""Longest token, in characters."""


class Endpoint(NamedTuple):
    """One server."""

    url: str
    """up to the path"""
    certificates: bytes
    """in PEM, what to trust; empty: what the system trusts"""
    server_name: str | None
    """name in its certificate; None: that of the URL"""


class Server(Protocol):
    """Says where the controller is."""

    @property
    def token_file(self) -> Path:
        """File with the pod's token for :data:`berth.api.latency_exchange.AUDIENCE`, which is renewed."""

    async def endpoint(self, *, again: bool) -> Endpoint:
        """Return where.

        Args:
            again: whether what was said last does not answer.

        Raises:
            OSError, aiohttp.ClientError, ValueError: it is not known.
        """


@dataclass(frozen=True, slots=True)
class ReportServer:
    """A stated one. The file of certificates is read for each message: it may be renewed."""

    url: str
    """up to the path, such as https://berth-latency.berth-system:8443"""
    token_file: Path
    """holds the pod's token"""
    ca_file: Path | None = None
    """certificates to trust; None: those of the system"""

    async def endpoint(self, *, again: bool) -> Endpoint:  # noqa: ARG002 - it is always the same
        """Return it."""
        if self.ca_file is None:
            return Endpoint(self.url, b"", None)
        certificates = await asyncio.to_thread(self.ca_file.read_bytes)
        if not certificates.strip():
            raise ValueError(f"{self.ca_file} is empty")  # which would stand for those of the system
        return Endpoint(self.url, certificates, None)


class Reporter:
    """Sends messages while it runs."""

    def __init__(
        self,
        server: Server,
        reports: Reports,
        instructed: Callable[[Instructions, bytes], None],
        *,
        news: asyncio.Event | None = None,
        pauses: tuple[float, float] = PAUSES,
        least: float = LEAST_SECONDS,
    ) -> None:
        """Prepare without I/O.

        Args:
            server: the controller.
            reports: what to tell.
            instructed: called with the instructions of each answer and the policy's key.
            news: set when there is a new user, as :meth:`hurry` does.
            pauses: seconds after failures, as :data:`PAUSES`.
            least: seconds between messages, as :data:`LEAST_SECONDS`.
        """
        self.instructions = Instructions()
        """what is to be done, as the last answer says"""
        self._server = server
        self._reports = reports
        self._instructed = instructed
        self._pauses = pauses
        self._least = least
        self._hurry = news or asyncio.Event()
        self._trusted: tuple[bytes, ssl.SSLContext] | None = None

    def hurry(self) -> None:
        """Have the next message sent soon: there is a new user."""
        self._hurry.set()

    async def run(self) -> None:
        """Send messages until cancelled."""
        failures = 0
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(auto_decompress=False, cookie_jar=jar) as session:
            while True:
                try:
                    more = await self._exchange(session, again=failures > 0)
                except (aiohttp.ClientError, OSError, ValueError) as error:
                    failures += 1
                    REPORTS.labels("failed").inc()
                    pause = backoff(failures, self._pauses, random.random())  # noqa: S311 - no secret
                    tell = log.warning if failures == 1 else log.debug
                    tell("the latency controller was not told", error=_told(error), failures=failures, pause=pause)
                    await asyncio.sleep(pause)
                    continue
                if failures:
                    log.info("the latency controller is told again", failures=failures)
                failures = 0
                if not more:
                    await self._until_next()

    async def _exchange(self, session: aiohttp.ClientSession, *, again: bool) -> bool:
        """Send one message and follow its answer; True if there is more to tell at once."""
        endpoint = await self._server.endpoint(again=again)
        token, context = await asyncio.to_thread(self._credentials, endpoint)
        instructions = self.instructions
        self._hurry.clear()
        message = self._reports.message(
            time.monotonic(), telling=bool(instructions.policy), addresses=instructions.tell_addresses
        )
        async with session.post(
            endpoint.url.rstrip("/") + ROUND_TRIPS_PATH,
            data=msgspec.json.encode(message),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            ssl=context,
            server_hostname=endpoint.server_name,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
        ) as response:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            body = bytearray()
            async for part in response.content.iter_any():
                body += part
                if len(body) > MAX_BYTES:
                    raise ValueError(f"the answer has more than {MAX_BYTES} bytes")
        self.instructions, key = decode_instructions(bytes(body))
        self._reports.arrived()
        REPORTS.labels("answered").inc()
        TOLD.inc(sum(len(user.microseconds) for user in message.users))
        TELLING.set(bool(self.instructions.policy))
        self._instructed(self.instructions, key)
        return len(message.users) == MAX_USERS and self._reports.waiting

    async def _until_next(self) -> None:
        await asyncio.sleep(min(self._least, self.instructions.interval))
        try:
            async with asyncio.timeout(max(0.0, self.instructions.interval - self._least)):
                await self._hurry.wait()
        except TimeoutError:
            pass

    def _credentials(self, endpoint: Endpoint) -> tuple[str, ssl.SSLContext]:
        """Read the token, and the certificates where they are others than before."""
        token = _token(self._server.token_file)
        if self._trusted is None or self._trusted[0] != endpoint.certificates:
            text = endpoint.certificates.decode("ascii", errors="replace") or None
            context = ssl.create_default_context(cadata=text)
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            self._trusted = endpoint.certificates, context
        return token, self._trusted[1]


def _token(path: Path) -> str:
    """Return the token of a file; what is wrong with it is said without it."""
    with path.open("rb") as file:
        token = file.read(MAX_TOKEN + 1).strip()
    if not 0 < len(token) <= MAX_TOKEN or not all(0x20 < byte < 0x7F for byte in token):
        raise ValueError(f"{path} holds no token")
    return token.decode()


def backoff(failures: int, pauses: tuple[float, float], chance: float) -> float:
    """Return the seconds to wait after so many failures in a row, 1 or more.

    Args:
        failures: how many.
        pauses: greatest seconds after the first and after the last.
        chance: from 0 to 1, so that those who failed together do not come again together.
    """
    first, last = pauses
    return min(last, first * 2.0 ** min(failures - 1, 32)) * (0.5 + chance / 2)


def _told(error: Exception) -> str:
    return one_line(f"{type(error).__name__}: {error}", 300)
