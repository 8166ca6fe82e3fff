"""Answers of HTTP/1.1, read from bytes as they come. No I/O.

Read is what the API server and gateways before it send to a request with a body of its own length: an answer with
Content-Length, in chunks, or up to the end of the connection, as it is or compressed by gzip. Of the headers only those
are looked at that say this and when to come again.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from typing import NamedTuple

LARGEST_HEAD = 65_536
"""Bytes of status line and headers at the most, and of the line before a chunk."""
_WITHOUT_BODY = (204, 304)
_END_OF_HEAD = b"\r\n\r\n"


class HttpAnswer(NamedTuple):
    """A complete answer."""

    status: int
    """HTTP status"""
    body: bytes
    """what came after the headers, without the marks between chunks, decompressed"""
    retry_after: str | None
    """header Retry-After as it stands"""


class MalformedAnswerError(ConnectionError):
    """What came is no HTTP answer; the connection is of no use any more."""


@dataclass(slots=True)
class _Head:
    status: int
    retry_after: str | None = None
    length: int | None = None
    chunked: bool = False
    compressed: bool = False
    lasting: bool = True


@dataclass(slots=True)
class AnswerReader:
    """Reads one answer after another from one connection."""

    lasting: bool = True
    """False once the connection takes no further request: the server closes it after this answer"""
    _data: bytearray = field(default_factory=bytearray)
    _head: _Head | None = None
    _chunks: list[bytes] = field(default_factory=list)
    _chunk: int | None = None  # bytes of the chunk that comes, with the end of its line
    _trailing: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing has come since the last complete answer."""
        return not self._data and self._head is None

    def feed(self, data: bytes) -> HttpAnswer | None:
        """Take in what came; returns the answer once it is complete.

        Raises:
            MalformedAnswerError: it is no HTTP answer.
        """
        self._data += data
        while self._head is None:
            end = self._data.find(_END_OF_HEAD)
            if end < 0:
                self._bound(LARGEST_HEAD)
                return None
            head = _read_head(bytes(self._data[:end]))
            del self._data[: end + 4]
            if head.status >= 200:  # of an interim answer there is nothing but the head
                self._head = head
                self.lasting = head.lasting
        head = self._head
        if head.chunked:
            return self._answer(b"".join(self._chunks)) if self._read_chunks() else None
        if head.length is not None and len(self._data) >= head.length:
            body = bytes(self._data[: head.length])
            del self._data[: head.length]
            return self._answer(body)
        return None

    def end(self) -> HttpAnswer | None:
        """The connection has ended: the answer that ends with it, None if there is none or some of it is missing."""
        head = self._head
        if head is None or head.chunked or head.length is not None:
            return None
        return self._answer(bytes(self._data))

    def _answer(self, body: bytes) -> HttpAnswer:
        assert self._head is not None  # noqa: S101 - the body is read after it
        try:
            whole = gzip.decompress(body) if self._head.compressed else body
        except (OSError, EOFError, zlib.error) as error:
            raise MalformedAnswerError(f"no gzip: {error}") from error
        answer = HttpAnswer(self._head.status, whole, self._head.retry_after)
        self._head = None
        self._chunks.clear()
        return answer

    def _read_chunks(self) -> bool:
        """Take complete chunks out of what came; True once the last has come, and the headers after it."""
        while not self._trailing:
            if self._chunk is None:
                line = self._line()
                if line is None:
                    return False
                size = _number(line.partition(b";")[0], base=16)
                if not size:
                    self._trailing = True
                    break
                self._chunk = size + 2
            if len(self._data) < self._chunk:
                return False
            if self._data[self._chunk - 2 : self._chunk] != b"\r\n":
                raise MalformedAnswerError("a chunk does not end where it should")
            self._chunks.append(bytes(self._data[: self._chunk - 2]))
            del self._data[: self._chunk]
            self._chunk = None
        while (line := self._line()) is not None:
            if not line:
                self._trailing = False
                return True
        return False

    def _line(self) -> bytes | None:
        end = self._data.find(b"\r\n")
        if end < 0:
            self._bound(LARGEST_HEAD)
            return None
        line = bytes(self._data[:end])
        del self._data[: end + 2]
        return line

    def _bound(self, most: int) -> None:
        if len(self._data) > most:
            raise MalformedAnswerError(f"{most} bytes without an end of the headers")


def _read_head(head: bytes) -> _Head:
    first, *lines = head.split(b"\r\n")
    version, _, rest = first.partition(b" ")
    if not version.startswith(b"HTTP/1."):
        raise MalformedAnswerError(f"no HTTP/1.1 answer: {first[:80]!r}")
    found = _Head(_number(rest[:3], base=10), lasting=version != b"HTTP/1.0")
    if not 100 <= found.status <= 599 or found.status == 101:
        raise MalformedAnswerError(f"status {found.status} was not asked for")
    for line in lines:
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip()
        if name == b"content-length":
            length = _number(value, base=10)
            if found.length not in (None, length):
                raise MalformedAnswerError("two different Content-Length")
            found.length = length
        elif name == b"transfer-encoding":
            if value.lower() != b"chunked":
                raise MalformedAnswerError(f"Transfer-Encoding {value[:80]!r} was not asked for")
            found.chunked = True
        elif name == b"content-encoding" and value.lower() != b"identity":
            if value.lower() != b"gzip":
                raise MalformedAnswerError(f"Content-Encoding {value[:80]!r} was not asked for")
            found.compressed = True
        elif name == b"connection" and b"close" in value.lower():
            found.lasting = False
        elif name == b"retry-after":
            found.retry_after = value.decode("latin-1")
    if found.status in _WITHOUT_BODY:
        found.length, found.chunked, found.compressed = 0, False, False
    if found.length is None and not found.chunked:
        found.lasting = False
    return found


def _number(digits: bytes, *, base: int) -> int:
    try:
        if not digits.strip().isalnum():  # int() would also take signs and underscores
            raise ValueError(digits)
        return int(digits, base)
    except ValueError as error:
        raise MalformedAnswerError(f"no number: {digits[:80]!r}") from error
