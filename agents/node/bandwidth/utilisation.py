"""What readings of byte counters say: mean and deviation of the bits per second over a window. No I/O."""

from __future__ import annotations

from collections import deque
from statistics import fmean, pstdev
from typing import Final, NamedTuple

from agents.node.bandwidth.links import Octets

SAMPLE_SECONDS: Final = 10.0
"""From one reading of the counters to the next."""
WINDOW_SECONDS: Final = 600.0
"""Age from which a sample does not count any more."""
_WRAP: Final = 2**32
"""Where counters of old drivers begin anew."""


class Utilisation(NamedTuple):
    """How much of a link was used, in bit/s of its busier direction."""

    mean: float
    """mean of the samples"""
    deviation: float
    """standard deviation of the samples; 0 for one"""
    samples: int
    """number of samples"""


class UtilisationWindow:
    """The samples of one interface; links are full duplex, so each is that of the direction with more bits."""

    def __init__(self) -> None:
        """Start without a reading."""
        self._interface: str | None = None
        self._last: tuple[float, Octets] | None = None
        self._samples: deque[tuple[float, float]] = deque()

    def add(self, now: float, interface: str, reading: Octets | None, capacity: int | None = None) -> None:
        """Take in a reading of the counters; another interface than before begins anew.

        Args:
            now: seconds of the boot clock, later than before.
            interface: whose counters these are.
            reading: what they say; None: they cannot be read, so that the next reading has none before it.
            capacity: bit/s of the link, if known. A counter that is less than before has begun anew; if what that
                means after 32 bits fits the link it counts, else the interface was made anew and there is no sample.
        """
        if interface != self._interface:
            self._interface, self._last = interface, None
            self._samples.clear()
        before, self._last = self._last, None if reading is None else (now, reading)
        if before is None or reading is None or now <= before[0]:
            return
        seconds = now - before[0]
        carried = [_carried(old, new, seconds, capacity) for old, new in zip(before[1], reading, strict=True)]
        known = [bits for bits in carried if bits is not None]
        if len(known) == len(carried):
            self._samples.append((now, max(known) / seconds))

    def utilisation(self, now: float) -> Utilisation | None:
        """Return what the last ten minutes say; None without samples. ``now`` is in seconds of the boot clock."""
        while self._samples and self._samples[0][0] <= now - WINDOW_SECONDS:
            self._samples.popleft()
        rates = [rate for _, rate in self._samples]
        return Utilisation(fmean(rates), pstdev(rates), len(rates)) if rates else None


def _carried(before: int, after: int, seconds: float, capacity: int | None) -> int | None:
    if after >= before:
        return 8 * (after - before)
    wrapped = 8 * (after - before + _WRAP)
    fits = capacity is not None and before < _WRAP and wrapped <= capacity * seconds
    return wrapped if fits else None
