"""One look at one waiting unit: what is planned, what waits, what is said. No I/O of its own.

The cycle reads: find the group, wait for missing members, plan (together or alone), hand the decisions to
the binding side, report the failures, decide when to look again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from berth.kube.events import Note
from berth.kube.objects import Pod
from controllers.placement import events
from controllers.placement.cluster import ClusterPicture
from controllers.placement.config import AfterWait, PlacementConfiguration, Profile
from controllers.placement.metrics import ATTEMPTS, DECISION_SECONDS, DECISION_SECONDS_PER_POD, EDGE_COST
from controllers.placement.network.costs import NetworkCosts
from controllers.placement.network.groups import Group
from controllers.placement.planning.decision import Decision, Outcome
from controllers.placement.planning.planner import Planner, workload_of
from controllers.placement.queue import PlacementQueue, Unit, UnitKey, pod_order

GROUP_UNIT = "group"
POD_UNIT = "pod"


def unit_key(pod: Pod, group: tuple[str, str] | None) -> UnitKey:
    """The unit that a waiting pod belongs to: its AppGroup (per scheduler name), or itself."""
    if group is None:
        return (POD_UNIT, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
    return (GROUP_UNIT, group[0], group[1], pod.spec.scheduler_name)


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where the cycle's results go."""

    bind: Callable[[Decision, NetworkCosts], None]
    """start writing a decision"""
    note: Callable[[Note], None]
    """emit an Event"""
    unschedulable: Callable[[Pod, str], None]
    """set the pod's condition PodScheduled to False"""


class SchedulingCycle:
    """Looks at units, one after another."""

    def __init__(
        self, picture: ClusterPicture, queue: PlacementQueue, configuration: PlacementConfiguration, outlet: Outlet
    ) -> None:
        """Make a planner per profile."""
        self._picture = picture
        self._queue = queue
        self._configuration = configuration
        self._outlet = outlet
        self.planners = {
            profile.scheduler_name: Planner(
                picture.state,
                picture.members,
                picture.groups,
                profile,
                ledger=picture.ledger,
                avoided=picture.avoided_nodes,
            )
            for profile in configuration.profiles
        }
        """One planner per scheduler name."""

    def look_at(self, unit: Unit) -> None:
        """Place the unit's pods, or say why not and when to look again."""
        pods = sorted(unit.pods.values(), key=lambda pod: pod_order(pod, 0))
        profile = self._configuration.profile_for(pods[0].spec.scheduler_name)
        if profile is None:
            return
        planner = self.planners[profile.scheduler_name]
        if unit.key[0] == POD_UNIT:
            costs = self._picture.costs_for(pods[0].metadata.namespace, profile)
            self._finish(
                unit, None, costs, self._timed(POD_UNIT, pods, lambda: planner.place_pod(pods[0], None, costs))
            )
            return
        group = self._picture.groups.get((unit.key[1], unit.key[2]))
        costs = self._picture.costs_for(unit.key[1], profile)
        waited = self._picture.clock() - unit.first_seen
        over = waited >= profile.gang.wait_seconds
        if group is None or group.problem:
            self._without_group(unit, pods, group, costs, planner, profile, over=over)
            return
        if not self._picture.members.complete(group):
            keep = profile.gang.after_wait is AfterWait.KEEP_WAITING
            if keep or not over:
                self._wait_for_members(unit, pods, group, profile, over=over)
                return
        for pod in pods:
            if workload_of(pod) not in group.index:
                self._outlet.note(events.workload_unknown(pod, group, workload_of(pod)))
        partial = over and profile.gang.after_wait is AfterWait.PLACE_WHAT_FITS
        outcome = self._timed(GROUP_UNIT, pods, lambda: planner.place_group(group, pods, costs, partial=partial))
        self._finish(unit, group, costs, outcome)
        if not outcome.complete and not over:
            self._queue.retry_at(unit, unit.first_seen + profile.gang.wait_seconds)

    def _wait_for_members(self, unit: Unit, pods: list[Pod], group: Group, profile: Profile, *, over: bool) -> None:
        members = self._picture.members.of(group.key)
        present = {member.workload for member in members}
        missing = tuple(selector for selector in group.selectors if selector not in present)
        for pod in pods:
            self._outlet.note(
                events.waiting_for_members(
                    pod,
                    group,
                    present=len(members),
                    missing=missing,
                    seconds=None if profile.gang.after_wait is AfterWait.KEEP_WAITING else profile.gang.wait_seconds,
                )
            )
        ATTEMPTS.labels(GROUP_UNIT, "waiting").inc()
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
                note = events.group_missing(pod, unit.key[2], seconds=profile.gang.wait_seconds)
            else:
                note = events.group_unusable(pod, group)
            self._outlet.note(note)
        if not over and group is None:
            ATTEMPTS.labels(GROUP_UNIT, "waiting").inc()
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
            if decision.edges:
                EDGE_COST.observe(decision.edge_cost / decision.edges)
            self._outlet.bind(decision, costs)
        if group is not None and len(outcome.decisions) > 1:
            nodes = len({decision.node for decision in outcome.decisions})
            self._outlet.note(
                events.group_placed(
                    group, pods=len(outcome.decisions), nodes=nodes, edges=outcome.edges, cost=outcome.edge_cost
                )
            )
        for failure in outcome.failures:
            self._outlet.note(events.failed(failure))
            self._outlet.unschedulable(failure.pod, failure.message)
        if outcome.failures:
            if group is not None:
                self._outlet.note(events.group_not_placed(group, outcome.failures[0]))
            self._queue.back_off(unit)
        else:
            unit.attempts = 0

    @staticmethod
    def _timed(kind: str, pods: list[Pod], work: Callable[[], Outcome]) -> Outcome:
        started = time.perf_counter()
        outcome = work()
        seconds = time.perf_counter() - started
        DECISION_SECONDS.labels(kind).observe(seconds)
        DECISION_SECONDS_PER_POD.observe(seconds / len(pods))
        result = "placed" if outcome.complete else "partly" if outcome.decisions else "unschedulable"
        ATTEMPTS.labels(kind, result).inc()
        return outcome
