"""NodeUnschedulable: cordoned nodes take only pods that tolerate being there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.kube.objects import Taint
from berth.scheduling.cache.selection import UNSCHEDULABLE_TAINT, tolerated
from berth.scheduling.plugins.base import Filter, Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState

REASON = "node(s) were unschedulable"
_TAINT = Taint(key=UNSCHEDULABLE_TAINT, effect="NoSchedule")


class NodeUnschedulable(Filter):
    """Rejects nodes with spec.unschedulable unless the pod tolerates the taint that goes with it."""

    name = "NodeUnschedulable"

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """Cordoned nodes; none for pods that tolerate node.kubernetes.io/unschedulable:NoSchedule."""
        cordoned = state.nodes.unschedulable
        if not cordoned.any() or tolerated(info.template.tolerations, _TAINT):
            return ()
        return (Rejection(REASON, cordoned),)
