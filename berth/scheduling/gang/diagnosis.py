"""Why a component has no node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.framework.rejection import Rejection, merged
from berth.scheduling.gang.outcome import Cause, Unplaced
from berth.scheduling.gang.placement_state import PlacementState

if TYPE_CHECKING:
    from collections.abc import Generator

    from berth.scheduling.gang.instance import Indices, Instance


def diagnose(instance: Instance, nodes: Indices, *, partial: bool) -> Generator[None, None, tuple[Unplaced, ...]]:
    """Return why each component without a node has none, in component order.

    `nodes` (int[J], -1 for not placed) is what the strategy managed before it gave up: the components it placed count
    as placed. Without `partial` those are reported too, as waiting for the rest of the application.
    """
    placement = PlacementState(instance)
    for component in np.flatnonzero(nodes >= 0).tolist():
        yield from instance.budget.pause()
        placement.place(component, int(nodes[component]))
    rejections: dict[int, tuple[Rejection, ...]] = {}
    stuck: set[int] = set()
    for component in np.flatnonzero(nodes < 0).tolist():
        yield from instance.budget.pause()
        rejections[component], open_nodes = _rejections(placement, component)
        if not open_nodes:
            stuck.add(component)
    first = min(stuck, default=None)
    waiting = Cause.NO_JOINT_PLACEMENT if first is None else Cause.WAITS_FOR
    return tuple(
        Unplaced(component, Cause.NO_NODE_FITS, rejections[component])
        if component in stuck
        else Unplaced(component, waiting, rejections.get(component, ()), first)
        for component in (sorted(rejections) if partial else range(instance.components))
    )


def _rejections(placement: PlacementState, component: int) -> tuple[tuple[Rejection, ...], int]:
    """Return which nodes reject a component, each counted once, and how many would take it now."""
    open_nodes = np.ones(placement.instance.infrastructure.size, dtype=np.bool_)
    found: list[Rejection] = []
    for plugin, reason, mask in placement.rejections(component):
        fresh = int((mask & open_nodes).sum())
        if fresh:
            found.append(Rejection(plugin, reason, fresh))
        open_nodes &= ~mask
    return merged(found), int(open_nodes.sum())
