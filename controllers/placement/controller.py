"""The placement controller: watches, the scheduling loop, the binding workers.

watches --> cache (state, members, groups, costs) --> queue --> cycle --> decisions --> binder
   ^                                                      |                                  |
   +---------------- confirmed by the pod's own event ----+------- planned again if refused -+
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import yaml

from berth.kube.memory import settle_memory
from berth.kube.objects import CustomObject, Namespace, Node, Pod
from berth.kube.reflector import Reflector
from berth.kube.resources import APP_GROUPS, NAMESPACES, NETWORK_TOPOLOGIES, NODES, PODS
from berth.network.costs import NetworkCosts
from berth.network.groups import GroupKey
from berth.runtime.component import ComponentContext, run_together
from berth.scheduling.annotations import write_decision
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import ConfigurationError, PlacementConfiguration, parse_configuration
from berth.scheduling.cycle import GROUP_UNIT, SchedulingCycle, unit_key
from berth.scheduling.decision import Decision
from berth.scheduling.gang.infrastructure import read_settings
from berth.scheduling.planner import Planner
from berth.scheduling.queue import PlacementQueue, UnitKey
from controllers.placement import events
from controllers.placement.binder import Binder, BindOutcome, BindResult
from controllers.placement.metrics import BIND_SECONDS, BINDINGS, NODE_REJECTIONS, PENDING, UNBOUND
from controllers.placement.pod_conditions import ConditionReporter
from controllers.placement.reports import CycleReports
from controllers.placement.settings import PlacementSettings
from controllers.placement.volume_binder import VolumeBinder
from controllers.placement.volume_watches import volume_watches

log = structlog.get_logger(__name__)


def load_configuration(path: Path | None) -> PlacementConfiguration:
    """Read the configuration file; None gives the defaults.

    Raises:
        ConfigurationError: a field is unknown or wrong, or the file is no YAML.
        OSError: the file cannot be read.
    """
    if path is None:
        return PlacementConfiguration()
    text = path.read_text()
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: not valid YAML: {error}") from error
    return parse_configuration(document, source=str(path))


class PlacementController:
    """Second scheduler of the cluster."""

    name = "placement"
    Settings = PlacementSettings

    def __init__(self, context: ComponentContext, settings: PlacementSettings) -> None:
        """Prepare without I/O, but for the configuration file."""
        self._context = context
        self.configuration = load_configuration(settings.config)
        clock = time.monotonic
        self.cache = Cache(clock=clock)
        self.queue = PlacementQueue(clock=clock, arrival_of=self._arrival_of)
        self._binder = Binder(context.client)
        self._volumes = VolumeBinder(context.client, self.cache.state)
        self._reporter = ConditionReporter(context.client)
        reports = CycleReports(
            bind=self._decided, record=context.recorder.record, condition=self._reporter.unschedulable
        )
        self.cycle = SchedulingCycle(self.cache, self.queue, self.configuration, reports)
        self._unbound: asyncio.Queue[tuple[Decision, NetworkCosts, float]] = asyncio.Queue()
        self._wake = asyncio.Event()
        self._watches: dict[str, Reflector[Any]] = {}

    async def run(self) -> None:
        """Schedule until cancelled."""
        self._make_watches()
        watching = [watch.run() for watch in self._watches.values()]
        bindings = [self._bind_for_ever() for _ in range(self.configuration.bindings_in_flight)]
        await run_together(*watching, *bindings, self._volumes.run(), self._reporter.run(), self._schedule_for_ever())

    def _make_watches(self) -> None:
        client = self._context.client
        nodes = Reflector(client, NODES)
        nodes.add_handler(self._on_node)
        namespaces = Reflector(client, NAMESPACES)
        namespaces.add_handler(self._on_namespace)
        pods = Reflector(client, PODS)
        pods.add_handler(self._on_pod)
        groups = Reflector(client, APP_GROUPS)
        groups.add_handler(self._on_group)
        topologies = Reflector(client, NETWORK_TOPOLOGIES)
        topologies.add_handler(self._on_topology)
        self._watches = {
            "nodes": nodes,
            "namespaces": namespaces,
            "pods": pods,
            "appgroups": groups,
            "networktopologies": topologies,
            **volume_watches(client, self.cache.state.volumes, changed=self._on_volumes),
        }
        for name, watch in self._watches.items():
            watch.add_batch_handler(self._wake.set)
            self._context.watch(f"placement {name}", watch)

    # Watch events

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        cache, uid = self.cache, pod.metadata.uid
        result = cache.delete_pod(pod) if new is None else cache.update_pod(pod)
        ours = self.configuration.profile_for(pod.spec.scheduler_name) is not None
        if result.waiting and ours and new is not None:
            self.queue.add(pod, unit_key(pod, result.group))
        else:
            self.queue.remove(uid)
            self._reporter.forget(uid)
            if result.joined and result.group is not None:
                self._wake_group(result.group)
        if result.rejected and ours:
            NODE_REJECTIONS.labels(pod.status.reason).inc()
            self._context.recorder.record(events.rejected_by_node(pod, seconds=self.cache.avoided.ttl))
        if result.freed:
            self.queue.wake_sleepers()
            self._volumes.pod_gone(uid)
        elif result.assigned:
            self.queue.wake_sleepers(lambda unit: unit.follows_pods)

    def _on_node(self, old: Node | None, node: Node | None) -> None:
        if node is None:
            if old is not None:
                self.cache.state.remove_node(old.metadata.name)
            self._volumes.changed()
            self.queue.wake_sleepers(lambda unit: unit.follows_pods)
            return
        helps, settings = self.cache.update_node(node)
        if settings:
            for planner in self._planners():
                planner.view.settings_changed()
            for problem in read_settings(node).problems:
                self._context.recorder.record(events.bad_annotation(node, problem))
        if helps:
            self.queue.wake_sleepers()

    def _on_namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is None:
            if old is not None:
                self.cache.state.remove_namespace(old.metadata.name)
        else:
            self.cache.state.upsert_namespace(new)
            self.queue.wake_sleepers()

    def _on_group(self, old: CustomObject | None, new: CustomObject | None) -> None:
        if new is not None:
            changed = self.cache.update_group(new, old)
            if changed is not None:
                self._wake_group(changed)
        elif old is not None:
            key = GroupKey(old.metadata.namespace, old.metadata.name)
            self.cache.delete_group(key)
            self._wake_group(key)

    def _on_topology(self, old: CustomObject | None, new: CustomObject | None) -> None:
        obj = new or old
        if obj is None:
            return
        name = f"{obj.metadata.namespace}/{obj.metadata.name}"
        changed = True
        if new is None:
            self.cache.delete_topology(name)
        else:
            problem, changed = self.cache.update_topology(new)
            if problem is not None:
                log.warning("network topology ignored", topology=name, problem=problem)
        if changed:
            self.queue.wake_sleepers()

    def _on_volumes(self) -> None:
        self._volumes.changed()
        self.queue.wake_sleepers(lambda unit: unit.follows_volumes)

    def _wake_group(self, key: tuple[str, str]) -> None:
        for profile in self.configuration.profiles:
            self.queue.wake((GROUP_UNIT, *key, profile.scheduler_name))

    def _arrival_of(self, key: UnitKey) -> str | None:
        if key[0] != GROUP_UNIT:
            return None
        group = self.cache.groups.get(GroupKey(key[1], key[2]))
        return group.created if group is not None else None

    def _planners(self) -> list[Planner]:
        return list(self.cycle.planners.values())

    # Scheduling

    async def _schedule_for_ever(self) -> None:
        for watch in self._watches.values():
            await watch.synced.wait()
        settle_memory()
        log.info("placing", nodes=self.cache.state.node_count, waiting=len(self.queue))
        # Bindings are drained before more is planned, so that a late urgent pod does not find all room assumed away.
        backlog = 8 * self.configuration.bindings_in_flight
        while True:
            self._wake.clear()
            while self._unbound.qsize() < backlog:
                unit = self.queue.pop()
                if unit is None:
                    break
                try:
                    self.cycle.look_at(unit)
                except Exception:
                    # One odd unit must not stop the others; it is looked at again later.
                    log.exception("planning failed", unit="/".join(unit.key))
                    self.queue.back_off(unit)
                await asyncio.sleep(0)
            PENDING.set(len(self.queue))
            await self._until_woken(full=self._unbound.qsize() >= backlog)

    async def _until_woken(self, *, full: bool) -> None:
        """Wait for a change or a timer; while decisions pile up, timers change nothing and a binding wakes us."""
        due = None if full else self.queue.next_due()
        timeout = None if due is None else max(0.0, due - self.cache.clock())
        try:
            async with asyncio.timeout(timeout):
                await self._wake.wait()
        except TimeoutError:
            pass

    # Binding

    def _decided(self, decision: Decision, costs: NetworkCosts) -> None:
        self._reporter.forget(decision.pod.metadata.uid)
        self._unbound.put_nowait((decision, costs, self.cache.clock()))
        UNBOUND.set(self._unbound.qsize())

    async def _bind_for_ever(self) -> None:
        while True:
            decision, costs, decided = await self._unbound.get()
            UNBOUND.set(self._unbound.qsize())
            problem = self._no_longer_possible(decision)
            if self.cache.state.record(decision.pod.metadata.uid) is None:
                self.cache.forget(decision.pod)  # the pod has ended or was deleted
            elif problem is not None:
                self._context.recorder.record(events.node_changed(decision, problem))
                self._again(decision)
            elif self._volumes.needed(decision.pod):
                done = partial(self._volumes_done, decision, costs, decided)
                self._volumes.submit(decision.pod, decision.node, done)
            else:
                result = await self._binder.bind(decision.pod, decision.node, decision=write_decision(decision, costs))
                self._settle(decision, result, decided)
            self._wake.set()

    def _no_longer_possible(self, decision: Decision) -> str | None:
        """What happened to the node since the decision, None when it still takes the pod."""
        state = self.cache.state
        record = state.record(decision.pod.metadata.uid)
        if record is None:
            return None
        slot = state.node_index.get(decision.node)
        if slot is None:
            return "the node was deleted"
        node = state.node(slot)
        if node.spec.unschedulable:
            return "the node was cordoned"
        over = state.used[slot] > state.allocatable[slot]
        needed = state.request_vector(record.template) > 0
        if (over & needed).any():
            return "the node has too little room left"
        return None

    def _volumes_done(self, decision: Decision, costs: NetworkCosts, decided: float, problem: str | None) -> None:
        """The claims of a decided pod are bound, or cannot be."""
        if problem is None:
            self._unbound.put_nowait((decision, costs, decided))
        else:
            if self.cache.state.record(decision.pod.metadata.uid) is not None:
                self._context.recorder.record(events.volumes_failed(decision, problem))
            self._again(decision)
        self._wake.set()

    def _settle(self, decision: Decision, result: BindResult, decided: float) -> None:
        BINDINGS.labels(result.outcome.value).inc()
        if result.outcome is BindOutcome.BOUND:
            BIND_SECONDS.observe(self.cache.clock() - decided)
            self._context.recorder.record(events.scheduled(decision))
        elif result.outcome is BindOutcome.REFUSED:
            log.warning("binding refused", pod=decision.pod.key, node=decision.node, problem=result.problem)
            self._context.recorder.record(events.bind_failed(decision, result.problem))
            self._again(decision)
        elif result.outcome is BindOutcome.GONE:
            # The pod's own event may come later and will not find the room taken: wake those who wait for it now.
            self.cache.forget(decision.pod)
            self.queue.wake_sleepers()
        # ELSEWHERE: the pod's own event moves it in the state; until then its room here stays taken.

    def _again(self, decision: Decision) -> None:
        """Give the room back and let the pod wait again, around whatever of its group is bound."""
        self.cache.forget(decision.pod)
        pod = self._watches["pods"].objects.get(decision.pod.key)
        if pod is None or pod.metadata.uid != decision.pod.metadata.uid or pod.spec.node_name:
            return
        result = self.cache.update_pod(pod)
        if result.waiting:
            self.queue.put_back(pod, unit_key(pod, result.group))
        # The room that the decision held is free again.
        self.queue.wake_sleepers()
