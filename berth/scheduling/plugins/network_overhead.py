"""NetworkOverhead (filter, score, cost): close to the pods it talks to, never beyond maxNetworkCost.

Filter and score follow the plugin of that name (sig-scheduling KEP 260), with its known weaknesses mended: edges count
in both directions, and a call beyond its maxNetworkCost rules a node out, however many other calls would be satisfied.
Only calls count that the called workload's Service really sends there (`berth.network.limits`). In the score a pair
whose cost is not known costs 100, as there; everywhere else more than any known one (`berth.network.costs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from typing_extensions import override

from berth.network.limits import nodes_beyond_limits
from berth.network.peers import cost_towards
from berth.scheduling.cache.node_changes import NodePart
from berth.scheduling.framework.plugin import CostPlugin, FilterPlugin, RejectedNodes
from berth.scheduling.framework.reasons import MAX_NETWORK_COST_EXCEEDED, NETWORK_OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from berth.scheduling.configuration import Profile
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Bools, Floats
    from berth.scheduling.gang.problem import Infrastructure


class NetworkOverhead(FilterPlugin, CostPlugin):
    """Rejects nodes too far from placed peers; charges the network cost of the edges to them."""

    name = NETWORK_OVERHEAD
    term = "network"
    in_joint_plan = True
    reads = NodePart.PLACE
    in_objective = True

    def __init__(self, *, score_weight: float = 5.0) -> None:
        """``score_weight`` is the profile's ``weights.networkScore``."""
        self.score_weight = score_weight

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Weigh the score as the profile says."""
        return cls(score_weight=profile.weights.network_score)

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes on which some call would go beyond its limit that does not now."""
        infrastructure = cycle.infrastructure
        if infrastructure is None or not cycle.limits:
            return ()
        model = infrastructure.infrastructure
        beyond = nodes_beyond_limits(
            cycle.limits, location=model.location, location_cost=model.location_cost, zone=model.zone
        )
        return (RejectedNodes(MAX_NETWORK_COST_EXCEEDED, beyond),)

    def cost(self, cycle: CycleState) -> Floats | None:
        """Summed network cost of the edges; nothing is charged without any."""
        return cycle.once(self.name, lambda: _summed(cycle, lambda model: model.location_cost))

    @override
    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """The same over the costs that scores read."""
        return _summed(cycle, lambda model: model.score_cost)


def _summed(cycle: CycleState, costs_of: Callable[[Infrastructure], Floats]) -> Floats | None:
    edges, infrastructure = cycle.edges, cycle.infrastructure
    if infrastructure is None or not len(edges):
        return None
    model = infrastructure.infrastructure
    outward = np.where(edges.outward, edges.count, 0.0)
    return cost_towards(
        edges.nodes, outward, edges.count - outward, location=model.location, location_cost=costs_of(model)
    )
