"""What the last samples of one peer say: percentiles, jitter and loss over a sliding window.

The window is one of time, so that what the network did once is forgotten, and bounded in samples, so that it takes
no more memory however fast one probes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

WINDOW_SECONDS: Final = 90.0
"""With a round every 5 s, what changes makes a tenth of the samples, and so the p90, within 15 s."""
WINDOW_SAMPLES: Final = 512
"""Samples of one peer that are kept at most."""


class Method(StrEnum):
    """How a round trip is measured."""

    TCP = "TCP"
    """the kernel's round trip of a byte to the peer's responder"""
    ICMP = "ICMP"
    """echo request and reply"""


class Sample(NamedTuple):
    """One probe that was sent."""

    time: float
    """seconds since the machine started when it was sent"""
    method: Method
    """how it was measured"""
    microseconds: int | None
    """round trip; None: lost"""


@dataclass(frozen=True, slots=True)
class Latency:
    """Round trips of the window in microseconds; percentiles by nearest rank, so each is one that was measured."""

    p50: int
    """half of the round trips took no longer"""
    p90: int
    """nine in ten took no longer"""
    p99: int
    """99 in a hundred took no longer"""
    jitter: int
    """mean absolute difference of consecutive round trips"""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the window says."""

    method: Method
    """what the latency was measured by"""
    latency: Latency | None
    """None: no probe was answered"""
    loss: float
    """share of the probes without an answer, 0 to 1"""
    samples: int
    """answered probes behind the latency"""
    time: float
    """seconds since the machine started at the last probe, answered or not"""


class Window:
    """The last samples of one peer."""

    def __init__(self, seconds: float = WINDOW_SECONDS, samples: int = WINDOW_SAMPLES) -> None:
        """Prepare an empty window.

        Args:
            seconds: age from which a sample does not count any more.
            samples: how many are kept at most; the oldest go first.
        """
        self._seconds = seconds
        self._samples: deque[Sample] = deque(maxlen=samples)

    def add(self, samples: Iterable[Sample]) -> None:
        """Add samples; each is newer than those before."""
        self._samples.extend(samples)

    def figures(self, now: float) -> Figures | None:
        """Return what the samples of the last seconds say; None without any.

        Latency is that of TCP where the peer's responder answered, else that of ICMP. Loss is that of ICMP, because
        TCP repeats what is lost, unless a firewall drops all of ICMP while TCP is answered.

        Args:
            now: seconds since the machine started.
        """
        while self._samples and self._samples[0].time <= now - self._seconds:
            self._samples.popleft()
        if not self._samples:
            return None
        by_tcp, by_icmp = self._round_trips(Method.TCP), self._round_trips(Method.ICMP)
        method = Method.TCP if any_answer(by_tcp) or not by_icmp else Method.ICMP
        only_tcp = not by_icmp or (any_answer(by_tcp) and not any_answer(by_icmp))
        probes = by_tcp if only_tcp else by_icmp
        answered = [value for value in (by_tcp if method is Method.TCP else by_icmp) if value is not None]
        return Figures(
            method=method,
            latency=latency(answered) if answered else None,
            loss=probes.count(None) / len(probes),
            samples=len(answered),
            time=self._samples[-1].time,
        )

    def _round_trips(self, method: Method) -> list[int | None]:
        return [sample.microseconds for sample in self._samples if sample.method is method]


def any_answer(probes: Sequence[int | None]) -> bool:
    """Whether at least one probe was answered."""
    return any(value is not None for value in probes)


def latency(round_trips: Sequence[int]) -> Latency:
    """Return what round trips in microseconds, in the order of their measurement, say together.

    Raises:
        ValueError: there are none.
    """
    ordered = sorted(round_trips)
    steps = [abs(after - before) for before, after in pairwise(round_trips)]
    return Latency(
        p50=nearest_rank(ordered, 50),
        p90=nearest_rank(ordered, 90),
        p99=nearest_rank(ordered, 99),
        jitter=round(sum(steps) / len(steps)) if steps else 0,
    )


def nearest_rank(ordered: Sequence[int], percent: int) -> int:
    """Return the least of ``ordered`` that at least ``percent`` of 100 values do not exceed.

    Raises:
        ValueError: there are no values.
    """
    if not ordered:
        raise ValueError("no values: a percentile of nothing is unknown, not 0")
    return ordered[max(0, -(len(ordered) * percent // -100) - 1)]
