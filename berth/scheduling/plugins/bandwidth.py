"""Bandwidth (filter): budgets of nodes and links must carry the pod's dependency edges."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from berth.network.arrival import over_links_on_arrival, short_on_arrival
from berth.network.peers import over_links, short_of_bandwidth
from berth.scheduling.cache.node_changes import NodePart
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes
from berth.scheduling.framework.reasons import BANDWIDTH, TOO_LITTLE_BANDWIDTH
from berth.scheduling.plugins.node_bandwidth import requested_bandwidth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.network.arrival import Amounts
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.gang.state import InfrastructureState


class Bandwidth(FilterPlugin):
    """Rejects nodes from which the edges to placed peers would exceed a node's or a link's bandwidth."""

    name = BANDWIDTH
    in_joint_plan = True
    reads = NodePart.PLACE | NodePart.LINK | NodePart.SETTINGS

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Those nodes; none for pods whose edges demand no bandwidth."""
        edges, infrastructure = cycle.edges, cycle.infrastructure
        if infrastructure is None or not (edges.bandwidth.any() or cycle.arrivals):
            return ()
        model, exact = infrastructure.infrastructure, infrastructure.exact
        if model.links is None and not exact.limited.any():
            return ()
        free = exact.bandwidth_free if cycle.names_nodes else exact.bandwidth_free - exact.bandwidth_kept
        request = requested_bandwidth(cycle.pod.template)
        if cycle.arrivals:
            return _routed(cycle, infrastructure, free, request)
        short = short_of_bandwidth(edges.nodes, edges.bandwidth, free=free - request, peers_free=free)
        rejected = [RejectedNodes(TOO_LITTLE_BANDWIDTH, short)]
        if model.links is not None:
            over = over_links(
                edges.nodes,
                edges.bandwidth,
                path=partial(model.links.path, location=model.location),
                kind=model.links.kinds(model.location),
                free=exact.link_free,
                among=cycle.asked & ~short,
            )
            rejected += [RejectedNodes(*found) for found in model.links.rejections(over, exact.link_free)]
        return rejected


def _routed(
    cycle: CycleState, infrastructure: InfrastructureState, free: Amounts, request: int
) -> Sequence[RejectedNodes]:
    """The same where Services keep some of the calls near."""
    model, alive = infrastructure.infrastructure, cycle.asked
    short = short_on_arrival(
        cycle.arrivals, location=model.location, zone=model.zone, free=free, alive=alive, request=request
    )
    rejected = [RejectedNodes(TOO_LITTLE_BANDWIDTH, short)]
    if model.links is not None:
        over = over_links_on_arrival(
            cycle.arrivals,
            location=model.location,
            zone=model.zone,
            path=partial(model.links.path, location=model.location),
            kind=model.links.kinds(model.location),
            free=infrastructure.exact.link_free,
            among=alive & ~short,
        )
        rejected += [RejectedNodes(*found) for found in model.links.rejections(over, infrastructure.exact.link_free)]
    return rejected
