"""NodeResourcesFit (filter, score): requests must fit into what the node has left; emptier nodes are better.

Formulas are those of kube-scheduler, in whole numbers where it uses them. Resources other than cpu and memory take part
in scores only for pods that request them, and only where the node has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes, ScorePlugin, percentages
from berth.scheduling.framework.reasons import NODE_RESOURCES_FIT, insufficient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Bools, Floats

SCORED_RESOURCES: Mapping[str, int] = {"cpu": 1, "memory": 1}
"""Resources in scores, with their weights."""
_DEFAULTED = {"cpu": 0, "memory": 1}
_LARGEST_FOR_PERCENT = np.iinfo(np.int64).max // 100


class NodeResourcesFit(FilterPlugin, ScorePlugin):
    """Rejects nodes that lack any requested resource or have no pod slot left; LeastAllocated is its score."""

    name = NODE_RESOURCES_FIT

    def __init__(self, *, resources: Mapping[str, int] = SCORED_RESOURCES) -> None:
        """``resources`` gives the weight of each resource in the score."""
        self.resources = dict(resources)

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """One rejection per resource that is short somewhere; a request of zero always fits.

        A node that is over-committed in a resource still takes pods that do not request it.
        """
        state = cycle.cluster
        allocatable, used = state.allocatable, state.used
        pods = state.resources["pods"]
        found = [RejectedNodes(insufficient("pods"), used[:, pods] + 1 > allocatable[:, pods])]
        for name, amount in cycle.pod.template.requests:
            if name == "pods":
                continue
            column = state.resources.get(name)
            if column is None:
                found.append(RejectedNodes(insufficient(name), state.alive))
            else:
                short = amount > allocatable[:, column] - used[:, column]
                found.append(RejectedNodes(insufficient(name), short))
        return found

    @override
    def score(self, cycle: CycleState, feasible: Bools) -> Floats:
        """Mean over the resources, by weight, of (allocatable - requested) * 100 / allocatable; 0 when over-full."""
        size = cycle.cluster.size
        total, weights = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        for name, weight in self.resources.items():
            amounts = resource_amounts(name, cycle, defaults=True)
            if amounts is None:
                continue
            allocatable, used, request = amounts
            has, capacity = allocatable > 0, np.maximum(allocatable, 1)
            share = percent(np.maximum(capacity - (used + request), 0), capacity)
            total += np.where(has, share * weight, 0)
            weights += np.where(has, weight, 0)
        return (total // np.maximum(weights, 1)).astype(np.float64)

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """Raw values are percentages already."""
        return percentages(raw, feasible)


def percent(part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole percentages, rounded down; `part` is at most `whole`, which may be so large that 100 times it overflows."""
    if whole.max(initial=0) > _LARGEST_FOR_PERCENT:
        exact: NDArray[np.int64] = (part.astype(object) * 100 // whole).astype(np.int64)
        return exact
    return part * 100 // whole


def resource_amounts(
    name: str, cycle: CycleState, *, defaults: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], int] | None:
    """(allocatable, used, the pod's request) of a resource; None when it takes no part.

    ``defaults`` counts containers without requests as kube-scheduler's non-zero defaults.
    """
    state, template = cycle.cluster, cycle.pod.template
    column = state.resources.get(name)
    if column is None:
        return None
    request = dict(template.requests).get(name, 0)
    used = state.used[:, column]
    if defaults and name in _DEFAULTED:
        request = template.scoring_requests[_DEFAULTED[name]]
        used = state.nodes.scoring_used[:, _DEFAULTED[name]]
    if not request and name not in ("cpu", "memory", "ephemeral-storage"):
        return None
    return state.allocatable[:, column], used, request
