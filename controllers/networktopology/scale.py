"""The scale of measured costs: how many microseconds of latency cost 1.

A cost is the latency in units, rounded up: what is farther never costs less, and nothing that was measured costs 0. At
least 1, because 1 is what it costs to stay inside a zone (NetworkOverhead's rule) and leaving it is never cheaper. At
most 10,000, because no maxNetworkCost can state more.
"""

from __future__ import annotations

from typing import Final

COST_UNIT: Final = 100
"""Microseconds that cost 1, unless set otherwise: whole milliseconds leave a third of real zone pairs at the cost 1."""
MINIMUM_COST: Final = 1
"""Least cost between two different places."""
MAX_MEASURED_COST: Final = 10_000
"""Greatest cost of a measured latency."""


def to_cost(microseconds: int, unit: int) -> int:
    """Return the cost of a latency; ``unit`` is the microseconds that cost 1."""
    cost = -(microseconds // -unit)
    if cost < MINIMUM_COST:
        return MINIMUM_COST
    return min(cost, MAX_MEASURED_COST)
