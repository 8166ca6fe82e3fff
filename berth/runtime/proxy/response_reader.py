"""Answers of HTTP/1.1 as they come, for a proxy that passes them on. No I/O.

The parser is httptools (llhttp), one for each answer: to HEAD no body follows whatever the head says, which the parser
cannot be told, so it is left behind with the answer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import httptools

LARGEST_HEAD: Final = 65_536
"""Bytes before a body, and between two of its chunks, at the most."""
MOST_FIELDS: Final = 256
"""Fields of a head at the most."""


class MalformedAnswerError(Exception):
    """What came is no answer to the request; nothing that the connection brings can be believed."""


class Head(NamedTuple):
    """The head of an answer."""

    status: int
    """HTTP status"""
    reason: bytes
    """its text"""
    fields: tuple[tuple[bytes, bytes], ...]
    """header fields as they came"""
    length: int | None
    """bytes that it states for the body; None: it states none"""


class ResponseReader:
    """Reads the answer to one request."""

    def __init__(self, method: str) -> None:
        """Wait for the answer to a request of this method."""
        self.head: Head | None = None
        """head of the final answer, once it is there"""
        self.interim = 0
        """status of the last answer before the final one; 0: there was none"""
        self.chunks: list[bytes] = []
        """parts of the body that nobody has taken yet"""
        self.complete = False
        """whether all of the answer is there"""
        self.lasting = False
        """whether the connection takes another request afterwards; known with the head"""
        self.upgraded = False
        """whether another protocol is spoken from here on"""
        self.tail = b""
        """what came after an answer that switches protocols"""
        self._bodyless = method == "HEAD"
        self._upgradable = self._chunked = False
        self._around = 0
        self._reason = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._parser = httptools.HttpResponseParser(self)

    def expect_upgrade(self) -> None:
        """Take 101 for an answer: the request has asked for it."""
        self._upgradable = True

    def feed(self, data: bytes) -> None:
        """Take in what came.

        Raises:
            MalformedAnswerError: it is no answer to the request.
        """
        if self.upgraded:
            self.tail += data
            return
        if self.complete:
            self._excess()
        self._around += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            if not self._upgradable:
                raise MalformedAnswerError("a switch of protocols that was not asked for") from error
            self.upgraded, self.lasting = True, False
            self.tail = data[error.args[0] :]
        except httptools.HttpParserCallbackError as error:
            raise MalformedAnswerError(str(error.__context__ or error)) from error
        except httptools.HttpParserError as error:
            if not self.complete:
                raise MalformedAnswerError(f"no HTTP/1.1 answer: {error}") from error
            self._excess()
        if self._around > LARGEST_HEAD and not self.complete:
            raise MalformedAnswerError(f"{LARGEST_HEAD} bytes that belong to no body")

    def end(self) -> None:
        """The connection has ended, which is how some bodies end.

        Raises:
            MalformedAnswerError: some of the answer is missing.
        """
        if self.complete:
            return
        if self.head is None:
            raise MalformedAnswerError("the connection ended before the answer")
        if self.head.length is not None or self._chunked:
            raise MalformedAnswerError("the connection ended within the answer")
        self.complete = True

    def _excess(self) -> None:
        """More came than the answer has: whose it is nobody knows."""
        self.lasting = False

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Begin an answer; one behind the final one was not asked for."""
        if self.complete:
            self._excess()
            return
        self._fields, self._reason = [], b""

    def on_status(self, reason: bytes) -> None:
        """Keep the text of the status."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head; those behind the body are dropped."""
        if self.head is not None:
            return
        if len(self._fields) >= MOST_FIELDS:
            raise MalformedAnswerError(f"more than {MOST_FIELDS} header fields")
        self._fields.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Keep the head of the final answer."""
        if self.complete:
            return
        status = self._parser.get_status_code()
        if not 100 <= status <= 999 or self._parser.get_http_version() not in ("1.0", "1.1"):
            raise MalformedAnswerError(f"status {status} of HTTP/{self._parser.get_http_version()}")
        if status < 200 and not (status == 101 and self._upgradable):
            self.interim = status
            return
        length = next((value for name, value in self._fields if name.lower() == b"content-length"), None)
        codings = [value.lower() for name, value in self._fields if name.lower() == b"transfer-encoding"]
        if codings not in ([], [b"chunked"]):
            raise MalformedAnswerError("a Transfer-Encoding that was not asked for")
        self._chunked = bool(codings)
        self.head = Head(
            status, self._reason, tuple(self._fields), int(length) if length is not None and not codings else None
        )
        nothing_follows = self._bodyless or status in (101, 204, 304)
        measured = nothing_follows or self._chunked or self.head.length is not None
        # A body that must not be, and may come: it would be taken for the answer to the next request.
        feared = not self._bodyless and (
            (status in (204, 304) and self._chunked) or (status == 204 and bool(self.head.length))
        )
        self.lasting = measured and not feared and self._parser.should_keep_alive()
        self._around = 0
        if nothing_follows:
            self.complete = True

    def on_body(self, data: bytes) -> None:
        """Keep a part of the body."""
        if self.complete:
            self._excess()
            return
        self._around = 0
        self.chunks.append(data)

    def on_message_complete(self) -> None:
        """Note that all is there; an interim answer is followed by another."""
        if self.head is not None:
            self.complete = True
