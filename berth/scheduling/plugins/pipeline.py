"""The filters in order, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.pod_templates import PodInfo
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from berth.scheduling.plugins.node_affinity import NodeAffinity
from berth.scheduling.plugins.node_declared_features import NodeDeclaredFeatures
from berth.scheduling.plugins.node_name import NodeName
from berth.scheduling.plugins.node_ports import NodePorts
from berth.scheduling.plugins.node_resources_fit import NodeResourcesFit
from berth.scheduling.plugins.node_unschedulable import NodeUnschedulable
from berth.scheduling.plugins.node_volume_limits import NodeVolumeLimits
from berth.scheduling.plugins.pod_topology_spread import PodTopologySpread
from berth.scheduling.plugins.scheduling_gates import SchedulingGates
from berth.scheduling.plugins.taint_toleration import TaintToleration
from berth.scheduling.plugins.unsupported_features import UnsupportedFeatures
from berth.scheduling.plugins.volume_binding import VolumeBinding
from berth.scheduling.plugins.volume_restrictions import VolumeRestrictions
from berth.scheduling.plugins.volume_zone import VolumeZone

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from berth.kube.objects import Pod
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.plugins.base import Filter


def default_filters() -> tuple[Filter, ...]:
    """All filters, in the order of kube-scheduler's default template."""
    return (
        UnsupportedFeatures(),
        SchedulingGates(),
        NodeUnschedulable(),
        NodeName(),
        TaintToleration(),
        NodeAffinity(),
        NodePorts(),
        NodeResourcesFit(),
        VolumeRestrictions(),
        NodeVolumeLimits(),
        VolumeBinding(),
        VolumeZone(),
        PodTopologySpread(),
        InterPodAffinity(),
        NodeDeclaredFeatures(),
    )


@dataclass(slots=True)
class FilterResult:
    """Where a pod may go, and why not elsewhere."""

    mask: Mask
    """bool[N]: node slots that every filter admits."""
    nodes: int
    """Number of live nodes that were looked at."""
    rejected: dict[str, int] = field(default_factory=dict)
    """Nodes per reason, in filter order. A node counts for the first filter that rejects it, and
    there for each of that filter's reasons."""
    rejected_by: dict[str, int] = field(default_factory=dict)
    """Nodes per filter that was the first to reject them."""
    blocker: str | None = None
    """Why the pod cannot be placed anywhere whatever the nodes; None when nodes decide."""

    @property
    def feasible(self) -> int:
        """Number of nodes that every filter admits."""
        return int(np.count_nonzero(self.mask))

    def message(self) -> str:
        """The result in the words of kube-scheduler's FailedScheduling event.

        For example ``0/24 nodes are available: 20 Insufficient cpu, 4 node(s) had untolerated
        taint(s).``
        """
        head = f"{self.feasible}/{self.nodes} nodes are available"
        if self.blocker is not None:
            return f"{head}: {self.blocker}."
        reasons = sorted(f"{count} {reason}" for reason, count in self.rejected.items())
        return f"{head}: {', '.join(reasons)}." if reasons else f"{head}."


class FilterPipeline:
    """Runs filters in order and counts rejections."""

    def __init__(self, filters: Sequence[Filter] | None = None) -> None:
        """``filters`` in the order to run; all of them by default."""
        self.filters: tuple[Filter, ...] = tuple(default_filters() if filters is None else filters)

    def evaluate(self, pod: Pod | PodInfo, state: ClusterState, *, skip: Collection[str] = ()) -> FilterResult:
        """Which nodes may take the pod.

        ``skip`` names filters to leave out, for planners that account for, say, NodeResourcesFit
        themselves while they try several pods together.
        """
        info = pod if isinstance(pod, PodInfo) else state.info(pod)
        standing: Mask = state.alive.copy()
        result = FilterResult(mask=standing, nodes=state.node_count)
        active = [rule for rule in self.filters if rule.name not in skip]
        for rule in active:
            blocker = rule.blocker(info, state)
            if blocker is not None:
                standing[:] = False
                result.blocker = blocker
                result.rejected_by[rule.name] = result.nodes
                return result
        remaining = result.nodes
        for rule in active:
            if not remaining:
                break
            effective: list[Mask] = []
            for reason, nodes in rule.rejections(info, state):
                fresh = nodes & standing
                count = int(np.count_nonzero(fresh))
                if count:
                    result.rejected[reason] = result.rejected.get(reason, 0) + count
                    effective.append(fresh)
            if not effective:
                continue
            for fresh in effective:
                standing &= ~fresh
            left = int(np.count_nonzero(standing))
            if left < remaining:
                result.rejected_by[rule.name] = remaining - left
            remaining = left
        return result
