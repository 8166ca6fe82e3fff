"""SchedulingGates: a pod with scheduling gates is not considered until they are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.plugins.base import Filter, Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState

REASON = "Scheduling is blocked due to non-empty scheduling gates"


class SchedulingGates(Filter):
    """Blocks gated pods."""

    name = "SchedulingGates"

    def blocker(self, info: PodInfo, state: ClusterState) -> str | None:  # noqa: ARG002
        """kube-scheduler's message for gated pods; the gates themselves stand in the pod's spec."""
        return REASON if info.pod.spec.scheduling_gates else None

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:  # noqa: ARG002
        """Gates do not depend on nodes."""
        return ()
