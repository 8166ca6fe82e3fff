"""SchedulingGates: a pod with scheduling gates is not considered until they are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.framework.plugin import FilterPlugin

if TYPE_CHECKING:
    from berth.scheduling.framework.cycle_state import CycleState

REASON = "Scheduling is blocked due to non-empty scheduling gates"


class SchedulingGates(FilterPlugin):
    """Blocks gated pods."""

    name = "SchedulingGates"

    def pre_filter(self, cycle: CycleState) -> str | None:
        """kube-scheduler's message for gated pods; the gates themselves stand in the pod's spec."""
        info = cycle.pod
        return REASON if info.pod.spec.scheduling_gates else None
