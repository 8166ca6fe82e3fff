"""The scheduling cycle: one attempt to place the pods of one queue entry. No I/O of its own.

It reads: find the AppGroup, wait for missing members, plan (together or alone), hand the decisions to the binding
cycle, report the failures, decide when to try again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.scheduling import messages
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import AfterWait, PlacementConfiguration, Profile
from berth.scheduling.decision import Decision, Failure, Outcome
from berth.scheduling.messages import Message
from berth.scheduling.planner import Planner, workload_of
from berth.scheduling.queue import POD, QueueEntry, SchedulingQueue, Told, pod_order
from berth.scheduling.settling import SettlingWindow

TELL_AGAIN = 30.0
"""Seconds after which an AppGroup that still waits, and its pods, are told so again."""


class CycleListener:
    """Who acts on what the cycle finds, and tells about it; what is not overridden goes nowhere."""

    def decided(self, decision: Decision, costs: NetworkCosts) -> None:
        """A pod has a node, assumed in the cache: bind it."""

    def unschedulable(self, failure: Failure) -> None:
        """A pod has no node for now."""

    def waiting(self, pod: Pod, message: Message) -> None:
        """A pod is not planned yet, because of its AppGroup."""

    def about_pod(self, pod: Pod, message: Message) -> None:
        """Something about a waiting pod is worth telling."""

    def about_group(self, group: Group, message: Message) -> None:
        """Something about an AppGroup is worth telling."""

    def attempted(self, kind: str, result: str) -> None:
        """An entry of a kind (group, pod) was tried: placed, partly, unschedulable or waiting."""

    def planned(self, kind: str, *, pods: int, seconds: float) -> None:
        """Planning an entry of so many pods took that long."""

    def cut_short(self, kind: str) -> None:
        """The time budget ended the planning of an entry."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An entry with what its pods are placed by."""

    entry: QueueEntry
    pods: list[Pod]
    profile: Profile
    planner: Planner
    costs: NetworkCosts
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


