"""Kubernetes quantities as the integers that kube-scheduler counts in.

cpu is counted in thousandths of a core, everything else in whole units (bytes, devices, pods).
Like kube-scheduler's MilliValue and Value, a fraction of a unit is rounded up. Values are kept
at most 2**61, and so do tables of sums, so that adding two never overflows an int64.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from berth.api.quantity import QuantityRangeError, parse_quantity

LIMIT = 2**61
"""Greatest amount that is counted, of a pod or of all pods on a node."""
CPU = "cpu"


@lru_cache(maxsize=8192)
def _units(text: str | int | float, scale: int) -> int:
    """The quantity times ``scale``, rounded up and clamped to +-LIMIT."""
    try:
        amount = parse_quantity(str(text))
    except QuantityRangeError as error:
        amount = error.nearest
    return max(-LIMIT, min(LIMIT, math.ceil(Fraction(amount) * scale)))


def resource_units(resource: str, quantity: str | int | float) -> int:
    """A quantity of a resource in scheduler units: milli-cpu for cpu, whole units for the rest.

    Raises ValueError when the text is not a valid quantity.
    """
    return _units(quantity, 1000 if resource == CPU else 1)


def whole_units(quantity: str | int | float) -> int:
    """A quantity in whole units (bytes), rounded up."""
    return _units(quantity, 1)
