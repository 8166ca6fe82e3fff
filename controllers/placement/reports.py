"""What the scheduling cycle finds, passed on: decisions to binding, the rest to Events, conditions and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from berth.kube.events import Note
from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.scheduling import messages
from berth.scheduling.cycle import CycleListener
from berth.scheduling.decision import Decision, Failure
from berth.scheduling.messages import Message
from controllers.placement import events
from controllers.placement.metrics import (
    ATTEMPTS,
    DECISION_SECONDS,
    DECISION_SECONDS_PER_POD,
    EDGE_COST,
    PLANS_CUT_SHORT,
)
from controllers.placement.pod_conditions import PodConditions


class CycleReports(CycleListener):
    """The cycle's listener."""

    def __init__(
        self,
        *,
        bind: Callable[[Decision, NetworkCosts], None],
        record: Callable[[Note], None],
        conditions: PodConditions,
    ) -> None:
        """Prepare.

        Args:
            bind: starts the binding of a decision.
            record: emits an Event.
            conditions: writes the pods' conditions.
        """
        self._bind = bind
        self._record = record
        self._conditions = conditions

    def decided(self, decision: Decision, costs: NetworkCosts) -> None:
        """Have it bound."""
        if decision.edges:
            EDGE_COST.observe(decision.edge_cost / decision.edges)
        self._conditions.forget(decision.pod.metadata.uid)
        self._bind(decision, costs)

    def unschedulable(self, failure: Failure) -> None:
        """Tell it in an Event and in the pod's condition."""
        self._record(events.about_pod(failure.pod, messages.failed_scheduling(failure)))
        if failure.error:
            self._conditions.failed(failure.pod, failure.message)
        else:
            self._conditions.unschedulable(failure.pod, failure.message)

    def waiting(self, pod: Pod, message: Message) -> None:
        """Tell it in an Event and in the pod's condition, in words that need no write when another pod comes."""
        message = replace(message, text=message.lasting or message.text)
        self._record(events.about_pod(pod, message))
        self._conditions.waiting(pod, reason=message.reason, message=message.text)

    def about_pod(self, pod: Pod, message: Message) -> None:
        """Tell it in an Event."""
        self._record(events.about_pod(pod, message))

    def about_group(self, group: Group, message: Message) -> None:
        """Tell it in an Event."""
        self._record(events.about_group(group, message))

    def attempted(self, kind: str, result: str) -> None:
        """Count it."""
        ATTEMPTS.labels(kind, result).inc()

    def planned(self, kind: str, *, pods: int, seconds: float) -> None:
        """Measure it."""
        DECISION_SECONDS.labels(kind).observe(seconds)
        DECISION_SECONDS_PER_POD.observe(seconds / pods)

    def cut_short(self, kind: str) -> None:
        """Count it."""
        PLANS_CUT_SHORT.labels(kind).inc()
