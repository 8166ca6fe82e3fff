"""The scheduling cycle: one attempt to place the pods of one queue entry. No I/O of its own.

It reads: find the AppGroup, wait for missing members, plan (together or alone), hand the decisions to the binding
cycle, report the failures, decide when to try again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.network.routing import Routing
from berth.scheduling import messages
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.node_changes import NodeChange
from berth.scheduling.configuration import AfterWait, PlacementConfiguration, Profile
from berth.scheduling.decision import Decision, Failure, Outcome
from berth.scheduling.group_summary import group_summary
from berth.scheduling.messages import Message
from berth.scheduling.planner import Planner
from berth.scheduling.planning import Attempt, Planning, PlanUnderWay
from berth.scheduling.queue import FLUSH_AFTER, SchedulingQueue
from berth.scheduling.queue_entry import POD, EntryKey, QueueEntry, Told, pod_order
from berth.scheduling.replica_plan.rollout import apart, of_several_deployments
from berth.scheduling.settling import SettlingWindow, settled
from berth.scheduling.single import workload_of

TELL_GROUP_AGAIN = 30.0
"""Seconds after which an AppGroup that still waits is told so again, with the numbers of that moment."""
TELL_PODS_AGAIN = 1800.0
"""Seconds after which the pods of an AppGroup that still waits are told so again: their Events do not run out."""


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
        budget_clock: Callable[[], float] | None = None,
        settling: SettlingWindow | None = None,
    ) -> None:
        """Make a planner per profile; `timer` measures planning, and `budget_clock` when to end it, in seconds.

        Without `settling` no group waits for network data.
        """
        self._settling = settling
        self._cache = cache
        self._queue = queue
        self._configuration = configuration
        self._listener = listener
        self._timer = timer
        self._under_way: dict[EntryKey, PlanUnderWay] = {}
        self.planners = {
            profile.scheduler_name: Planner(cache, profile, budget_clock=budget_clock)
            for profile in configuration.profiles
        }
        """One planner per scheduler name."""

    def schedule_one(self, entry: QueueEntry) -> None:
        """Place the entry's pods, or say why not and when to try again; its namespace is charged for the time.

        A plan that takes long is made in several turns: the entry stays active until the last.
        """
        started = self._timer()
        try:
            self._schedule(entry)
        finally:
            self._queue.charge(entry, self._timer() - started)

    def failed(self, entry: QueueEntry) -> None:
        """An unforeseen error ended the planning of an entry: tell its pods, and try it again after its backoff."""
        self._queue.back_off(entry, early=False)
        for pod in entry.pods.values():
            self._listener.unschedulable(Failure(pod, group=entry.key.group, error=True))

    def _schedule(self, entry: QueueEntry) -> None:
        under_way = self._resumed(entry)
        if not self._queue.holds(entry):
            return
        if under_way is None:
            attempt = self._begin(entry)
            if attempt is None:
                return
            if self._hears(attempt) or self._waits(attempt):
                self._listener.attempted(entry.key.kind, "waiting")
                return
            entry.told = Told()
            under_way = PlanUnderWay(attempt, self._plan(attempt))
        started = self._timer()
        try:
            next(under_way.planning)
        except StopIteration as end:
            self._planned(under_way, end.value, under_way.seconds + self._timer() - started)
        else:
            under_way.seconds += self._timer() - started
            under_way.turns += 1
            self._under_way[entry.key] = under_way
            self._queue.put_back(entry)

    def give_up_gone(self) -> None:
        """Give up plans under way whose entries have left the queue; others may have the room that they assumed."""
        gone = [key for key, plan in self._under_way.items() if not self._queue.holds(plan.attempt.entry)]
        for key in gone:
            self._under_way.pop(key).planning.close()
        if gone:
            self._queue.move_all_to_active()

    def _resumed(self, entry: QueueEntry) -> PlanUnderWay | None:
        """The plan of the entry that is under way; one of something that has changed or gone is given up."""
        self.give_up_gone()
        plan = self._under_way.pop(entry.key, None)
        if plan is None:
            return None
        group, costs = self._group(entry), self._costs(entry, plan.attempt.profile)
        if plan.holds(entry, group, costs, self._routing(group)):
            return plan
        plan.planning.close()
        entry.active_since = self._cache.clock()  # what is edited all the time gets no turn of those that wait longer
        self._sort_out(entry)
        return None

    def _sort_out(self, entry: QueueEntry) -> None:
        """Move pods to the entries they belong to: labels may change while a plan is under way."""
        for pod in list(entry.pods.values()):
            key = EntryKey.of(pod, self._cache.members.group_of(pod.metadata.uid))
            if key != entry.key:
                self._queue.add(pod, key)

    def _planned(self, under_way: PlanUnderWay, outcome: Outcome, seconds: float) -> None:
        attempt, entry = under_way.attempt, under_way.attempt.entry
        self._listener.planned(entry.key.kind, pods=len(attempt.pods), seconds=seconds)
        result = "placed" if outcome.complete else "partly" if outcome.decisions else "unschedulable"
        self._listener.attempted(entry.key.kind, result)
        self._finish(attempt, outcome)
        if under_way.turns:
            # What came while others had their turns was not looked at: pods, and changes that may help.
            self._sort_out(entry)
            self._queue.look_again(entry)

    def _group(self, entry: QueueEntry) -> Group | None:
        key = entry.key.group
        return self._cache.groups.get(key) if key is not None else None

    def _costs(self, entry: QueueEntry, profile: Profile) -> NetworkCosts:
        return self._cache.costs_for(entry.key.namespace, profile)

    def _routing(self, group: Group | None) -> dict[str, Routing]:
        """How calls to each workload of a group that is called are routed, by its selector."""
        if group is None:
            return {}
        called = {edge.dependency for edge in group.edges}
        return {name: self._cache.services.routing(group.key, name).routing for name in called}

    def _begin(self, entry: QueueEntry) -> Attempt | None:
        """None when the pods are none of our schedulers'."""
        pods = list(entry.pods.values())
        profile = self._configuration.profile_for(pods[0].spec.scheduler_name)
        if profile is None:
            return None
        group = self._group(entry)
        return Attempt(
            entry,
            pods,
            profile,
            self.planners[profile.scheduler_name],
            self._costs(entry, profile),
            self._routing(group),
            group=group,
            waited=self._cache.clock() - entry.first_seen,
        )

    def _hears(self, attempt: Attempt) -> bool:
        """Whether LatencyPolicies of pods have to be read first, as those say where a pod is awaited.

        That is waited for once. Pods that came meanwhile are for a later plan, as they may come for ever; but the first
        pods of a group are all or nothing as long as it waits for members.
        """
        entry, unheard = attempt.entry, self._cache.state.user_latency.unheard
        if not unheard and not entry.unheard:
            return False
        came = unheard & entry.pods.keys()
        heard = [pod for pod in attempt.pods if pod.metadata.uid not in came]
        later = entry.unheard and heard and (attempt.over or not self._begins(attempt.group))
        awaited = entry.unheard & came or (set() if later else came)
        entry.unheard, attempt.pods[:] = frozenset(awaited), heard
        if came:
            self._queue.retry_at(entry, self._cache.clock() + FLUSH_AFTER, keeps_age=bool(awaited))
        return bool(awaited)

    def _waits(self, attempt: Attempt) -> bool:
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

    def refusal(self, pod: Pod, change: NodeChange) -> tuple[str, str] | None:
        """Plugin and reason why an assumed pod's node would not take it with what has changed of it; None: it would."""
        profile = self._configuration.profile_for(pod.spec.scheduler_name)
        if profile is None:
            return None
        key = self._cache.members.group_of(pod.metadata.uid)
        group = self._cache.groups.get(key) if key is not None else None
        usable = group if group is not None and not group.problem else None
        costs = self._cache.costs_for(pod.metadata.namespace, profile)
        return self.planners[profile.scheduler_name].refusal(pod, usable, costs, change)

    def _settles(self, attempt: Attempt, group: Group) -> bool:
        """Whether pods of a group with dependencies wait for more pods, or its first ones for network data.

        Says what these are planned without.
        """
        window, costs, weight_sets = self._settling, attempt.costs, attempt.profile.weight_sets
        if window is None or not group.edges:
            return False
        first = not any(member.node and not member.terminating for member in self._cache.members.of(group.key))
        identity, unserved = group.uid or group.key, self._cache.services.unserved(group) if first else []
        again = window.look_again(identity, costs, weight_sets, unserved=bool(unserved)) if first else None
        if again is None:
            entry, state = attempt.entry, self._cache.state
            # Once that is so it stays so: each pod that comes has all of them looked at.
            kept = entry.of_several and entry.gathers_since is not None
            entry.of_several = not first and (kept or of_several_deployments(group, attempt.pods, state))
            again = window.next_pod(entry, first=first)
        else:
            attempt.entry.gathers_since = None
        if again is not None:
            self._queue.retry_at(attempt.entry, again, keeps_age=True)
            return True
        weights = first and not settled(costs, weight_sets) and not costs.absent
        if (weights or unserved) and window.tell(identity):
            message = messages.network_data_missing(costs, weights=weights, unserved=unserved)
            self._listener.about_group(group, message)
        return False

    def _plan(self, attempt: Attempt) -> Planning:
        """Place the pods together by their group's dependencies, or one by one when there are none to go by."""
        group, planner, entry = attempt.usable_group, attempt.planner, attempt.entry
        looked_at = entry.looked_at
        if group is None:
            pods = sorted(attempt.pods, key=lambda pod: (looked_at.get(pod.metadata.uid, 0), pod_order(pod, 0)))
            return (yield from planner.place_each(pods, attempt.costs))
        # What an earlier batch left over must not hold up this one, nor have it placed in part.
        left_over = entry.pods if attempt.partial else entry.left_over
        batch = [pod for pod in attempt.pods if pod.metadata.uid not in left_over]
        rest = [pod for pod in attempt.pods if pod.metadata.uid in left_over]
        parts = [*((part, False) for part in apart(batch)), *((part, True) for part in apart(rest))]
        outcomes: list[Outcome] = []
        begins = self._begins(group)
        try:
            for part, partial in parts:
                if begins and not partial and outcomes and not outcomes[-1].complete:
                    # Nobody needs those that go, where those that stay have no node.
                    first = outcomes[-1].failures[0]
                    failures = (Failure(pod, group=group.key, waits_for=first) for pod in part)
                    outcomes.append(Outcome(failures=tuple(failures)))
                    continue
                planning = planner.place_group(group, part, attempt.costs, partial=partial, looked_at=looked_at)
                outcomes.append((yield from planning))
        except BaseException:
            for outcome in outcomes:
                planner.forget(outcome.decisions)
            raise
        return Outcome.together(outcomes)

    def _begins(self, group: Group | None) -> bool:
        """Whether no pod of a group has a node."""
        return group is not None and not self._cache.members.placed(group.key)

    def _finish(self, attempt: Attempt, outcome: Outcome) -> None:
        """Hand over the decisions, report the failures, and see to it that the entry is tried again."""
        entry, group = attempt.entry, attempt.usable_group
        for decision in outcome.decisions:
            uid = decision.pod.metadata.uid
            self._queue.decided(uid, left_over=attempt.partial or uid in entry.left_over)
            self._listener.decided(decision, attempt.costs)
        if group is not None and len(outcome.decisions) > 1:
            nodes = len({decision.node for decision in outcome.decisions})
            summary = group_summary(group, self._cache, attempt.planner.view, attempt.costs)
            message = messages.group_placed(pods=len(outcome.decisions), nodes=nodes, summary=summary)
            self._listener.about_group(group, message)
        if outcome.cut_short:
            self._listener.cut_short(entry.key.kind)
            if group is not None:
                seconds = attempt.profile.gang.planning_seconds
                self._listener.about_group(group, messages.planning_cut_short(seconds=seconds))
        for failure in outcome.failures:
            self._listener.unschedulable(failure)
        if outcome.complete:
            entry.attempts, entry.gathers_since = 0, None  # those that came meanwhile are a new batch
            return
        _take_turns(entry, outcome)
        if group is not None:
            self._listener.about_group(group, messages.group_not_placed(outcome.failures[0]))
            if attempt.partial:
                entry.left_over.update(entry.pods)
        self._queue.back_off(entry)
        if group is not None and not attempt.over:
            self._retry_after_wait(attempt)

    def _retry_after_wait(self, attempt: Attempt) -> None:
        attempt.entry.gathers_since = None  # further pods are not all that it waits for
        self._queue.retry_at(attempt.entry, attempt.entry.first_seen + attempt.profile.gang.wait_seconds)

    def _tell_pods(self, attempt: Attempt, message: Message) -> None:
        for pod in attempt.pods:
            self._listener.about_pod(pod, message)

    def _tell_waiting(self, attempt: Attempt, message: Message) -> None:
        """Tell an AppGroup and its pods why they wait: a pod when it comes, all of them now and then."""
        told, now = attempt.entry.told, self._cache.clock()
        if told.reason != message.reason or now >= told.pods_until:
            told = attempt.entry.told = Told(message.reason, pods_until=now + TELL_PODS_AGAIN)
        if attempt.group is not None and now >= told.group_until:
            told.group_until = now + TELL_GROUP_AGAIN
            self._listener.about_group(attempt.group, message)
        for pod in attempt.pods:
            if pod.metadata.uid not in told.pods:
                told.pods.add(pod.metadata.uid)
                self._listener.waiting(pod, message)


def _take_turns(entry: QueueEntry, outcome: Outcome) -> None:
    """Have pods that were not looked at for lack of time come first in the next plan, as long as there are any."""
    unplanned = {failure.pod.metadata.uid for failure in outcome.failures if failure.unplanned}
    if not unplanned:
        entry.looked_at.clear()
        return
    number = max(entry.looked_at.values(), default=0) + 1
    entry.looked_at.update(dict.fromkeys(entry.pods.keys() - unplanned, number))
