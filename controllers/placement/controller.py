"""The placement controller: makes its parts and runs them. Who follows whom stands in the package's docstring."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

import structlog

from berth.kube.memory import freeze_objects
from berth.kube.objects import Pod
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.settings import ComponentSettings
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.node_changes import NodeChange
from berth.scheduling.configuration import ConfigurationError, PlacementConfiguration
from berth.scheduling.configuration_text import configuration_of
from berth.scheduling.cycle import SchedulingCycle
from berth.scheduling.declared import DeclaredReplicas
from berth.scheduling.queue import SchedulingQueue
from berth.scheduling.queue_entry import EntryKey
from berth.scheduling.scale_down_order import ScaleDownOrder
from berth.scheduling.settling import SettlingWindow
from controllers.placement.allocation_writer import AllocationWriter
from controllers.placement.binder import Binder
from controllers.placement.binding_cycle import BindingCycle
from controllers.placement.event_handlers import EventHandlers
from controllers.placement.group_lookup import GroupLookup
from controllers.placement.group_metrics import GroupMetrics
from controllers.placement.latency_policies import LatencyPolicies
from controllers.placement.link_reports import LinkReports
from controllers.placement.metrics import PENDING
from controllers.placement.planning_thread import PlanningThread
from controllers.placement.pod_conditions import PodConditions
from controllers.placement.replica_sets import ReplicaSets
from controllers.placement.reports import CycleReports
from controllers.placement.settings import PlacementSettings
from controllers.placement.socket_assignments import SocketAssignments
from controllers.placement.socket_watches import SocketWatches
from controllers.placement.volume_binder import VolumeBinder

log = structlog.get_logger(__name__)

TOGETHER = 0.005
"""Seconds for which entries are planned one after another before the event loop has a turn. Handing the plan of one pod
to the planning thread and back takes as long as the plan where the machine is busy."""
FURTHER_REQUESTS = 16
"""Requests beside the bindings in flight: look-ups, conditions, claims and the like."""
IDLE_SHARE = 0.1
"""Share of the time for what may be helped by a change and whose backoff is not over, while nothing else waits."""


def load_configuration(path: Path | None) -> PlacementConfiguration:
    """Read the configuration file; None gives the defaults.

    Raises:
        ConfigurationError: a field is unknown or wrong, or the file is not valid YAML.
        OSError: the file cannot be read.
    """
    if path is None:
        return PlacementConfiguration()
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not UTF-8 text; write it in that encoding") from error
    return configuration_of(text, source=str(path))


class PlacementController:
    """Second scheduler of the cluster."""

    Settings: ClassVar[type[ComponentSettings]] = PlacementSettings

    def __init__(self, context: ComponentContext, settings: PlacementSettings) -> None:
        """Prepare without I/O, but for the configuration file."""
        self._context = context
        self.configuration = load_configuration(settings.config)
        client, record = context.client, context.recorder.record
        # Bindings that hang must leave connections to those that do not, and to all else.
        client.widen(self.configuration.bindings_in_flight + FURTHER_REQUESTS)
        state = ClusterState(
            count_annotations=self.configuration.count_cni_bandwidth,
            class_label=self.configuration.interference_class_label,
            policies=self.configuration.interference_policies,
        )
        self.cache = Cache(clock=time.monotonic, state=state)
        self.queue = SchedulingQueue(clock=time.monotonic, groups=self.cache.groups, idle_share=IDLE_SHARE)
        self._changed = asyncio.Event()
        self.planning = PlanningThread()
        self._conditions = PodConditions(client)
        self._volumes = VolumeBinder(client, self.cache.state, idle=self.planning.idle)
        self.groups = GroupMetrics(self.cache, self.configuration, idle=self.planning.idle)
        self.handlers = EventHandlers(
            self.cache,
            self.queue,
            self.configuration,
            volumes=self._volumes,
            conditions=self._conditions,
            groups=self.groups,
            record=record,
            deferring=self.planning.deferring,
        )
        self.watches = self.handlers.watches(client)
        schedulers = frozenset(profile.scheduler_name for profile in self.configuration.profiles)
        self._lookup = GroupLookup(client, self.watches["appgroups"], schedulers=schedulers)
        self.watches["pods"].add_handler(self._lookup.on_pod)
        self._allocations = AllocationWriter(
            client, self.cache, self.configuration, idle=self.planning.idle, synced=self._synced
        )
        self._sockets: SocketWatches | None = None
        self._assignments: SocketAssignments | None = None
        if state.policies:
            self._sockets = SocketWatches(client, self.cache, deferring=self.planning.deferring)
            self._assignments = SocketAssignments(
                client, self.cache, idle=self.planning.idle, synced=partial(self._pods_and_sockets, self._sockets)
            )
            state.sockets.follow(self.planning.deferring(self._assignments.changed, "socket assignments"))
        self._link_reports: LinkReports | None = None
        if any(profile.check_risk_node_bandwidth is not None for profile in self.configuration.profiles):
            self._link_reports = LinkReports(client, self.cache.link_use, deferring=self.planning.deferring)
        self._latency_policies = LatencyPolicies(
            client,
            state.user_latency,
            schedulers=schedulers,
            heard=self._heard,
            deferring=self.planning.deferring,
            idle=self.planning.idle,
        )
        self.watches["pods"].add_handler(self.planning.deferring(self._latency_policies.on_pod, "pods"))
        self.binding = BindingCycle(
            self.cache,
            self.queue,
            binder=Binder(client),
            volumes=self._volumes,
            pods=self.watches["pods"].objects,
            record=record,
            workers=self.configuration.bindings_in_flight,
            done=self._changed.set,
            idle=self.planning.idle,
            refusal=self._refusal,
            scale_down=ScaleDownOrder() if self.configuration.pod_deletion_cost else None,
        )
        self.watches["pods"].add_handler(self.binding.on_pod)
        self._replica_sets = ReplicaSets(client, answer=self.planning.deferring(self._answered, "replicasets"))
        ask = self.planning.deferring(self._replica_sets.ask, "replicasets")
        self.declared = DeclaredReplicas(ask, time.monotonic)
        reports = CycleReports(bind=self.binding.submit, record=record, conditions=self._conditions)
        self.cycle = SchedulingCycle(
            self.cache,
            self.queue,
            self.configuration,
            self.planning.listener(reports),
            settling=SettlingWindow(time.monotonic, self.declared),
        )

    async def run(self) -> None:
        """Schedule until cancelled."""
        for name, watch in self.watches.items():
            watch.add_batch_handler(self._changed.set)
            self._context.watch(f"placement {name}", watch)
        watching = (watch.run() for watch in self.watches.values())
        parts = (
            *(self.binding, self._conditions, self.groups, self._lookup, self._allocations),
            *(self._latency_policies, self._replica_sets),
        )
        asked_for = (self._sockets, self._assignments, self._link_reports)
        running = (part.run() for part in (*parts, *asked_for) if part is not None)
        await run_together(*watching, self._schedule(), *running)

    def _refusal(self, pod: Pod, change: NodeChange) -> tuple[str, str] | None:
        return self.cycle.refusal(pod, change)

    def _heard(self, pods: Iterable[Pod]) -> None:
        """The LatencyPolicies of pods have been read."""
        for key in dict.fromkeys(EntryKey.of(pod, self.cache.members.group_of(pod.metadata.uid)) for pod in pods):
            self.queue.activate(key)
        self._changed.set()

    def _answered(self, key: EntryKey, replicas: Mapping[str, int]) -> None:
        """The ReplicaSets of an AppGroup have been read."""
        self.declared.answer(key, replicas)
        self.queue.activate(key, skip_backoff=False)
        self._changed.set()

    async def _synced(self) -> None:
        """Wait until every watch has listed its objects."""
        for watch in self.watches.values():
            await watch.synced.wait()

    async def _pods_and_sockets(self, sockets: SocketWatches) -> None:
        """Wait for all that says which pod is on which socket."""
        await self._synced()
        await sockets.synced()

    async def _schedule(self) -> None:
        """Schedule one entry after another, and wait for changes in between."""
        await self._synced()
        if self._sockets is not None:
            await self._sockets.asked()
        await self._latency_policies.asked()
        freeze_objects()
        for entry in self.queue.entries():
            # What was there before can be planned at once, in the order that `berth plan` says.
            entry.last_came = -math.inf
            for pod in entry.pods.values():
                self._latency_policies.came(pod)  # they were listed before the policies, or after
        state = self.cache.state
        log.info("placing", nodes=state.node_count, pods=state.pod_count, waiting=len(self.queue))
        while True:
            self._changed.clear()
            try:
                self.cycle.give_up_gone()
            except Exception:
                # One odd plan must not stop the others; it is given up all the same.
                log.exception("plan not given up in order")
            while await self._schedule_due():
                await self._recount()
                await asyncio.sleep(0)
            PENDING.set(len(self.queue))
            await self._recount()
            await self._until_changed()

    async def _recount(self) -> None:
        """Count more of the bandwidth of calls that are routed otherwise, where that is due, in the planning thread."""
        due = self.cache.recount_at()
        if due is None or due > self.cache.clock():
            return
        try:
            await self.planning.run(self.cache.recount)
        except Exception:
            # Placement must go on, and what is left is counted with the next plan.
            log.exception("bandwidth not counted anew")

    async def _schedule_due(self) -> bool:
        """Schedule entries that are due, in the planning thread for a short time; returns whether there were any.

        They are looked for there, too: a change may have woken thousands.
        """
        found = False

        def scheduled() -> None:
            nonlocal found
            found = self._schedule_together()

        await self.planning.run(scheduled)
        return found

    def _schedule_together(self) -> bool:
        """Schedule the entry that is next, and those that are within a short time; returns whether there was any."""
        entry = first = self.queue.pop(held=self.binding.full)
        end = time.monotonic() + TOGETHER
        while entry is not None:
            try:
                self.cycle.schedule_one(entry)
            except Exception:
                # One odd entry must not stop the others; it is tried again later.
                log.exception("planning failed", entry="/".join(filter(None, entry.key)))
                self.cycle.failed(entry)
            entry = self.queue.pop(held=self.binding.full) if time.monotonic() < end else None
        return first is not None

    async def _until_changed(self) -> None:
        """Wait for a change, such as a binding that ends, or a timer."""
        timers = [due for due in (self.queue.next_due(), self.cache.recount_at()) if due is not None]
        timeout = max(0.0, min(timers) - self.cache.clock()) if timers else None
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            pass
