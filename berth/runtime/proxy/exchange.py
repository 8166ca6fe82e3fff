"""One request, how it is sent on and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from berth.runtime.proxy.headers import Fields
from berth.runtime.proxy.upstream import Address, UpstreamError


@dataclass(slots=True)
class Exchange:
    """One request, how it is sent on and what became of it."""

    request: web.BaseRequest
    """what the client asks"""
    choose: Callable[[list[Address]], Address | None]
    """says where to send it, given where it failed; None: nowhere"""
    pseudonym: bytes
    """name of this proxy in Via"""
    believed: bool = False
    """whether the client is a proxy of ours"""
    without: frozenset[bytes] = frozenset()
    """names, in lower case, of fields that nobody but us may write"""
    added: Fields = ()
    """fields to send besides"""
    unanswered: Fields = ()
    """fields of a 503 to somebody who may ask elsewhere, where the application is not there"""
    elsewhere: bool = False
    """whether an answer with such a field counts as if there were no connection"""
    answer_seconds: float = 60.0
    """seconds until the head of the answer"""
    on_failure: Callable[[Address, UpstreamError], None] = lambda _address, _error: None
    """is told of each attempt that failed"""
    on_answer: Callable[[Address], None] = lambda _address: None
    """is told who has answered, when the head of the answer is there"""
    status: int = 0
    """status that the client got; 0: none"""
    address: Address | None = None
    """who answered"""
    attempts: int = 0
    """how often it was sent"""
    failure: str = ""
    """why it was not answered, or not in full: a `Failure`, ``client``, ``refused`` or ``nowhere``"""
    continued: bool = False
    """whether the client, which waits for that, was asked for the body"""
    failed: list[Address] = field(default_factory=list)
    """where it failed"""


class Sent(web.StreamResponse):
    """An answer that is written already; it tells aiohttp's server whether the connection stays."""

    def __init__(self, status: int, *, lasting: bool) -> None:
        """Keep what the server asks for."""
        super().__init__(status=status)
        self._lasting = lasting

    @property
    def keep_alive(self) -> bool | None:
        """Whether another request may come by the connection."""
        return self._lasting

    async def prepare(self, request: web.BaseRequest) -> None:
        """Do nothing: the head is written."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the body is written."""
