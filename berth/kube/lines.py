"""Lines of a stream from chunks as they come."""

from __future__ import annotations


class Lines:
    """Puts lines together; each byte is copied once, however many chunks a line of a megabyte comes in."""

    def __init__(self) -> None:
        """Begin with an empty line."""
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes, without their ends."""
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts.clear()
        self._parts.append(rest)
        return lines
