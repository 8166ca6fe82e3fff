"""UserLatency (score, cost): how far a pod's users are from a node, where a LatencyPolicy is about its workload.

While the latency controller awaits a pod on a node, or its plan for many users has one there, and until one is on its
way there, that node costs nothing and all others as much as anything may: the pod is the one that the controller has
asked for. A node that nobody has measured costs as much as the dearest that is.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from berth.kube.owners import owner_of
from berth.scheduling.framework.plugin import CostPlugin

if TYPE_CHECKING:
    from berth.scheduling.configuration import Profile
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Floats

ELSEWHERE: Final = 600_000.0
"""Cost of all nodes but the one that a pod is awaited on: of the longest round trip that is stated, a minute."""


class UserLatency(CostPlugin):
    """Charges the round trip to users; no opinion on pods of workloads without a policy."""

    name = "UserLatency"
    term = "userLatency"

    def __init__(self, *, score_weight: float = 20.0, cost_weight: float = 1.0) -> None:
        """Take the profile's ``weights.userLatencyScore`` and ``weights.userLatency``."""
        self.score_weight = score_weight
        self.cost_weight = cost_weight

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Weigh as the profile says."""
        weights = profile.weights
        return cls(score_weight=weights.user_latency_score, cost_weight=weights.user_latency)

    def cost(self, cycle: CycleState) -> Floats | None:
        """Cost of the round trip to users, 1 for 0.1 ms, as network costs that were measured."""
        table = cycle.cluster.user_latency
        known = table.of(owner_of(cycle.pod.pod)) if len(table) else None
        if known is None:
            return None
        costs: Floats
        # The pod of a move is told from others by its node, so those of a plan wait until it is there.
        awaited = _without_pod(cycle, known.targets) or _without_pod(cycle, known.plan)
        if awaited:
            costs = np.full(cycle.cluster.size, ELSEWHERE)
            costs[awaited] = 0.0
            return costs
        if not known.costs:
            return None
        costs = np.full(cycle.cluster.size, max(known.costs.values()))
        index = cycle.cluster.node_index
        for node, cost in known.costs.items():
            if node in index:
                costs[index[node]] = cost
        return costs


def _without_pod(cycle: CycleState, nodes: Collection[str]) -> list[int]:
    """Those of some nodes without a pod of the workload, by index."""
    index = cycle.cluster.node_index
    return [index[node] for node in nodes if node in index and not _is_there(cycle, node)]


def _is_there(cycle: CycleState, node: str) -> bool:
    """Whether a pod of the workload is on a node, or on its way: then none is awaited there any more."""
    group, there = cycle.pod.template.group_key, cycle.cluster.pods_on(node)
    return any(record.template.group_key == group and not record.terminating for record in there)
