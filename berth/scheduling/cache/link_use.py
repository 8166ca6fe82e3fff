"""What node agents measured on the nodes' links: mean and deviation of use, until it is too old."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from berth.api.base import read_timestamp
from berth.kube.probe_reports import LinkReport

Floats = npt.NDArray[np.float64]
MAX_AGE = 600.0
"""Seconds after which a report has no agent any more."""
CLOCK_TOLERANCE: Final = 60.0
"""Seconds by which a node's clock may be ahead."""


class LinkUse(NamedTuple):
    """Use of one node's link over the last minutes, in bit/s of the busier direction."""

    mean: float
    deviation: float
    capacity: float | None
    """what the link carries; None where the report does not say"""


class LinkUseTable:
    """Fed with what reports say, and how old that is."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start empty; `clock` is monotonic time."""
        self._clock = clock
        self._nodes: dict[str, tuple[LinkUse, float]] = {}

    def read(self, report: LinkReport, now: datetime) -> None:
        """Take in a report as it is now; one of no time, or of the future, says nothing."""
        use, written = _use(report), read_timestamp(report.status.time)
        age = None if written is None else (now - written).total_seconds()
        if use is None or age is None or age < -CLOCK_TOLERANCE:
            self.delete(report.metadata.name)
        else:
            self.update(report.metadata.name, use, age=age)

    def update(self, node: str, use: LinkUse, *, age: float) -> None:
        """A node's report is so many seconds old; one that is too old says nothing."""
        if age < MAX_AGE:
            self._nodes[node] = use, self._clock() + MAX_AGE - max(age, 0.0)
        else:
            self.delete(node)

    def delete(self, node: str) -> None:
        """A node has no report, or one that says nothing of its link."""
        self._nodes.pop(node, None)

    def arrays(self, index: Mapping[str, int], size: int) -> tuple[Floats, Floats, Floats]:
        """Return mean, deviation and capacity as float64[N] each; NaN where nothing is known, or not any more.

        Args:
            index: slot of each node by name.
            size: number of slots N.
        """
        mean, deviation, capacity = (np.full(size, np.nan) for _ in range(3))
        now = self._clock()
        for name, (use, until) in self._nodes.items():
            slot = index.get(name)
            if slot is not None and now < until:
                mean[slot], deviation[slot] = use.mean, use.deviation
                if use.capacity is not None:
                    capacity[slot] = use.capacity
        return mean, deviation, capacity


def _use(report: LinkReport) -> LinkUse | None:
    found = report.status.bandwidth
    if found is None or found.mean_bits_per_second is None or found.mean_bits_per_second < 0:
        return None
    capacity = found.capacity_bits_per_second or 0
    deviation = max(found.deviation_bits_per_second or 0, 0)
    return LinkUse(float(found.mean_bits_per_second), float(deviation), float(capacity) if capacity > 0 else None)
