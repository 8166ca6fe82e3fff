"""What is simulated: eight clusters and one user, as published, and what was published of them."""

from __future__ import annotations

import random
from math import exp
from typing import Final, NamedTuple

SERVICE: Final = 4.0
"""Milliseconds that a request takes beside the round trip."""


class Scenario(NamedTuple):
    """Round trips of one user to eight clusters."""

    name: str
    """S1 to S3"""
    latencies: tuple[int, ...]
    """milliseconds, by cluster"""
    hard: int
    """hard limit in milliseconds"""
    soft: int
    """soft limit in milliseconds"""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the clusters."""
        return tuple(f"c{number}" for number in range(len(self.latencies)))

    @property
    def nearest(self) -> float:
        """Milliseconds, halfway between the nearest cluster and the next."""
        first, second, *_ = sorted(self.latencies)
        return (first + second) / 2


SCENARIOS: Final = (
    Scenario("S1", (70, 100, 120, 150, 35, 36, 15, 21), 40, 30),
    Scenario("S2", (100, 120, 150, 35, 36, 70, 15, 21), 80, 30),
    Scenario("S3", (100, 150, 200, 50, 60, 70, 15, 21), 80, 30),
)


class Published(NamedTuple):
    """A cell of the published table; means of 100 runs."""

    latency: float
    """milliseconds that the user saw"""
    convergence: float
    """seconds until it was within the limit"""
    success: int
    """percent"""


PUBLISHED: Final[dict[str, tuple[Published, ...]]] = {
    "LAIS-H": (Published(30.07, 19.34, 75), Published(37.42, 16.19, 76), Published(45.26, 10.89, 78)),
    "LAIS-S": (Published(21.56, 65.33, 100), Published(21.34, 62.09, 100), Published(21.85, 46.59, 100)),
    "LAIS-0": (Published(19.26, 242.65, 100), Published(19.63, 241.83, 100), Published(19.86, 241.37, 100)),
}
"""By rule, then by scenario."""
PUBLISHED_RUNS: Final = 100
"""Runs behind each published mean."""


class Noise(NamedTuple):
    """What a round trip varies by."""

    jitter: float
    """standard deviation of its logarithm"""
    spikes: float = 0.0
    """share that takes three times as long"""

    def apply(self, milliseconds: float, chance: random.Random) -> float:
        """Return one round trip of a path."""
        drawn = milliseconds * exp(chance.gauss(0, self.jitter))
        return drawn * 3 if self.spikes and chance.random() < self.spikes else drawn
