"""NodeVolumeLimits: how many CSI volumes a node can attach."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.csi_volumes import csi_volumes
from berth.scheduling.cache.volumes import claim_keys
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.framework.cycle_state import CycleState

REASON = "node(s) exceed max volume count"


class NodeVolumeLimits(FilterPlugin):
    """Rejects nodes whose CSINode allows fewer volumes of a driver than the pod would bring it to."""

    name = "NodeVolumeLimits"

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes at their limit; none for pods without claims."""
        info, state = cycle.pod, cycle.cluster
        wanted = csi_volumes(claim_keys(info.pod), state.volumes)
        if not wanted or not state.volumes.csi_nodes:
            return ()
        full = np.zeros(state.size, dtype=np.bool_)
        for driver, number in Counter(wanted.values()).items():
            left = state.attached.left(driver)
            if left is None:
                continue
            for slot in np.flatnonzero(left < number).tolist():
                used = state.attached.used(slot)
                # A volume that a pod on the node uses already is not new; one that is only attached still is.
                new = sum(1 for volume, owner in wanted.items() if owner == driver and volume not in used)
                full[slot] |= new > 0 and new > left[slot]
        return (RejectedNodes(REASON, full),)
