"""The present as the API server has it, by which a write was so long ago.

When a write was is a time of the API server's clock. That of this process may be another one or jump, and by one that
is a minute ahead every write would be long ago. So what this process has seen being written is as old as its monotonic
clock says. The wall clock is for what was there when the process began.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from datetime import UTC, datetime, timedelta
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


def _wall() -> datetime:
    return datetime.now(UTC)


class _Seen(NamedTuple):
    written: datetime | None
    """as the object said last; None: it was not, or has not said so yet"""
    moment: float | None
    """the same by the monotonic clock; None of what was there from the beginning"""


class WriteTimes(Generic[K]):
    """When objects were last written."""

    def __init__(self, wall: Callable[[], datetime] = _wall, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Know of none; tests have clocks of their own."""
        self._wall, self._monotonic = wall, monotonic
        self._seen: dict[K, _Seen] = {}

    def present(self, key: K, written: datetime | None) -> datetime:
        """Return the present, by the clock that a time of writing is of.

        Args:
            key: what was written.
            written: when, as it says.
        """
        seen = self._seen.get(key)
        if seen is None:
            seen = _Seen(written, None)
        elif seen.written is None and seen.moment is not None:
            seen = _Seen(written, seen.moment)
        elif seen.written != written:
            seen = _Seen(written, self._monotonic())
        self._seen[key] = seen
        if written is None or seen.moment is None:
            return self._wall()
        return written + timedelta(seconds=self._monotonic() - seen.moment)

    def wrote(self, key: K) -> None:
        """Take in that it was written a moment ago, whenever that is as it will say."""
        self._seen[key] = _Seen(None, self._monotonic())

    def forget(self, key: K) -> None:
        """Know nothing of it any more."""
        self._seen.pop(key, None)
