"""NodeAffinity: nodeSelector and required node affinity must match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.plugins.base import Filter, Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState

REASON = "node(s) didn't match Pod's node affinity/selector"


class NodeAffinity(Filter):
    """Rejects nodes that nodeSelector or required node affinity does not select."""

    name = "NodeAffinity"

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """Nodes that are not selected; none for pods that select nothing."""
        template = info.template
        if not template.node_selector and template.required_affinity is None:
            return ()
        return (Rejection(REASON, ~state.selection.affinity(template)),)
