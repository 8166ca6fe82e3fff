"""Bandwidth (filter): node budgets and shared links must carry the pod's dependency edges."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from berth.network.peers import over_links, short_of_bandwidth
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes
from berth.scheduling.framework.reasons import BANDWIDTH, LINK_TOO_NARROW, TOO_LITTLE_BANDWIDTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.framework.cycle_state import CycleState


class Bandwidth(FilterPlugin):
    """Rejects nodes from which the edges to placed peers would exceed a node's or a link's bandwidth."""

    name = BANDWIDTH
    in_joint_plan = True

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Those nodes; none for pods whose edges demand no bandwidth."""
        edges, infrastructure = cycle.edges, cycle.infrastructure
        if infrastructure is None or not edges.bandwidth.any():
            return ()
        model, exact = infrastructure.infrastructure, infrastructure.exact
        if model.links is None and not exact.limited.any():
            return ()
        free = exact.bandwidth_free if cycle.names_nodes else exact.bandwidth_free - exact.bandwidth_kept
        short = short_of_bandwidth(edges.nodes, edges.bandwidth, free=free, peers_free=free)
        rejected = [RejectedNodes(TOO_LITTLE_BANDWIDTH, short)]
        if model.links is not None:
            path, among = partial(model.links.path, location=model.location), cycle.cluster.alive & ~short
            over = over_links(edges.nodes, edges.bandwidth, path=path, free=exact.link_free, among=among)
            rejected.append(RejectedNodes(LINK_TOO_NARROW, over))
        return rejected
