"""Interference classes from run times: of workloads alone, and beside each other.

A slowdown is the run time beside a neighbour divided by that alone. What a workload suffers from all its neighbours
says how sensitive it is, what they suffer beside it how contentious. Of both the upper whisker of a box plot counts,
the greatest slowdown that is no outlier: one odd run must not decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from berth.api.interference import InterferenceClass
from berth.api.workloadprofile import PLACES

QOS_LIMIT: Final = 1.2
"""Slowdown from which on a workload suffers, unless another is chosen."""
LEAST: Final = 0.1
"""Least slowdown that is believed."""
MOST: Final = 999
"""Greatest slowdown that is believed."""
_REACH: Final = 1.5
"""Whiskers end within this many interquartile ranges of the box."""
_ROUNDING: Final = 1e-9
"""Sums differ in their last places: a slowdown that is just where whiskers may end is no outlier."""

Times = Mapping[str, Sequence[float]]
"""Run times by workload, one or more of each, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A box plot of slowdowns; quartiles by linear interpolation."""

    values: tuple[float, ...]
    """all of them, the least first; one at least"""
    lower_whisker: float
    """least value within 1.5 interquartile ranges of the box"""
    first_quartile: float
    """a quarter of the values is less"""
    median: float
    """half of them is less"""
    third_quartile: float
    """three quarters are less"""
    whisker: float
    """greatest value within 1.5 interquartile ranges of the box: what counts"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """What is known about one workload."""

    workload: str
    """name"""
    slowdowns: Mapping[str, float]
    """what it suffers, by neighbour"""
    suffers: Spread | None
    """the same as a box plot; None: it never ran beside another"""
    causes: Spread | None
    """what its neighbours suffer; None: none that has a run time alone ran beside it"""
    interference_class: InterferenceClass | None
    """class at the limit; None: one of the two is not known"""


def slowdowns(alone: Times, beside: Mapping[str, Times]) -> dict[str, dict[str, float]]:
    """Return slowdowns by workload and neighbour, to three places; of repeated runs the median counts.

    Args:
        alone: run times alone.
        beside: run times by workload and neighbour; of a workload without a run time alone they say nothing.

    Raises:
        ValueError: a slowdown is such that the times cannot be of one unit.
    """
    found: dict[str, dict[str, float]] = {workload: {} for workload in alone}
    for workload, row in found.items():
        usual = median(alone[workload])
        for neighbour, times in beside.get(workload, {}).items():
            slowdown = median(times) / usual
            if not LEAST <= slowdown <= MOST:
                raise ValueError(
                    f"{workload} beside {neighbour} takes {slowdown:.3g} times its time alone; check the units"
                )
            row[neighbour] = round(slowdown, PLACES)
    return found


def classify(table: Mapping[str, Mapping[str, float]], limit: float = QOS_LIMIT) -> list[Classification]:
    """Return the classes of workloads, in the order of the table.

    Args:
        table: slowdowns by workload and neighbour.
        limit: slowdown from which on a workload suffers.
    """
    found = []
    for workload, row in table.items():
        column = [other[workload] for other in table.values() if workload in other]
        suffers, causes = spread(row.values()), spread(column)
        found.append(
            Classification(
                workload=workload,
                slowdowns=dict(row),
                suffers=suffers,
                causes=causes,
                interference_class=None
                if suffers is None or causes is None
                else InterferenceClass.of(sensitive=suffers.whisker >= limit, contentious=causes.whisker >= limit),
            )
        )
    return found


def spread(values: Iterable[float]) -> Spread | None:
    """Return the box plot of values; None of none."""
    ordered = sorted(values)
    if not ordered:
        return None
    first, middle, third = (_quantile(ordered, share) for share in (0.25, 0.5, 0.75))
    reach = _REACH * (third - first) + _ROUNDING
    return Spread(
        values=tuple(ordered),
        lower_whisker=min(value for value in ordered if value >= first - reach),
        first_quartile=first,
        median=middle,
        third_quartile=third,
        whisker=max(value for value in ordered if value <= third + reach),
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    value = ordered[below]
    return value + (place - below) * (ordered[min(below + 1, len(ordered) - 1)] - value)
