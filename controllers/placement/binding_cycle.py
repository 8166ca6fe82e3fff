"""The binding cycle: a decision that is assumed in the cache becomes a Binding, or its pod waits again.

Its steps: is the pod still there and does the node still take it, are its claims bound, bind, settle the outcome.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass

import structlog

from berth.api.labels import ANNOTATION_ADMITTED_BANDWIDTH, ANNOTATION_DELETION_COST, ANNOTATION_SOCKET
from berth.kube.events import Note
from berth.kube.fair_queue import FairQueue, Turn
from berth.kube.objects import Pod
from berth.network.admitted import write_admitted
from berth.network.costs import NetworkCosts
from berth.scheduling.annotations import fits, write_decision
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.node_changes import NodeChange
from berth.scheduling.cache.pod_record import PodRecord
from berth.scheduling.cache.selection import tolerated
from berth.scheduling.decision import Decision
from berth.scheduling.plugins.node_unschedulable import CORDON
from berth.scheduling.queue import SchedulingQueue
from berth.scheduling.queue_entry import EntryKey
from berth.scheduling.scale_down_order import ScaleDownOrder
from controllers.placement import events
from controllers.placement.binder import Binder, BindOutcome, BindResult
from controllers.placement.claims import VolumeError, Written
from controllers.placement.metrics import BIND_SECONDS, BINDINGS, UNBOUND
from controllers.placement.volume_binder import VolumeBinder

log = structlog.get_logger(__name__)

CONFIRM_SECONDS = 30.0
"""Seconds after which the API server is asked about a pod that it has bound and that the watch shows without a node."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """A decision that is assumed and not bound yet."""

    decision: Decision
    """which pod goes where"""
    costs: NetworkCosts
    """the network costs it was made with"""
    since: float
    """monotonic time of the decision"""
    deletion_cost: int | None
    """what its ReplicaSet is to be told; None: nothing"""


class BindingCycle:
    """Workers that bind, a configured number of pods at a time."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        *,
        binder: Binder,
        volumes: VolumeBinder,
        pods: Mapping[str, Pod],
        record: Callable[[Note], None],
        workers: int,
        done: Callable[[], None],
        idle: Callable[[], Awaitable[None]],
        refusal: Callable[[Pod, NodeChange], tuple[str, str] | None],
        scale_down: ScaleDownOrder | None = None,
    ) -> None:
        """Prepare.

        Args:
            cache: where decisions are assumed.
            queue: where pods wait again.
            binder: writes Bindings.
            volumes: gets claims bound.
            pods: what the watch last showed of each pod, by ``namespace/name``.
            record: emits an Event.
            workers: bindings in flight at the most.
            done: called after each step, whatever came of it.
            idle: waits until no plan is being made: cache and queue must not be touched before.
            refusal: filter and reason why an assumed pod's node would not take it with what has changed of it.
            scale_down: what ReplicaSets are told of their pods; None: nothing.
        """
        self._cache = cache
        self._queue = queue
        self._binder = binder
        self._volumes = volumes
        self._pods = pods
        self._record = record
        self._workers = workers
        self._done = done
        self._idle = idle
        self._refusal = refusal
        self._scale_down = scale_down
        self._unbound: FairQueue[Assumed] = FairQueue(workers)
        self._at_work_apart: Counter[str] = Counter()
        self._tasks = asyncio.TaskGroup()
        self._unconfirmed: dict[str, tuple[float, Pod, str]] = {}  # by uid: since when, the pod and its node

    def full(self, namespace: str) -> bool:
        """True while so much of a namespace is unbound that its next pods should wait with their planning.

        Pods whose volumes are waited for count, and those of which it is not known whether they are bound. Room that
        is assumed away is none for a late urgent pod. Other namespaces are not held up by it.
        """
        return self._unbound.waiting(namespace) + self._at_work_apart[namespace] >= 8 * self._workers

    def submit(self, decision: Decision, costs: NetworkCosts) -> None:
        """Have a decision bound that is assumed in the cache."""
        self._unconfirmed.pop(decision.pod.metadata.uid, None)
        # In the order of the plan: where volumes are waited for, who is bound first is chance.
        cost = None if self._scale_down is None else self._scale_down.bind(decision.pod, decision.node)
        self._put(Assumed(decision, costs, self._cache.clock(), cost))

    async def run(self) -> None:
        """Bind until cancelled."""
        async with self._tasks as tasks:
            for _ in range(self._workers):
                tasks.create_task(self._work())
            tasks.create_task(self._confirm_for_ever())

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """The watch shows a pod with its node, or its end: a Binding of it is known for good."""
        if self._scale_down is not None:
            self._scale_down.seen(old, new)
        pod = new or old
        if pod is not None and (new is None or new.spec.node_name):
            self._unconfirmed.pop(pod.metadata.uid, None)

    async def _confirm_for_ever(self) -> None:
        while True:
            await asyncio.sleep(CONFIRM_SECONDS)
            try:
                await self.confirm()
            except Exception:
                # As for one odd pod above; what was left out would wait for the next process.
                log.exception("bindings not confirmed")

    async def confirm(self) -> None:
        """Ask about pods that are bound, and assumed for long: etcd may have lost the Binding in a restore.

        If the watch has not shown it before, it shows the pod as it was, and that is no news.
        """
        await self._idle()
        due, lost = self._cache.clock() - CONFIRM_SECONDS, []
        for uid, (since, pod, node) in list(self._unconfirmed.items()):
            if since > due:
                break
            del self._unconfirmed[uid]
            if self._cache.assumed(uid):
                lost.append(self._confirm(pod, node))
        await asyncio.gather(*lost)

    async def _confirm(self, pod: Pod, node: str) -> None:
        result = await self._binder.find_out(pod, node, lambda: self._pods.get(pod.key))
        await self._idle()
        if result.outcome is BindOutcome.REFUSED and self._cache.assumed(pod.metadata.uid):
            log.warning("binding lost", pod=pod.key, node=node)
            self._requeue(pod)
            self._done()

    async def _work(self) -> None:
        while True:
            turn = await self._unbound.get()
            UNBOUND.set(len(self._unbound))
            try:
                await self._bind(turn)
            except Exception:
                # One odd pod must not stop the others, nor the next process. What was sent of it, the pod tells.
                log.exception("binding failed", pod=turn.item.decision.pod.key)
                self._apart(turn.item, self.find_out(turn.item))
            finally:
                self._unbound.done(turn)
            self._done()

    def _put(self, item: Assumed) -> None:
        self._unbound.put(item.decision.pod.metadata.namespace, item)
        UNBOUND.set(len(self._unbound))

    async def _bind(self, turn: Turn[Assumed]) -> None:
        await self._idle()
        item, decision = turn.item, turn.item.decision
        pod, node = decision.pod, decision.node
        record = self._cache.state.record(pod.metadata.uid)
        if record is None:
            self._forget(pod)  # it has ended or was deleted; its claims may be assumed still
        elif (problem := self.changed(pod, record)) is not None:
            self._record(events.node_changed(decision, problem))
            self._requeue(pod)
        elif self._pods.get(pod.key, pod).spec != pod.spec:
            self._requeue(pod)  # it was resized: its new requests are neither planned nor charged
        elif self._volumes.needed(pod):
            await self._claim(turn)
        else:
            texts = self._annotations(item)
            result = BindResult(BindOutcome.UNKNOWN)
            with suppress(TimeoutError):
                async with self._unbound.patience(turn):
                    result = await self._binder.bind(pod, node, **texts)
            if result.outcome is BindOutcome.UNKNOWN:
                self._apart(item, self.find_out(item))
            else:
                await self._idle()
                self.settle(item, result)

    def _annotations(self, item: Assumed) -> dict[str, str]:
        """What the pod is bound with, as the binder names it: empty what does not fit or is unsaid."""
        pod = item.decision.pod
        present = self._pods.get(pod.key, pod).metadata.annotations
        member, admitted = self._cache.members.member(pod.metadata.uid), ""
        if member is not None and member.admitted is not None:
            admitted = write_admitted(member.admitted)
            if not fits(admitted, present, key=ANNOTATION_ADMITTED_BANDWIDTH):
                admitted = ""
        if admitted:
            present = present | {ANNOTATION_ADMITTED_BANDWIDTH: admitted}
        outlook = self._cache.state.socket_choice.outlook(pod.metadata.uid)
        socket = "" if outlook is None or outlook.socket is None else str(outlook.socket)
        if socket and fits(socket, present, key=ANNOTATION_SOCKET):
            present = present | {ANNOTATION_SOCKET: socket}
        else:
            socket = ""
        cost = "" if ANNOTATION_DELETION_COST in present else str(item.deletion_cost or "")  # without one it costs 0
        if cost and fits(cost, present, key=ANNOTATION_DELETION_COST):
            present = present | {ANNOTATION_DELETION_COST: cost}
        else:
            cost = ""
        text = write_decision(item.decision, item.costs, outlook)
        decision = text if fits(text, present) else ""
        return {"decision": decision, "admitted": admitted, "socket": socket, "deletion_cost": cost}

    def changed(self, pod: Pod, record: PodRecord) -> str | None:
        """What happened to the node since the decision, None when it still takes the pod.

        In another zone it is in other domains of spreading and affinity, and at other costs and links: filters that
        read what has changed of it judge it once more. Of one that is as it was, room and taints are looked at alone.
        """
        state = self._cache.state
        slot = state.node_index.get(record.node_name)
        if slot is None:
            return "the node was deleted"
        if state.node(slot).spec.unschedulable and not tolerated(record.template.tolerations, CORDON):
            return "the node was cordoned"
        if not state.selection.tolerated(record.template)[slot]:
            return "the node has a new taint that the pod does not tolerate"
        if not state.selection.affinity(record.template)[slot]:
            return "the node has other labels, which the pod does not select"
        over = state.used[slot] > state.allocatable[slot]
        needed = state.request_vector(record.template) > 0
        if (over & needed).any():
            return "the node has too little room left"
        if record.chosen is not None and (change := NodeChange.between(record.chosen, state.node(slot))):
            refused = self._refusal(pod, change)
            # Others may have their part in it: without a change of what the filter reads it would not have been asked.
            return f"as it is now, {refused[0]} rejects it: {refused[1]}" if refused else None
        return None

    async def _claim(self, turn: Turn[Assumed]) -> None:
        """Have the volumes of a pod claimed, and then waited for apart."""
        item, decision = turn.item, turn.item.decision
        problem = "the API server takes too long"
        try:
            async with self._unbound.patience(turn):
                written = await self._volumes.claim(decision.pod, decision.node)
        except (VolumeError, TimeoutError) as error:
            await self._volumes_failed(item, str(error) or problem)
        else:
            self._apart(item, self.wait_for_volumes(item, written))

    async def wait_for_volumes(self, item: Assumed, written: Written) -> None:
        """Wait until the claims of a pod are bound: then it is its turn again."""
        try:
            await self._volumes.wait(item.decision.pod, item.decision.node, written)
        except VolumeError as error:
            await self._volumes_failed(item, str(error))
        else:
            self._put(item)

    async def _volumes_failed(self, item: Assumed, problem: str) -> None:
        decision = item.decision
        await self._idle()
        log.warning("claims not bound", pod=decision.pod.key, node=decision.node, problem=problem)
        if self._cache.node_of(decision.pod):
            self._record(events.volumes_failed(decision, problem))
        self._requeue(decision.pod)

    async def find_out(self, item: Assumed) -> None:
        """Settle a binding whose outcome is unknown, once it is known."""
        pod = item.decision.pod
        result = await self._binder.find_out(pod, item.decision.node, lambda: self._pods.get(pod.key))
        await self._idle()
        self.settle(item, result)

    def _apart(self, item: Assumed, work: Coroutine[None, None, None]) -> None:
        """Have work that may take long done by no worker, so that it keeps nobody else waiting."""
        namespace = item.decision.pod.metadata.namespace

        async def counted() -> None:
            try:
                await work
            finally:
                self._at_work_apart[namespace] -= 1
                if not self._at_work_apart[namespace]:
                    del self._at_work_apart[namespace]
            self._done()

        self._at_work_apart[namespace] += 1
        self._tasks.create_task(counted())

    def settle(self, item: Assumed, result: BindResult) -> None:
        """Act on what became of a Binding."""
        decision = item.decision
        BINDINGS.labels(result.outcome.value).inc()
        uid = decision.pod.metadata.uid
        if result.outcome in (BindOutcome.BOUND, BindOutcome.ELSEWHERE) and self._cache.assumed(uid):
            self._unconfirmed[uid] = (self._cache.clock(), decision.pod, decision.node)
        if result.outcome is BindOutcome.BOUND:
            BIND_SECONDS.observe(self._cache.clock() - item.since)
            self._record(events.scheduled(decision))
        elif result.outcome is BindOutcome.REFUSED:
            log.warning("binding refused", pod=decision.pod.key, node=decision.node, problem=result.problem)
            self._record(events.bind_failed(decision, result.problem))
            self._requeue(decision.pod)
        elif result.outcome is BindOutcome.GONE and self._requeue(decision.pod) <= 1:
            # The pod's own event ends its wait. It may come later and will not find the room taken: wake those who wait
            # for it now, but not each time for a pod that the watch goes on showing.
            self._queue.move_all_to_active()
        # ELSEWHERE: the pod's own event moves it in the cache; until then its room here stays taken.

    def _requeue(self, decided: Pod) -> int:
        """Give the room back and let the pod wait again, around whatever of its group is bound.

        Nobody else is woken: the pod will take the room again, and a stream of refusals would reset every backoff.

        Returns how often the pod has had to wait again; 0 if it does not wait.
        """
        self._forget(decided)
        pod = self._pods.get(decided.key)
        if pod is None or pod.metadata.uid != decided.metadata.uid or pod.spec.node_name:
            return 0
        if not self._cache.update_pod(pod):
            return 0
        return self._queue.requeue(pod, EntryKey.of(pod, self._cache.members.group_of(pod.metadata.uid)))

    def _forget(self, decided: Pod) -> None:
        self._cache.forget(decided)
        if self._scale_down is not None:
            self._scale_down.unbound(decided)
