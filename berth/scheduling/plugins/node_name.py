"""NodeName: a pod that names its node goes there and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.framework.cycle_state import CycleState

REASON = "node(s) didn't match the requested node name"


class NodeName(FilterPlugin):
    """Rejects all nodes but spec.nodeName, which manifests may carry (pods on the API never wait with it)."""

    name = "NodeName"

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """All other nodes, when the pod names one."""
        info, state = cycle.pod, cycle.cluster
        wanted = info.pod.spec.node_name
        if not wanted:
            return ()
        others = state.alive.copy()
        slot = state.node_index.get(wanted)
        if slot is not None:
            others[slot] = False
        return (RejectedNodes(REASON, others),)
