"""Lines of a stream from chunks as they come."""

from __future__ import annotations

from typing import Final

from berth.kube.http_answer import LARGEST_BODY

LARGEST_LINE: Final = LARGEST_BODY
"""Bytes of a line at the most: one without end must not take all memory."""


class Lines:
    """Puts lines together; each byte is copied once, however many chunks a line of a megabyte comes in."""

    def __init__(self) -> None:
        """Begin with an empty line."""
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes, without their ends.

        Raises:
            ValueError: a line is longer than any.
        """
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts.clear()
            self._size = 0
        self._size += len(rest)
        if self._size > LARGEST_LINE:
            raise ValueError(f"a line of more than {LARGEST_LINE} bytes")
        self._parts.append(rest)
        return lines
