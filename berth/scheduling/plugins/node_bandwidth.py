"""NodeBandwidth (filter, score): what a pod requests of a node's link must be free beside what calls take of it.

The link is the resource network.aware.com/bandwidth. NodeResourcesFit compares requests with requests; here what
placed dependency edges take counts as well, so that both share one budget. A node without the resource has no limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from berth.api.labels import RESOURCE_BANDWIDTH
from berth.scheduling.cache.node_changes import NodePart
from berth.scheduling.framework.plugin import MAX_SCORE, FilterPlugin, RejectedNodes, ScorePlugin, percentages
from berth.scheduling.framework.reasons import LINK_TAKEN_BY_CALLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.pod_templates import PodTemplateInfo
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Bools, Floats


def requested_bandwidth(template: PodTemplateInfo) -> int:
    """bit/s that a pod requests of its node's link, by annotations of the CNI plugin too where these count."""
    return dict(template.requests).get(RESOURCE_BANDWIDTH, 0) + template.annotated_bandwidth


class NodeBandwidth(FilterPlugin, ScorePlugin):
    """Rejects nodes whose link is too full for the pod's request; the emptier a link, the better."""

    name = "NodeBandwidth"
    reads = NodePart.LINK | NodePart.SETTINGS

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Those nodes; none for pods that request no bandwidth."""
        request, infrastructure = requested_bandwidth(cycle.pod.template), cycle.infrastructure
        if not request or infrastructure is None:
            return ()
        exact = infrastructure.exact
        free = exact.bandwidth_free if cycle.names_nodes else exact.bandwidth_free - exact.bandwidth_kept
        return (RejectedNodes(LINK_TAKEN_BY_CALLS, exact.limited & (free < request)),)

    @override
    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """Share of the link that stays free with the pod's request and calls, in percent; 100 where there is no limit.

        No opinion on pods that need no bandwidth.
        """
        request, edges, infrastructure = requested_bandwidth(cycle.pod.template), cycle.edges, cycle.infrastructure
        if infrastructure is None or not (request or edges.bandwidth.any()):
            return None
        exact = infrastructure.exact
        near = np.bincount(edges.nodes, weights=edges.bandwidth.astype(np.float64), minlength=len(exact.bandwidth))
        need = request + near.sum() - near
        share = MAX_SCORE * (exact.bandwidth_free - need) / np.maximum(exact.bandwidth, 1)
        return np.where(exact.limited, np.floor(np.clip(share, 0.0, MAX_SCORE)), MAX_SCORE)

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """Raw values are percentages already."""
        return percentages(raw, feasible)
