"""UsageThreshold (filter): nodes keep a share back from pods that do not name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.node_changes import NodePart
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes
from berth.scheduling.framework.reasons import USAGE_THRESHOLD, filled_to_threshold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.framework.cycle_state import CycleState


class UsageThreshold(FilterPlugin):
    """Rejects nodes whose usage threshold the pod would exceed; one whose own selector names nodes may."""

    name = USAGE_THRESHOLD
    in_joint_plan = True
    reads = NodePart.AMOUNTS | NodePart.SETTINGS

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Those nodes; none where no node keeps anything back."""
        infrastructure = cycle.infrastructure
        if infrastructure is None or not infrastructure.has_thresholds or cycle.names_nodes:
            return ()
        request = cycle.request
        resources = infrastructure.infrastructure.resources
        open_to_it = infrastructure.exact.open - cycle.cluster.used
        return tuple(
            RejectedNodes(filled_to_threshold(resources[r]), np.asarray(open_to_it[:, r] < request[r]))
            for r in np.flatnonzero(request > 0)
        )
