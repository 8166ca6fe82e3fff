"""TaintToleration: NoSchedule and NoExecute taints must be tolerated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.plugins.base import Filter, Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState

REASON = "node(s) had untolerated taint(s)"


class TaintToleration(Filter):
    """Rejects nodes with a hard taint that no toleration of the pod covers."""

    name = "TaintToleration"

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """Nodes with untolerated taints."""
        return (Rejection(REASON, ~state.selection.tolerated(info.template)),)
