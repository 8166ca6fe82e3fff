"""NodeUnschedulable: cordoned nodes take only pods that tolerate being there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.kube.objects import Taint
from berth.scheduling.cache.selection import UNSCHEDULABLE_TAINT, tolerated
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.framework.cycle_state import CycleState

REASON = "node(s) were unschedulable"
CORDON = Taint(key=UNSCHEDULABLE_TAINT, effect="NoSchedule")
"""The taint that stands for spec.unschedulable."""


class NodeUnschedulable(FilterPlugin):
    """Rejects nodes with spec.unschedulable unless the pod tolerates the taint that goes with it."""

    name = "NodeUnschedulable"

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Cordoned nodes; none for pods that tolerate node.kubernetes.io/unschedulable:NoSchedule."""
        info, state = cycle.pod, cycle.cluster
        cordoned = state.nodes.unschedulable
        if not cordoned.any() or tolerated(info.template.tolerations, CORDON):
            return ()
        return (RejectedNodes(REASON, cordoned),)
