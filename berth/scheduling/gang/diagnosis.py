"""Why a component has no node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.framework.rejection import Rejection, merged
from berth.scheduling.gang.outcome import Cause, Unplaced
from berth.scheduling.gang.placement_state import PlacementState

if TYPE_CHECKING:
    from berth.scheduling.gang.instance import Indices, Instance

__all__ = ["diagnose"]


def diagnose(instance: Instance, nodes: Indices, *, partial: bool) -> tuple[Unplaced, ...]:
    """Return why each component of an unplaced unit has no node, in component order.

    `nodes` (int[U], -1 for not placed) is what the strategy managed before it gave up: the units it placed count as
    placed. Without `partial` those are reported too, as waiting for the rest of the application.
    """
    placement = PlacementState(instance)
    for unit in np.flatnonzero(nodes >= 0).tolist():
        placement.place(unit, int(nodes[unit]))
    found: dict[int, Unplaced] = {}
    waiting: dict[int, tuple[Rejection, ...]] = {}
    for unit in range(instance.units):
        clash = _contradiction(instance, unit)
        rejections, open_nodes = ((), 0) if nodes[unit] >= 0 or clash is not None else _rejections(placement, unit)
        for component in instance.members(unit):
            if clash is not None:
                found[component] = Unplaced(component, Cause.CONTRADICTION, other=clash)
            elif nodes[unit] < 0 and not open_nodes:
                found[component] = Unplaced(component, Cause.NO_NODE_FITS, rejections)
            elif nodes[unit] < 0 or not partial:
                waiting[component] = rejections
    stuck = min(found, default=None)
    cause = Cause.NO_JOINT_PLACEMENT if stuck is None else Cause.WAITS_FOR
    found.update({c: Unplaced(c, cause, rejections, stuck) for c, rejections in waiting.items()})
    return tuple(found[component] for component in sorted(found))


def _contradiction(instance: Instance, unit: int) -> int | None:
    """Return the component with which one of the unit must and may not share a node."""
    pair = instance.contradiction
    return pair[1] if pair is not None and pair[0] in instance.members(unit) else None


def _rejections(placement: PlacementState, unit: int) -> tuple[tuple[Rejection, ...], int]:
    """Return which nodes reject a unit, each counted once, and how many would take it now."""
    open_nodes = np.ones(placement.instance.infrastructure.size, dtype=np.bool_)
    found: list[Rejection] = []
    for plugin, reason, mask in placement.rejections(unit):
        fresh = int((mask & open_nodes).sum())
        if fresh:
            found.append(Rejection(plugin, reason, fresh))
        open_nodes &= ~mask
    return merged(found), int(open_nodes.sum())