class SchedulingCycle:
    """Schedules queue entries, one after another."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        configuration: PlacementConfiguration,
        listener: CycleListener,
        *,
        timer: Callable[[], float] = time.perf_counter,
        settling: SettlingWindow | None = None,
    ) -> None:
        """Make a planner per profile; `timer` measures planning, in seconds.

        Without `settling` no group waits for network data.
        """
        self._settling = settling
        self._cache = cache
        self._queue = queue
        self._configuration = configuration
        self._listener = listener
        self._timer = timer
        self.planners = {profile.scheduler_name: Planner(cache, profile) for profile in configuration.profiles}
        """One planner per scheduler name."""

    def schedule_one(self, entry: QueueEntry) -> None:
        """Place the entry's pods, or say why not and when to try again; its namespace is charged for the time."""
        started = self._timer()
        try:
            self._schedule(entry)
        finally:
            self._queue.charge(entry, self._timer() - started)

    def _schedule(self, entry: QueueEntry) -> None:
        attempt = self._begin(entry)
        if attempt is None:
            return
        if self._waits(attempt):
            self._listener.attempted(entry.key.kind, "waiting")
            return
        entry.told = Told()
        started = self._timer()
        outcome = self._plan(attempt)
        seconds = self._timer() - started
        self._listener.planned(entry.key.kind, pods=len(attempt.pods), seconds=seconds)
        result = "placed" if outcome.complete else "partly" if outcome.decisions else "unschedulable"
        self._listener.attempted(entry.key.kind, result)
        self._finish(attempt, outcome)

    def _begin(self, entry: QueueEntry) -> _Attempt | None:
        """None when the pods are none of our schedulers'."""
        pods = sorted(entry.pods.values(), key=lambda pod: pod_order(pod, 0))
        profile = self._configuration.profile_for(pods[0].spec.scheduler_name)
        if profile is None:
            return None
        key = entry.key.group
        return _Attempt(
            entry,
            pods,
            profile,
            self.planners[profile.scheduler_name],
            self._cache.costs_for(entry.key.namespace, profile),
            group=self._cache.groups.get(key) if key is not None else None,
            waited=self._cache.clock() - entry.first_seen,
        )

    def _waits(self, attempt: _Attempt) -> bool:
        """Whether a group is to be waited for, or its members; says so, and what is wrong with the group."""
        group, gang = attempt.group, attempt.profile.gang
        if attempt.entry.key.kind == POD:
            return False
        if group is None:
            key = attempt.entry.key
            message = messages.group_missing(key.namespace, key.name, seconds=gang.wait_seconds)
            if attempt.over:
                self._tell_pods(attempt, message)
                return False
            self._tell_waiting(attempt, message)
            self._retry_after_wait(attempt)
            return True
        if group.problem:
            self._tell_pods(attempt, messages.group_unusable(group))
            return False
        keeps = gang.after_wait is AfterWait.KEEP_WAITING
        if not self._cache.members.complete(group) and (keeps or not attempt.over):
            members = self._cache.members.of(group.key)
            missing = self._cache.members.missing(group)
            seconds = None if keeps else gang.wait_seconds
            message = messages.waiting_for_members(group, present=len(members), missing=missing, seconds=seconds)
            self._tell_waiting(attempt, message)
            if attempt.over:
                # KeepWaiting: only a new member helps, and that makes the entry active.
                self._queue.back_off(attempt.entry)
            else:
                self._retry_after_wait(attempt)
            return True
        if self._settles(attempt, group):
            return True
        if attempt.costs.absent:
            self._listener.about_group(group, messages.topology_absent(attempt.costs.missing))
        for pod in attempt.pods:
            if workload_of(pod) not in group.index:
                self._listener.about_pod(pod, messages.workload_unknown(group, workload_of(pod)))
        return False

    def _settles(self, attempt: _Attempt, group: Group) -> bool:
        """Whether the first pods of a group with dependencies wait for network data that may be on its way."""
        if self._settling is None or not group.edges:
            return False
        if any(member.node for member in self._cache.members.of(group.key)):
            return False
        identity = group.uid or group.key
        again = self._settling.look_again(identity, attempt.costs, attempt.profile.weight_sets)
        if again is not None:
            self._queue.retry_at(attempt.entry, again)
        return again is not None

    def _plan(self, attempt: _Attempt) -> Outcome:
        """Place the pods together by their group's dependencies, or one by one when there are none to go by."""
        group, planner, looked_at = attempt.usable_group, attempt.planner, attempt.entry.looked_at
        if group is None:
            pods = sorted(attempt.pods, key=lambda pod: looked_at.get(pod.metadata.uid, 0))
            return planner.place_each(pods, attempt.costs)
        if attempt.partial:
            return planner.place_group(group, attempt.pods, attempt.costs, partial=True, looked_at=looked_at)
        # What an earlier batch left over must not hold up this one, nor have it placed in part.
        left_over = attempt.entry.left_over
        batch = [pod for pod in attempt.pods if pod.metadata.uid not in left_over]
        rest = [pod for pod in attempt.pods if pod.metadata.uid in left_over]
        outcomes: list[Outcome] = []
        try:
            outcomes.extend(
                planner.place_group(group, pods, attempt.costs, partial=pods is rest, looked_at=looked_at)
                for pods in (batch, rest)
                if pods
            )
        except Exception:
            for outcome in outcomes:
                planner.forget(outcome.decisions)
            raise
        return _together(outcomes)

    def _finish(self, attempt: _Attempt, outcome: Outcome) -> None:
        """Hand over the decisions, report the failures, and see to it that the entry is tried again."""
        entry, group = attempt.entry, attempt.usable_group
        for decision in outcome.decisions:
            self._queue.delete(decision.pod.metadata.uid)
            self._listener.decided(decision, attempt.costs)
        if group is not None and len(outcome.decisions) > 1:
            nodes = len({decision.node for decision in outcome.decisions})
            message = messages.group_placed(
                pods=len(outcome.decisions), nodes=nodes, edges=outcome.edges, cost=outcome.edge_cost
            )
            self._listener.about_group(group, message)
        if outcome.cut_short:
            self._listener.cut_short(entry.key.kind)
            if group is not None:
                seconds = attempt.profile.gang.planning_seconds
                self._listener.about_group(group, messages.planning_cut_short(seconds=seconds))
        for failure in outcome.failures:
            self._listener.unschedulable(failure)
        if outcome.complete:
            entry.attempts = 0
            return
        _take_turns(entry, outcome)
        if group is not None:
            self._listener.about_group(group, messages.group_not_placed(outcome.failures[0]))
            if attempt.partial:
                entry.left_over.update(entry.pods)
        self._queue.back_off(entry)
        if group is not None and not attempt.over:
            self._retry_after_wait(attempt)

    def _retry_after_wait(self, attempt: _Attempt) -> None:
        self._queue.retry_at(attempt.entry, attempt.entry.first_seen + attempt.profile.gang.wait_seconds)

    def _tell_pods(self, attempt: _Attempt, message: Message) -> None:
        for pod in attempt.pods:
            self._listener.about_pod(pod, message)

    def _tell_waiting(self, attempt: _Attempt, message: Message) -> None:
        """Tell an AppGroup and its pods why they wait: a pod when it comes, all of them now and then."""
        entry, now = attempt.entry, self._cache.clock()
        if entry.told.reason != message.reason or now >= entry.told.until:
            entry.told = Told(message.reason, now + TELL_AGAIN)
            if attempt.group is not None:
                self._listener.about_group(attempt.group, message)
        for pod in attempt.pods:
            if pod.metadata.uid not in entry.told.pods:
                entry.told.pods.add(pod.metadata.uid)
                self._listener.waiting(pod, message)


def _take_turns(entry: QueueEntry, outcome: Outcome) -> None:
    """Have pods that were not looked at for lack of time come first in the next plan, as long as there are any."""
    unplanned = {failure.pod.metadata.uid for failure in outcome.failures if failure.unplanned}
    if not unplanned:
        entry.looked_at.clear()
        return
    number = max(entry.looked_at.values(), default=0) + 1
    entry.looked_at.update(dict.fromkeys(entry.pods.keys() - unplanned, number))


def _together(outcomes: Sequence[Outcome]) -> Outcome:
    """Outcomes of parts of an entry as one; the last one planned has seen all placed edges."""
    return Outcome(
        decisions=tuple(decision for outcome in outcomes for decision in outcome.decisions),
        failures=tuple(failure for outcome in outcomes for failure in outcome.failures),
        edges=max((outcome.edges for outcome in outcomes), default=0),
        edge_cost=max((outcome.edge_cost for outcome in outcomes), default=0.0),
        cut_short=any(outcome.cut_short for outcome in outcomes),
    )
