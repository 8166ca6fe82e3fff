"""A plan in the making, in turns: between them others are scheduled and the cluster may change."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from berth.scheduling.configuration import AfterWait, Profile
from berth.scheduling.decision import Decision, Outcome
from berth.scheduling.gang.budget import Budget
from berth.scheduling.gang.budget import finish as finish

if TYPE_CHECKING:
    from berth.kube.objects import Pod
    from berth.network.costs import NetworkCosts
    from berth.network.groups import Group
    from berth.network.routing import Routing
    from berth.scheduling.planner import Planner
    from berth.scheduling.queue_entry import QueueEntry
    from berth.scheduling.replica_plan.volume_cuts import VolumeCut

Planning = Generator[None, None, Outcome]
"""Yields where others may have a turn; returns the outcome. Closed before its end, it gives back what it assumed."""


@dataclass(slots=True)
class JointPlan:
    """The plan of an AppGroup's waiting pods in the making."""

    group: Group
    """the AppGroup"""
    costs: NetworkCosts
    """network costs of this application"""
    budget: Budget
    """time, in turns"""
    partial: bool
    """place what fits; otherwise all or nothing"""
    settled: list[Decision] = field(default_factory=list)
    """decisions that are assumed, in this order"""
    cuts: list[VolumeCut] = field(default_factory=list)
    """what plans that could not be carried out have shown"""
    ahead: bool = True
    """plan also the pods that a rolling update brings later; False once that has been in the way"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An entry with what its pods are placed by."""

    entry: QueueEntry
    """the entry"""
    pods: list[Pod]
    """its pods when the attempt began, as they came: each that comes begins one, so whoever plans puts them in order"""
    profile: Profile
    """of their scheduler name"""
    planner: Planner
    """of the profile"""
    costs: NetworkCosts
    """network costs of its application"""
    routing: Mapping[str, Routing]
    """how calls to each workload that is called are routed, by its selector"""
    group: Group | None
    """its AppGroup as it is known, None for a single pod too"""
    waited: float
    """seconds since its first pod came"""

    @property
    def over(self) -> bool:
        """True when a group has waited long enough."""
        return self.waited >= self.profile.gang.wait_seconds

    @property
    def partial(self) -> bool:
        """True when what fits of the group is placed without the rest."""
        return self.over and self.profile.gang.after_wait is AfterWait.PLACE_WHAT_FITS

    @property
    def usable_group(self) -> Group | None:
        """The AppGroup by whose dependencies the pods are placed."""
        return None if self.group is None or self.group.problem else self.group


@dataclass(slots=True)
class PlanUnderWay:
    """An attempt whose turn is over before its plan is made."""

    attempt: Attempt
    """what is planned"""
    planning: Planning
    """the plan"""
    seconds: float = 0.0
    """planning time so far"""
    turns: int = 0
    """how often others have had theirs since it began"""

    def holds(
        self, entry: QueueEntry, group: Group | None, costs: NetworkCosts, routing: Mapping[str, Routing]
    ) -> bool:
        """Whether the plan is still one of these pods as they are, by this AppGroup, these costs and Services.

        Pods that came meanwhile are for a later plan.
        """
        attempt = self.attempt
        return (
            entry is attempt.entry
            and group is attempt.group
            and costs.judges_as(attempt.costs)
            and routing == attempt.routing
            and all(_same(pod, entry.pods) for pod in attempt.pods)
        )


def _same(pod: Pod, now: Mapping[str, Pod]) -> bool:
    """Whether a pod still waits, with the same spec and labels."""
    current = now.get(pod.metadata.uid)
    return current is pod or (
        current is not None and current.spec == pod.spec and current.metadata.labels == pod.metadata.labels
    )
