"""How texts for people list, count and shorten things."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_COMMANDS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed, those that turn the direction of writing, and what stands for a byte of a
file's name that is no text, which nothing can encode."""


LISTED: Final = 10
"""Items that a text names of a list, unless it says otherwise."""


def listed(items: Sequence[str], *, limit: int = LISTED, separator: str = ", ", total: int | None = None) -> str:
    """Return the first ``limit`` items and how many there are beyond them; ``total`` if these are not all of them.

    >>> listed(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = separator.join(items[:limit])
    count = len(items) if total is None else total
    return shown if count <= limit else f"{shown} and {count - limit} more"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural.

    >>> counted(2, "pod")
    '2 pods'
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def cost_text(value: float) -> str:
    """Return a network cost with as many places as matter.

    >>> cost_text(0.3), cost_text(41.86), cost_text(1401.2)
    ('0.30', '41.9', '1401')
    """
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def share_text(value: float) -> str:
    """Return a share in per cent; neither 0 nor 100 % unless it is.

    >>> share_text(0.667), share_text(0.999)
    ('67%', '99.9%')
    """
    text = f"{value:.0%}"
    return f"{value:.1%}" if text in ("0%", "100%") and value not in (0, 1) else text


def shortened(text: str, limit: int) -> str:
    """Return ``text``, cut with an ellipsis so that its UTF-8 form has at most ``limit`` bytes."""
    data = text.encode()
    if len(data) <= limit:
        return text
    return data[: limit - len("…".encode())].decode(errors="ignore") + "…"


def printable(text: str) -> str:
    """Return ``text`` with characters that would command a terminal written out: what tenants state is printed too.

    >>> printable("red \\x1b[31m")
    'red \\\\x1b[31m'
    """
    return _COMMANDS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def on_one_line(text: str) -> str:
    """Return ``text`` as :func:`printable` has it, with line feeds and tabs written out too: a forged line is none.

    >>> on_one_line("n\\nStatus: True")
    'n\\\\nStatus: True'
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def one_line(text: str, limit: int) -> str:
    """Return what should be a name, as it can stand in a sentence: shortened, and on one line.

    >>> one_line("n\\nStatus: True", 8)
    'n\\\\nSta…'
    """
    return on_one_line(shortened(text, limit))
