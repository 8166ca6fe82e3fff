"""NodeAffinity: nodeSelector and required node affinity must match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.placement.filters.base import Filter, Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.placement.state.cluster import ClusterState
    from controllers.placement.state.profile import PodInfo

REASON = "node(s) didn't match Pod's node affinity/selector"


class NodeAffinity(Filter):
    """Rejects nodes that nodeSelector or required node affinity does not select."""

    name = "NodeAffinity"

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """Nodes that are not selected; none for pods that select nothing."""
        profile = info.profile
        if not profile.node_selector and profile.required_affinity is None:
            return ()
        return (Rejection(REASON, ~state.selection.affinity(profile)),)
