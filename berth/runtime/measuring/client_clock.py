"""Round trips by the time that a client states in a header: two clocks, of which one is the user's.

The client says when it sent the request, in milliseconds since 1970; d is how much later it came, by the clock here.
d is the way here plus the offset between the clocks. The offset is estimated as the Network Time Protocol does, by the
exchange with the least delay (RFC 5905, 8 and 10; Cristian 1989): offset = d - r / 2, with the kernel's round trip r of
the same connection, which assumes that both ways are as long; the least of the last minute counts, for what comes
on top is waiting. A later request has the round trip 2 * (d - offset).

So it adds what the kernel does not tell on a kept connection: that the way got longer. It cannot tell how long it
was in the beginning.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum
from typing import Final

MOST_APART: Final = 86_400.0
"""Seconds that a client's clock may be wrong by."""
WINDOW_SECONDS: Final = 60.0
"""Seconds of whose offsets the least counts; clocks drift apart by some 20 microseconds a second."""
VALID_SECONDS: Final = 120.0
"""Seconds after which an offset is not used any more."""
SET_SECONDS: Final = 1.0
"""Seconds beyond the least from which on an offset is that of a clock that was set, and not of waiting."""
_NUMBER: Final = re.compile(r"[0-9]{1,16}(\.[0-9]{1,9})?", re.ASCII)


class Rejection(StrEnum):
    """Why a stated time is not believed."""

    MALFORMED = "malformed"
    """no number"""
    ABSURD = "absurd"
    """further off than any clock is"""
    NEGATIVE = "negative"
    """the request would have come before it was sent"""


def seconds_since(stated: str, now: float) -> float | Rejection:
    """Return how long ago a stated time was, which is negative where the client's clock is ahead.

    Args:
        stated: milliseconds since 1970.
        now: seconds since then.
    """
    if _NUMBER.fullmatch(stated.strip(" \t")) is None:
        return Rejection.MALFORMED
    apart = now - float(stated) / 1000
    return apart if abs(apart) <= MOST_APART else Rejection.ABSURD


class ClientClock:
    """How far the clock of one client is behind; times are seconds of one monotonic clock."""

    __slots__ = ("_before", "_began", "_least", "_noted")

    def __init__(self) -> None:
        """Know nothing."""
        self._least = self._before = math.inf
        self._began = self._noted = -math.inf

    def calibrate(self, apart: float, round_trip: int, now: float) -> None:
        """Note an exchange of which both is known.

        Args:
            apart: what :func:`seconds_since` says.
            round_trip: microseconds, by the kernel.
            now: when.
        """
        if now - self._began >= WINDOW_SECONDS / 2:
            self._before = self._least if now - self._began < WINDOW_SECONDS else math.inf
            self._least, self._began = math.inf, now
        offset = apart - round_trip / 2e6
        if offset - min(self._least, self._before) > SET_SECONDS:
            self._least = self._before = math.inf
        self._least = min(self._least, offset)
        self._noted = now

    def round_trip(self, apart: float, now: float) -> int | Rejection | None:
        """Return the round trip of a request in microseconds; None while the offset is not known."""
        if now - self._noted > VALID_SECONDS:
            return None
        way = apart - min(self._least, self._before)
        return round(2e6 * way) if way > 0 else Rejection.NEGATIVE
