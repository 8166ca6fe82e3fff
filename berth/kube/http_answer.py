"""Answers of HTTP/1.1, read from bytes as they come. No I/O.

The parser is httptools (llhttp). Here is what belongs around it: which answers were asked for, where a body ends that
has no length of its own, and what is kept of the headers.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import httptools

LARGEST_HEAD = 65_536
"""Bytes before a body, and between two of its chunks, at the most."""
LARGEST_BODY = 2**28
"""Bytes of a body at the most, compressed or not: one without end must not take all memory."""
_GZIP = 16 + zlib.MAX_WBITS


class HttpAnswer(NamedTuple):
    """A complete answer."""

    status: int
    """HTTP status"""
    body: bytes
    """what came after the headers, without the marks between chunks, decompressed"""
    retry_after: str | None
    """header Retry-After as it stands"""


class MalformedAnswerError(ConnectionError):
    """What came is no HTTP answer, or none that was asked for; the connection is of no use any more."""


class TooLargeError(MalformedAnswerError):
    """The body is larger than it may be."""


class AnswerReader:
    """Reads one answer after another from one connection."""

    def __init__(self) -> None:
        """Wait for the first answer."""
        self.largest = LARGEST_BODY
        """bytes that a body may have"""
        self.lasting = True
        """False once the connection takes no further request: the server closes it after this answer"""
        self._parser = httptools.HttpResponseParser(self)
        self._complete: HttpAnswer | None = None
        self._begin()

    @property
    def empty(self) -> bool:
        """Whether nothing has come since the last complete answer."""
        return not self._begun

    def feed(self, data: bytes) -> HttpAnswer | None:
        """Take in what came; returns the answer once it is complete.

        Raises:
            MalformedAnswerError: it is no HTTP answer.
        """
        self._around += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            kind = type(cause) if isinstance(cause, MalformedAnswerError) else MalformedAnswerError
            raise kind(str(cause or error)) from error
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise MalformedAnswerError(f"no HTTP/1.1 answer: {error}, in {data[:80]!r}") from error
        if self._complete is None and self._around > LARGEST_HEAD:
            raise MalformedAnswerError(f"{LARGEST_HEAD} bytes that belong to no body")
        answer, self._complete = self._complete, None
        return answer

    def end(self) -> HttpAnswer | None:
        """The connection has ended: the answer that ends with it, None if there is none or some of it is missing."""
        return self._answer() if self._ends_with_connection else None

    def _begin(self) -> None:
        """Nothing is known of the next answer."""
        self._begun = False
        self._around = 0
        self._body: list[bytes] = []
        self._size = 0
        self._retry_after: str | None = None
        self._measured = False
        self._compressed = False
        self._ends_with_connection = False

    def _answer(self) -> HttpAnswer:
        body = b"".join(self._body)
        whole = self._unzipped(body) if self._compressed and body else body
        return HttpAnswer(self._parser.get_status_code(), whole, self._retry_after)

    def _unzipped(self, body: bytes) -> bytes:
        unzip = zlib.decompressobj(_GZIP)
        try:
            whole = unzip.decompress(body, self.largest + 1)
        except zlib.error as error:
            raise MalformedAnswerError(f"no gzip: {error}") from error
        self._check(len(whole))
        if not unzip.eof:
            raise MalformedAnswerError("no gzip: it has no end")
        return whole

    def _check(self, size: int) -> None:
        if size > self.largest:
            raise TooLargeError(f"a body of more than {self.largest} bytes")

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Another answer begins; one that follows a complete answer at once was not asked for and is never read."""
        self._begun = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep what says how the body ends and when to come again."""
        match name.lower():
            case b"content-length":
                self._measured = True
            case b"transfer-encoding":
                if value.lower() != b"chunked":
                    raise MalformedAnswerError(f"Transfer-Encoding {value[:80]!r} was not asked for")
                self._measured = True
            case b"content-encoding" if value.lower() != b"identity":
                if value.lower() != b"gzip":
                    raise MalformedAnswerError(f"Content-Encoding {value[:80]!r} was not asked for")
                self._compressed = True
            case b"retry-after":
                self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Refuse answers that no request of ours can have."""
        status = self._parser.get_status_code()
        if not 100 <= status <= 599 or status in (101, 304):
            raise MalformedAnswerError(f"status {status} was not asked for")
        if status >= 200:
            self._ends_with_connection = not self._measured and status != 204
            self.lasting = self._parser.should_keep_alive() and not self._ends_with_connection

    def on_body(self, data: bytes) -> None:
        """Keep a part of the body."""
        self._around = 0
        self._size += len(data)
        self._check(self._size)
        self._body.append(data)

    def on_message_complete(self) -> None:
        """Keep the answer; of an interim one nothing."""
        if self._complete is not None:
            return
        if self._parser.get_status_code() >= 200:
            self._complete = self._answer()
        self._begin()
