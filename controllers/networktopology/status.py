"""The status of a NetworkTopology, without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from berth.api import conditions
from berth.api.conditions import ConditionUpdate
from berth.api.networktopology import NetworkTopologyStatus
from berth.api.text import listed, shortened
from controllers.networktopology.places import Places

LONGEST_NAME: Final = 63
"""Bytes of a weight set's name that the column of weight sets shows; a status must not outgrow its object."""


def next_status(
    current: NetworkTopologyStatus,
    updates: Iterable[ConditionUpdate],
    *,
    generation: int,
    places: Places,
    names: Sequence[str],
    calculated: datetime | None,
    measured: datetime | None,
    source: str | None,
    now: datetime,
) -> NetworkTopologyStatus:
    """Return the status with updated conditions; equal to ``current`` when nothing has changed.

    Args:
        current: status of the object now; conditions that others wrote stay.
        updates: the controller's own conditions.
        generation: generation of the spec that they are of.
        places: where nodes are.
        names: names of the weight sets in the spec.
        calculated: when the computed weight sets last changed.
        measured: when the newest measurement was published.
        source: name of the source of the costs, as the annotation has it.
        now: time of a condition whose status changes.
    """
    return NetworkTopologyStatus(
        observed_generation=generation,
        node_count=len(places.nodes),
        regions=len(places.regions),
        zones=len(places.zones),
        segments=len(places.segments) or None,
        weight_sets=listed([shortened(name, LONGEST_NAME) for name in names]),
        weight_calculation_time=calculated,
        data_time=measured,
        source=source or None,
        conditions=conditions.apply(current.conditions, updates, observed_generation=generation, now=now),
    )
