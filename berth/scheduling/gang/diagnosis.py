"""Why a component has no node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.gang.outcome import Unplaced
from berth.scheduling.gang.placement_state import PlacementState

if TYPE_CHECKING:
    from berth.scheduling.gang.instance import Indices, Instance

__all__ = ["diagnose"]


def diagnose(instance: Instance, nodes: Indices, *, partial: bool) -> tuple[Unplaced, ...]:
    """Return why each component of an unplaced unit has no node, in component order.

    `nodes` (int[U], -1 for not placed) is what the strategy managed before it gave up: the units it placed count as
    placed. Without `partial` those are reported too, as waiting for the rest of the group.
    """
    placement = PlacementState(instance)
    for unit in np.flatnonzero(nodes >= 0).tolist():
        placement.place(unit, int(nodes[unit]))
    found: dict[int, Unplaced] = {}
    stuck: list[int] = []
    for unit in np.flatnonzero(nodes < 0).tolist():
        reason, rejected = _reason(instance, placement, unit)
        if reason:
            stuck.append(unit)
        for component in instance.members(unit):
            found[component] = Unplaced(component, reason or "", rejected)
    names = instance.application.names
    first = names[instance.members(stuck[0])[0]] if stuck else ""
    waiting = f"the group is placed as a whole and {first} fits nowhere" if first else "no joint placement was found"
    for component, entry in list(found.items()):
        if not entry.reason:
            found[component] = Unplaced(component, waiting, entry.rejected)
    if not partial:
        for component in np.flatnonzero(nodes[instance.unit_of] >= 0).tolist():
            found[component] = Unplaced(component, waiting)
    return tuple(found[component] for component in sorted(found))


def _reason(instance: Instance, placement: PlacementState, unit: int) -> tuple[str | None, dict[str, int]]:
    """Return the sentence and the counts for one unit; no sentence when some node would take it now."""
    if instance.contradiction is not None:
        pair = instance.contradiction
        names = instance.application.names
        if pair[0] in instance.members(unit):
            return f"{names[pair[0]]} and {names[pair[1]]} must share a node and may not", {}
    count = instance.infrastructure.size
    if count == 0:
        return "there are no nodes", {}
    open_nodes = np.ones(count, dtype=np.bool_)
    rejected: dict[str, int] = {}
    for rule, mask in placement.rejections(unit):
        fresh = int((mask & open_nodes).sum())
        if fresh:
            rejected[rule] = rejected.get(rule, 0) + fresh
        open_nodes &= ~mask
    if open_nodes.any():
        return None, rejected
    parts = sorted(rejected.items(), key=lambda item: (-item[1], item[0]))
    return f"0/{count} nodes: " + ", ".join(f"{number} {rule}" for rule, number in parts), rejected
