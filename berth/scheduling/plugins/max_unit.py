"""MaxUnit (filter): opaque nodes, which stand for whole clusters, take no pod above their largest unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.node_changes import NodePart
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes
from berth.scheduling.framework.reasons import MAX_UNIT, above_max_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.framework.cycle_state import CycleState


class MaxUnit(FilterPlugin):
    """Rejects nodes whose annotation berth.dev/max-unit-<resource> the pod exceeds."""

    name = MAX_UNIT
    in_joint_plan = True
    reads = NodePart.SETTINGS

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Those nodes; none where no node limits its units."""
        infrastructure = cycle.infrastructure
        if infrastructure is None or not infrastructure.has_max_unit:
            return ()
        resources, request = infrastructure.infrastructure.resources, cycle.request
        max_unit = infrastructure.exact.max_unit
        return tuple(
            RejectedNodes(above_max_unit(resources[r]), np.asarray(request[r] > max_unit[:, r]))
            for r in np.flatnonzero(request > 0)
        )
