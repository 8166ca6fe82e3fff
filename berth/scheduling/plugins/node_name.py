"""NodeName: a pod that names its node goes there and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.plugins.base import Filter, Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState

REASON = "node(s) didn't match the requested node name"


class NodeName(Filter):
    """Rejects all nodes but spec.nodeName, which manifests may carry (pods on the API never wait with it)."""

    name = "NodeName"

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """All other nodes, when the pod names one."""
        wanted = info.pod.spec.node_name
        if not wanted:
            return ()
        others = state.alive.copy()
        slot = state.node_index.get(wanted)
        if slot is not None:
            others[slot] = False
        return (Rejection(REASON, others),)
