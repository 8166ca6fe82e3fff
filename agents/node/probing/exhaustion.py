"""Errors that say nothing about a peer: the prober itself has no room for one more socket."""

from __future__ import annotations

import errno
from typing import Final

_FULL: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class ExhaustedError(Exception):
    """The process or the machine has no descriptor or memory left for a probe."""


def exhausted(error: Exception) -> bool:
    """Return whether that is why a probe failed; icmplib hides the system's error behind one of its own."""
    cause = error if isinstance(error, OSError) else error.__context__
    return isinstance(cause, OSError) and cause.errno in _FULL
