"""RecentlyRejected (filter): keeps a pod away from nodes whose kubelet just refused one of the same owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.framework.cycle_state import CycleState

REASON = "node(s) recently rejected a pod of the same owner"


class RecentlyRejected(FilterPlugin):
    """Rejects the nodes that ``CycleState.recently_rejected`` names."""

    name = "RecentlyRejected"

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Those nodes; none for most pods."""
        index = cycle.cluster.node_index
        slots = [index[name] for name in cycle.recently_rejected if name in index]
        if not slots:
            return ()
        nodes = np.zeros(cycle.cluster.size, dtype=np.bool_)
        nodes[slots] = True
        return (RejectedNodes(REASON, nodes),)
