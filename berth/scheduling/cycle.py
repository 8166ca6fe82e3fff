"""One look at one waiting unit: what is planned, what waits, what is said. No I/O of its own.

The cycle reads: find the group, wait for missing members, plan (together or alone), hand the decisions to
the binding side, report the failures, decide when to look again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import Group, GroupKey
from berth.scheduling import messages
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import AfterWait, PlacementConfiguration, Profile
from berth.scheduling.decision import Decision, Failure, Outcome
from berth.scheduling.messages import Message
from berth.scheduling.planner import Planner, workload_of
from berth.scheduling.queue import PlacementQueue, Unit, UnitKey, pod_order

GROUP_UNIT = "group"
POD_UNIT = "pod"


def unit_key(pod: Pod, group: tuple[str, str] | None) -> UnitKey:
    """The unit that a waiting pod belongs to: its AppGroup (per scheduler name), or itself."""
    if group is None:
        return (POD_UNIT, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
    return (GROUP_UNIT, group[0], group[1], pod.spec.scheduler_name)


class CycleListener(Protocol):
    """Who acts on what the cycle finds, and tells about it."""

    def decided(self, decision: Decision, costs: NetworkCosts) -> None:
        """A pod has a node, assumed in the cache: bind it."""

    def unschedulable(self, failure: Failure) -> None:
        """A pod has no node for now."""

    def about_pod(self, pod: Pod, message: Message) -> None:
        """Something about a waiting pod is worth telling."""

    def about_group(self, group: Group, message: Message) -> None:
        """Something about an AppGroup is worth telling."""

    def looked_at(self, kind: str, result: str) -> None:
        """A unit of a kind (group, pod) was looked at: placed, partly, unschedulable or waiting."""

    def planned(self, kind: str, *, pods: int, seconds: float) -> None:
        """Planning a unit of so many pods took that long."""


class SchedulingCycle:
    """Looks at units, one after another."""

    def __init__(
        self, cache: Cache, queue: PlacementQueue, configuration: PlacementConfiguration, listener: CycleListener
    ) -> None:
        """Make a planner per profile."""
        self._cache = cache
        self._queue = queue
        self._configuration = configuration
        self._listener = listener
        self.planners = {profile.scheduler_name: Planner(cache, profile) for profile in configuration.profiles}
        """One planner per scheduler name."""

    def look_at(self, unit: Unit) -> None:
        """Place the unit's pods, or say why not and when to look again."""
        pods = sorted(unit.pods.values(), key=lambda pod: pod_order(pod, 0))
        profile = self._configuration.profile_for(pods[0].spec.scheduler_name)
        if profile is None:
            return
        planner = self.planners[profile.scheduler_name]
        if unit.key[0] == POD_UNIT:
            costs = self._cache.costs_for(pods[0].metadata.namespace, profile)
            self._finish(
                unit, None, costs, self._timed(POD_UNIT, pods, lambda: planner.place_pod(pods[0], None, costs))
            )
            return
        group = self._cache.groups.get(GroupKey(unit.key[1], unit.key[2]))
        costs = self._cache.costs_for(unit.key[1], profile)
        waited = self._cache.clock() - unit.first_seen
        over = waited >= profile.gang.wait_seconds
        if group is None or group.problem:
            self._without_group(unit, pods, group, costs, planner, profile, over=over)
            return
        if not self._cache.members.complete(group):
            keep = profile.gang.after_wait is AfterWait.KEEP_WAITING
            if keep or not over:
                self._wait_for_members(unit, pods, group, profile, over=over)
                return
        for pod in pods:
            if workload_of(pod) not in group.index:
                self._listener.about_pod(pod, messages.workload_unknown(group, workload_of(pod)))
        partial = over and profile.gang.after_wait is AfterWait.PLACE_WHAT_FITS
        outcome = self._timed(GROUP_UNIT, pods, lambda: planner.place_group(group, pods, costs, partial=partial))
        self._finish(unit, group, costs, outcome)
        if not outcome.complete and not over:
            self._queue.retry_at(unit, unit.first_seen + profile.gang.wait_seconds)

    def _wait_for_members(self, unit: Unit, pods: list[Pod], group: Group, profile: Profile, *, over: bool) -> None:
        members = self._cache.members.of(group.key)
        present = {member.workload for member in members}
        missing = tuple(selector for selector in group.selectors if selector not in present)
        keeps = profile.gang.after_wait is AfterWait.KEEP_WAITING
        message = messages.waiting_for_members(
            group, present=len(members), missing=missing, seconds=None if keeps else profile.gang.wait_seconds
        )
        for pod in pods:
            self._listener.about_pod(pod, message)
        self._listener.looked_at(GROUP_UNIT, "waiting")
        if over:
            # KeepWaiting: only a new member helps, and that wakes the unit.
            self._queue.back_off(unit)
        else:
            self._queue.retry_at(unit, unit.first_seen + profile.gang.wait_seconds)

    def _without_group(
        self,
        unit: Unit,
        pods: list[Pod],
        group: Group | None,
        costs: NetworkCosts,
        planner: Planner,
        profile: Profile,
        *,
        over: bool,
    ) -> None:
        """The AppGroup is missing or broken: wait for it a while, then place its pods one by one."""
        for pod in pods:
            if group is None:
                message = messages.group_missing(pod.metadata.namespace, unit.key[2], seconds=profile.gang.wait_seconds)
            else:
                message = messages.group_unusable(group)
            self._listener.about_pod(pod, message)
        if not over and group is None:
            self._listener.looked_at(GROUP_UNIT, "waiting")
            self._queue.retry_at(unit, unit.first_seen + profile.gang.wait_seconds)
            return

        def one_by_one() -> Outcome:
            outcomes = [planner.place_pod(pod, None, costs) for pod in pods]
            return Outcome(
                decisions=tuple(decision for outcome in outcomes for decision in outcome.decisions),
                failures=tuple(failure for outcome in outcomes for failure in outcome.failures),
            )

        self._finish(unit, None, costs, self._timed(GROUP_UNIT, pods, one_by_one))

    def _finish(self, unit: Unit, group: Group | None, costs: NetworkCosts, outcome: Outcome) -> None:
        for decision in outcome.decisions:
            self._queue.remove(decision.pod.metadata.uid)
            self._listener.decided(decision, costs)
        if group is not None and len(outcome.decisions) > 1:
            nodes = len({decision.node for decision in outcome.decisions})
            message = messages.group_placed(
                pods=len(outcome.decisions), nodes=nodes, edges=outcome.edges, cost=outcome.edge_cost
            )
            self._listener.about_group(group, message)
        for failure in outcome.failures:
            self._listener.unschedulable(failure)
        if outcome.failures:
            if group is not None:
                self._listener.about_group(group, messages.group_not_placed(outcome.failures[0]))
            self._queue.back_off(unit)
        else:
            unit.attempts = 0

    def _timed(self, kind: str, pods: list[Pod], work: Callable[[], Outcome]) -> Outcome:
        started = time.perf_counter()
        outcome = work()
        self._listener.planned(kind, pods=len(pods), seconds=time.perf_counter() - started)
        result = "placed" if outcome.complete else "partly" if outcome.decisions else "unschedulable"
        self._listener.looked_at(kind, result)
        return outcome
