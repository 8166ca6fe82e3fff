"""NodeUnschedulable: cordoned nodes take only pods that tolerate being there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.kube.objects import Taint
from controllers.placement.filters.base import Filter, Rejection
from controllers.placement.state.selection import UNSCHEDULABLE_TAINT, tolerated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.placement.state.cluster import ClusterState
    from controllers.placement.state.profile import PodInfo

REASON = "node(s) were unschedulable"
_TAINT = Taint(key=UNSCHEDULABLE_TAINT, effect="NoSchedule")


class NodeUnschedulable(Filter):
    """Rejects nodes with spec.unschedulable unless the pod tolerates the taint that goes with it."""

    name = "NodeUnschedulable"

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """Cordoned nodes; none for pods that tolerate node.kubernetes.io/unschedulable:NoSchedule."""
        cordoned = state.nodes.unschedulable
        if not cordoned.any() or tolerated(info.profile.tolerations, _TAINT):
            return ()
        return (Rejection(REASON, cordoned),)
