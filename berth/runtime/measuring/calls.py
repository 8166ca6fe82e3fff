"""One message to the latency controller and its answer: where it is, whom to trust, and by which token to speak."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

import aiohttp

from berth.api.text import one_line
from berth.kube.backoff import backoff
from berth.kube.errors import retry_after_seconds

T = TypeVar("T")

PAUSES: Final = (1.0, 60.0)
"""Seconds after the first message that failed and, doubled each time, after the last; by chance down to a tenth."""
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


class SoughtServer(Server, Protocol):
    """Can be waited for where it does not answer."""

    async def another_within(self, seconds: float) -> bool:
        """Wait so many seconds at most for another controller than the last; return whether there is one."""


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

    async def another_within(self, seconds: float) -> bool:
        """Wait: it is always the same."""
        await asyncio.sleep(seconds)
        return False


class ChangingServer(Server, Protocol):
    """Hears of it when there is another controller, while it runs."""

    def another(self) -> asyncio.Event:
        """Return what is set once there is another than now."""

    async def run(self) -> None:
        """Follow where it is until cancelled."""


class RefusedError(ValueError):
    """The controller answered otherwise than with 200."""

    def __init__(self, status: int, retry_after: float) -> None:
        """Keep what it said.

        Args:
            status: of HTTP.
            retry_after: seconds that it wants to be left alone for; 0: it does not say.
        """
        super().__init__(f"status {status}")
        self.status = status
        self.retry_after = retry_after


def is_busy(error: Exception) -> bool:
    """Return whether the controller is there and wants to be left alone for a while: it need not be looked for.

    One that cannot say who speaks (503) may be cut off from the API server, while another leads by now.
    """
    return isinstance(error, RefusedError) and error.status == HTTPStatus.TOO_MANY_REQUESTS


def pause_after(error: Exception, failures: int, pauses: tuple[float, float]) -> float:
    """Return how many seconds to wait after a message that failed, the last of so many: no less than it was asked to.

    Args:
        error: what became of it.
        failures: from 1.
        pauses: as :data:`PAUSES`.
    """
    asked = error.retry_after if isinstance(error, RefusedError) else 0.0
    return max(asked, backoff(failures - 1, base=pauses[0], cap=pauses[1]))


def trusting(certificates: bytes) -> ssl.SSLContext:
    """Return the TLS settings of a client that trusts these certificates in PEM, whoever has signed them; empty: those
    of the system.

    Raises:
        ssl.SSLError, ValueError: they cannot be read.
    """
    context = ssl.create_default_context(cadata=certificates.decode("ascii", errors="replace") or None)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as Python does by itself from 3.13 on
    return context


def open_session() -> aiohttp.ClientSession:
    """Return a session for :class:`ControllerCalls`, to be entered."""
    return aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())


class ControllerCalls:
    """Sends messages, one at a time."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        """Prepare without I/O.

        Args:
            server: says where the controller is.
            session: that of :func:`open_session`.
        """
        self._server = server
        self._session = session
        self._trusted: tuple[bytes, ssl.SSLContext] | None = None
        self._failed = False

    async def post(self, path: str, message: bytes, decode: Callable[[bytes], T], *, seconds: float, most: int) -> T:
        """Return the answer to a message.

        Args:
            path: that of the kind of message.
            message: as JSON.
            decode: reads an answer; raises ValueError if it is none.
            seconds: how long the message and its answer may take.
            most: bytes of an answer at most.

        Raises:
            aiohttp.ClientError, OSError, ValueError: there was none, or it was no good one.
        """
        again, self._failed = self._failed, True
        endpoint = await self._server.endpoint(again=again)
        token, context = await asyncio.to_thread(self._credentials, endpoint)
        async with self._session.post(
            endpoint.url.rstrip("/") + path,
            data=message,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            ssl=context,
            server_hostname=endpoint.server_name,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=seconds),
        ) as response:
            if response.status != 200:
                found = RefusedError(response.status, retry_after_seconds(response.headers.get("Retry-After")) or 0.0)
                self._failed = not is_busy(found)
                raise found
            body = bytearray()
            async for part in response.content.iter_any():
                body += part
                if len(body) > most:
                    raise ValueError(f"the answer has more than {most} bytes")
        try:
            answer = decode(bytes(body))
        except RecursionError:
            raise ValueError("the answer is nested too deep") from None
        self._failed = False
        return answer

    def _credentials(self, endpoint: Endpoint) -> tuple[str, ssl.SSLContext]:
        """Read the token, and the certificates where they are others than before."""
        token = _token(self._server.token_file)
        if self._trusted is None or self._trusted[0] != endpoint.certificates:
            self._trusted = endpoint.certificates, trusting(endpoint.certificates)
        return token, self._trusted[1]


def _token(path: Path) -> str:
    """Return the token of a file; what is wrong with it is said without it."""
    with path.open("rb") as file:
        token = file.read(MAX_TOKEN + 1).strip()
    if not 0 < len(token) <= MAX_TOKEN or not all(0x20 < byte < 0x7F for byte in token):
        raise ValueError(f"{path} holds no token")
    return token.decode()


def told(error: Exception) -> str:
    """Return what became of a message, for people."""
    return one_line(f"{type(error).__name__}: {error}", 300)
