"""How texts for people list, count and shorten things."""

from __future__ import annotations

from collections.abc import Sequence


def listed(items: Sequence[str], *, limit: int = 10, separator: str = ", ") -> str:
    """Return the first ``limit`` items and how many there are beyond them.

    >>> listed(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = separator.join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural.

    >>> counted(2, "pod")
    '2 pods'
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shortened(text: str, limit: int) -> str:
    """Return ``text``, cut with an ellipsis so that its UTF-8 form has at most ``limit`` bytes."""
    data = text.encode()
    if len(data) <= limit:
        return text
    return data[: limit - len("…".encode())].decode(errors="ignore") + "…"
