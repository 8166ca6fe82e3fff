"""The plan: the controller's own cache, queue and cycle, fed once, on a clock that skips the waits.

The clock stands still while entries are scheduled, so every group is first planned all or nothing, as in a cluster
where all pods come at once. Then it skips to the end of the longest wait, and what is left gets its second chance
under the rules of ``gang.afterWait``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import get_args

from berth.api.interference import stated_class
from berth.kube.objects import CustomObject, Namespace, Node, ObjectMeta, Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import Group, GroupKey
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.large_pods import cut_down
from berth.scheduling.cache.pod_templates import PodTemplateInfo
from berth.scheduling.cache.volumes import StorageObject
from berth.scheduling.configuration import PlacementConfiguration
from berth.scheduling.cycle import CycleListener, SchedulingCycle
from berth.scheduling.decision import Decision, Failure
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.gang.infrastructure import read_settings
from berth.scheduling.messages import ABSENT, CUT_SHORT, Message, failed_scheduling
from berth.scheduling.plugins.node_affinity import NodeAffinity
from berth.scheduling.plugins.taint_toleration import TaintToleration
from berth.scheduling.queue import SchedulingQueue
from berth.scheduling.queue_entry import EntryKey, QueueEntry
from berth.scheduling.simulation.budget_clock import BudgetClock
from berth.scheduling.simulation.daemons import add_daemon_tolerations, pin_to_node
from berth.scheduling.simulation.defaults import DEFAULT_SCHEDULER, default_namespace
from berth.scheduling.simulation.inputs import Inputs
from berth.scheduling.turns import selects

Progress = Callable[[str, int, int], None]
"""(what is done, how much of it, of how much; 0 when that is not known)."""
FEW = 16
"""Templates of pods that have got a node since, of which it is asked whom they help: with more, all are tried again."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod with the node it would get."""

    decision: Decision
    """as the controller would write it"""
    costs: NetworkCosts
    """the network costs it was made with"""
    waited: float
    """seconds of the group's wait that had to run out first"""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A pod without a node."""

    pod: Pod
    """the pod"""
    reason: str
    """reason of its Event: FailedScheduling, WaitingForMembers, ..."""
    message: str
    """why, in one sentence"""


@dataclass(slots=True)
class Simulation:
    """What came of a plan."""

    cache: Cache
    """the cluster afterwards, planned pods counted as placed"""
    configuration: PlacementConfiguration
    """profiles it was made with"""
    placed: list[Placed] = field(default_factory=list)
    """in the order of the decisions"""
    unplaced: list[Unplaced] = field(default_factory=list)
    """by namespace and name"""
    groups: dict[GroupKey, str] = field(default_factory=dict)
    """AppGroups that planned pods belong to, sorted, with the scheduler name of these pods"""
    ignored: Counter[str] = field(default_factory=Counter)
    """waiting pods of other schedulers by scheduler name"""
    notes: list[str] = field(default_factory=list)
    """warnings about nodes, groups and topologies"""


class _Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class _Planner(CycleListener):
    """One plan."""

    def __init__(
        self, configuration: PlacementConfiguration, *, all_pods: bool, seconds: float, progress: Progress
    ) -> None:
        self._clock = _Clock()
        self._seconds = seconds
        self._budgets = BudgetClock(seconds)
        self._configuration = configuration
        self._all_pods = all_pods
        self._progress = progress
        state = ClusterState(
            count_annotations=configuration.count_cni_bandwidth,
            class_label=configuration.interference_class_label,
            policies=configuration.interference_policies,
        )
        self._cache = Cache(clock=self._clock, state=state)
        self._queue = SchedulingQueue(clock=self._clock, groups=self._cache.groups)
        self._cycle = SchedulingCycle(
            self._cache, self._queue, configuration, self, timer=self._clock, budget_clock=self._budgets
        )
        self._notes: dict[str, None] = {}
        self._why: dict[str, Message] = {}
        self._waiting: dict[str, Pod] = {}
        self._unclear: defaultdict[str, list[str]] = defaultdict(list)
        """Names of pods by what is wrong with their class."""
        self._compiled: dict[str, PodTemplateInfo] = {}
        self.result = Simulation(self._cache, configuration)

    def feed(self, inputs: Inputs) -> None:
        """Tell the cache of every object, as the watches would."""
        cache = self._cache
        nodes: list[Node] = inputs.of("Node")
        for number, node in enumerate(nodes):
            cache.update_node(node)
            self.result.notes += read_settings(node).problems
            if number % 500 == 0:
                self._progress("reading nodes", number, len(nodes))
        namespaces: list[Namespace] = inputs.of("Namespace")
        stated = {namespace.metadata.name for namespace in namespaces}
        others = sorted({pod.metadata.namespace for pod in inputs.of("Pod")} - stated)
        for namespace in (*namespaces, *(Namespace(metadata=ObjectMeta(name=name)) for name in others)):
            default_namespace(namespace)
            cache.update_namespace(namespace)
        for kind in get_args(StorageObject):
            for item in inputs.of(kind.__name__):
                cache.update_storage(item)
        for item in inputs.of("Service"):
            cache.update_service(item)
        for item in inputs.of("AppGroup"):
            cache.update_group(item)
        for item in inputs.of("NetworkTopology"):
            problem, _ = cache.update_topology(item)
            if problem is not None:
                self.result.notes.append(f"NetworkTopology ignored: {problem}")
        reports, now = inputs.measured
        if now is not None:
            for report in reports:
                cache.link_use.read(report, now)
        if cache.state.policies:
            for item in inputs.of("SocketStatus"):
                self._note("SocketStatus", item, cache.update_sockets(item))
            for item in inputs.of("WorkloadProfile"):
                self._note("WorkloadProfile", item, cache.update_profile(item))
        pods = [*inputs.of("Pod"), *self._daemons(inputs)]
        # Pods that have a node come first, as in the first list of a controller: waiting ones see their room taken.
        for number, pod in enumerate(sorted(pods, key=lambda item: not item.spec.node_name)):
            self._update_pod(pod)
            if number % 500 == 0:
                self._progress("reading pods", number, len(pods))
        for problem, (first, *others) in self._unclear.items():
            pods_are = f"{1 + len(others)} pods, such as {first}" if others else f"pod {first}"
            self.result.notes.append(f"{pods_are}: {problem}")

    def _note(self, kind: str, item: CustomObject, problem: str | None) -> None:
        if problem is not None:
            self.result.notes.append(f"{kind} {item.metadata.name} is not used, or not in full: {problem}")

    def _daemons(self, inputs: Inputs) -> list[Pod]:
        """A pod for every node that a DaemonSet's template admits and that has none of it yet."""
        state = self._cache.state
        made: list[Pod] = []
        for workload in inputs.per_node:
            template = workload.pod(0, name="template")
            add_daemon_tolerations(template)
            cycle = CycleState(state.info(template), state)
            mask = NodeAffinity().mask(cycle) & TaintToleration().mask(cycle)
            covered = {
                pod.spec.node_name
                for pod in inputs.of("Pod")
                if workload.selects is not None
                and pod.metadata.namespace == workload.namespace
                and workload.selects.matches(pod.metadata.labels)
            }
            for name, slot in state.node_index.items():
                if not mask[slot] or name in covered:
                    continue
                pod = workload.pod(0, name=f"{workload.origin.partition('/')[2]}-{name}")
                add_daemon_tolerations(pod)
                pod.metadata.uid = f"Pod/{pod.key}"
                pod.metadata.creation_timestamp = template.metadata.creation_timestamp
                # kube-controller-manager's way of saying which node a DaemonSet's pod is for.
                pin_to_node(pod, name)
                inputs.origins[pod.key] = workload.origin
                made.append(pod)
        return made

    def _update_pod(self, pod: Pod) -> None:
        cut_down(pod)
        spec = pod.spec
        ours = self._configuration.profile_for(spec.scheduler_name) is not None
        if self._all_pods and not ours and not spec.node_name:
            spec.scheduler_name = self._configuration.profiles[0].scheduler_name
            ours = True
        waits = not spec.node_name and not pod.finished and pod.metadata.deletion_timestamp is None
        if waits and not ours:
            # Another scheduler's: nobody knows where it will go, and no group waits for it.
            self.result.ignored[spec.scheduler_name or DEFAULT_SCHEDULER] += 1
            return
        if waits and spec.scheduler_name in self._cache.state.policies:
            unclear = stated_class(pod.metadata.labels, self._configuration.interference_class_label).problem
            if unclear is not None:
                self._unclear[str(unclear)].append(pod.key)
        queued = self._cache.update_pod(pod)
        if waits and spec.scheduling_gates:
            gates = ", ".join(gate.name for gate in spec.scheduling_gates)
            self.result.unplaced.append(Unplaced(pod, "SchedulingGated", f"has scheduling gates: {gates}"))
        elif queued:
            self._waiting[pod.metadata.uid] = pod
            self._queue.add(pod, EntryKey.of(pod, self._cache.members.group_of(pod.metadata.uid)))

    def run(self) -> Simulation:
        """Plan until nothing changes any more."""
        total = len(self._waiting)
        for key in sorted(entry.key for entry in self._queue.entries()):
            if key.group is not None:
                self.result.groups[key.group] = key.scheduler
        self._drain(total)
        self._clock.now = max(profile.gang.wait_seconds for profile in self._configuration.profiles)
        for entry in list(self._queue.entries()):
            if entry.key.group is not None:
                self._queue.activate(entry.key)
        self._drain(total)
        left = sorted(self._waiting.values(), key=lambda pod: pod.key)
        for pod in left:
            why = self._why.get(pod.metadata.uid, Message("Waiting", "was not scheduled"))
            self.result.unplaced.append(Unplaced(pod, why.reason, why.text))
        self._progress("planning", total, total)
        return self.result

    def _drain(self, total: int) -> None:
        """Schedule all that is due; pods with rules about other pods again, as long as these get nodes."""
        while True:
            before, first = len(self._waiting), len(self.result.placed)
            while (entry := self._queue.pop()) is not None:
                self._budgets.begin()
                self._cycle.schedule_one(entry)
                self._progress("planning", total - len(self._waiting), total)
            if len(self._waiting) == before:
                return
            for key in self._helped([item.decision.pod for item in self.result.placed[first:]]):
                self._queue.activate(key)

    def _helped(self, came: Sequence[Pod]) -> list[EntryKey]:
        """Entries that these pods may help, which have got a node; all with rules about others where that is quicker.

        Else each of a chain of pods, of which each must be near the next, would have all others tried again.
        """
        entries = [entry for entry in self._queue.entries() if entry.follows_pods]
        compiled = {info.template.key: info.template for info in map(self._cache.state.info, came)}
        if len(compiled) > FEW:
            return [entry.key for entry in entries]
        return [
            entry.key
            for entry in entries
            if entry.looked_at
            or any(
                selects(self._cache.state, rules, template)
                for rules in self._rules_of(entry)
                for template in compiled.values()
            )
        ]

    def _rules_of(self, entry: QueueEntry) -> Iterable[PodTemplateInfo]:
        """Compiled templates of an entry's pods."""
        found: dict[bytes, PodTemplateInfo] = {}
        for uid, pod in entry.pods.items():
            if uid not in self._compiled:
                self._compiled[uid] = self._cache.state.info(pod).template
            found[self._compiled[uid].key] = self._compiled[uid]
        return found.values()

    # What the cycle tells, see CycleListener.

    def decided(self, decision: Decision, costs: NetworkCosts) -> None:
        """Keep a decision."""
        self._waiting.pop(decision.pod.metadata.uid, None)
        self.result.placed.append(Placed(decision, costs, self._clock.now))

    def unschedulable(self, failure: Failure) -> None:
        """Keep why a pod has no node."""
        self._why[failure.pod.metadata.uid] = failed_scheduling(failure)

    def waiting(self, pod: Pod, message: Message) -> None:
        """Keep why a pod waits."""
        self.about_pod(pod, message)

    def about_pod(self, pod: Pod, message: Message) -> None:
        """Keep why a pod waits, and what somebody should act on."""
        if pod.metadata.uid in self._waiting:
            self._why[pod.metadata.uid] = message
        if message.warning:
            self._warn(f"Pod {pod.key}: {message.text}")

    def about_group(self, group: Group, message: Message) -> None:
        """Keep that the configuration names what is absent or the time was over; the rest is told with the pods."""
        if message.reason == ABSENT:
            self._warn(f"AppGroup {group.key}: {message.text}")
        if message.reason == CUT_SHORT:
            self._warn(
                f"AppGroup {group.key}: planning stopped after {self._seconds:g} s with the best plan so far; "
                "give it more with --planning-seconds"
            )

    def _warn(self, text: str) -> None:
        if text not in self._notes:
            self._notes[text] = None
            self.result.notes.append(text)


def simulate(
    inputs: Inputs,
    configuration: PlacementConfiguration,
    *,
    all_pods: bool = False,
    seconds: float = math.inf,
    progress: Progress = silent,
) -> Simulation:
    """Plan every waiting pod of the configuration's schedulers.

    Args:
        inputs: nodes, pods and everything else.
        configuration: profiles.
        all_pods: plan the waiting pods of all schedulers, as if they were the first profile's.
        seconds: processor time that one plan may take, which is the profiles' time budget then; without end by default.
        progress: told how far it is.
    """
    planner = _Planner(configuration, all_pods=all_pods, seconds=seconds, progress=progress)
    planner.feed(inputs)
    return planner.run()
