"""Brings one LatencyPolicy up to date: look, decide, write what is to be remembered, then do it.

The status is written before anything is done, and only if nobody has written since it was read. So whoever goes on
after a crash knows of every move, and none begins that was not allowed; and what the status says is to be done is done
again, as often as it takes, until it is seen to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from time import monotonic, thread_time
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
import structlog

from berth.api.conditions import ConditionUpdate, apply
from berth.api.latencypolicy import (
    API_VERSION,
    KIND,
    MANAGER,
    AnnotatedLimits,
    Exploration,
    LatencyPolicy,
    LatencyPolicyStatus,
)
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder, Note
from berth.kube.resources import LATENCY_POLICIES
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.latency import moves
from berth.scheduling.latency.set_back import as_of
from berth.scheduling.latency.situation import Action, Create, Evict, Probe, Steer
from berth.scheduling.latency.stated_limits import with_limits
from controllers.latency import conditions, events, metrics
from controllers.latency.candidates import Candidates
from controllers.latency.deciding import (
    Chosen,
    Deciding,
    begun_anew,
    given_up,
    is_about_another,
    searching,
    without_users,
)
from controllers.latency.evictions import Evictions
from controllers.latency.given_up import SCALED, why_given_up
from controllers.latency.observations import Observations
from controllers.latency.orders import PATIENCE, Orders
from controllers.latency.patience import patience, rest_after
from controllers.latency.places import Places
from controllers.latency.policies import Policies, target_of
from controllers.latency.raised import SETTLED_AFTER, SOON, Raised
from controllers.latency.scaler import AGAIN, Scaler
from controllers.latency.surge import Scaling
from controllers.latency.workloads import Workloads, limits_of_pods

log = structlog.get_logger(__name__)

CONFLICT_DELAY: Final = 0.2
"""Seconds until a policy is looked at again that somebody has changed."""


class _Decided(NamedTuple):
    """What follows for a policy."""

    status: LatencyPolicyStatus
    updates: list[ConditionUpdate]
    actions: tuple[Action, ...] = ()
    scaling: Scaling = Scaling(None)
    look_again: datetime | None = None
    beyond: bool = False
    notes: tuple[Note, ...] = ()
    why: Mapping[str, str] = MappingProxyType({})


class Reconciler:
    """Does the passes."""

    def __init__(
        self,
        *,
        client: ApiClient,
        recorder: EventRecorder,
        queue: WorkQueue[str],
        policies: Policies,
        workloads: Workloads,
        candidates: Candidates,
        places: Places,
        observations: Observations,
        orders: Orders,
        evictions: Evictions,
        status_interval: float,
        clock: Callable[[], datetime],
    ) -> None:
        """Prepare.

        Args:
            client: open API client.
            recorder: running event recorder.
            queue: for further passes after some time.
            policies: the policies.
            workloads: their Deployments and pods.
            candidates: which nodes have room.
            places: which nodes there are, and which of them may be probed about whom.
            observations: what meters and agents have told.
            orders: what agents are to measure.
            evictions: evicts pods.
            status_interval: seconds between writes of figures that change nothing else.
            clock: tells the time.
        """
        self._client = client
        self._recorder = recorder
        self._queue = queue
        self._policies = policies
        self._workloads = workloads
        self._places = places
        self._scaler = Scaler(client)
        self._deciding = Deciding(
            workloads=workloads,
            candidates=candidates,
            places=places,
            observations=observations,
            orders=orders,
            evicted=evictions.evicted,
            refusal=self._scaler.refusal,
        )
        self._raised = Raised(
            scaler=self._scaler,
            recorder=recorder,
            queue=queue,
            policies=policies,
            workloads=workloads,
            evictions=evictions,
        )
        self._observations = observations
        self._orders = orders
        self._evictions = evictions
        self._interval = status_interval
        self._clock = clock
        self._wrote: dict[str, float] = {}
        self._rests: dict[str, float] = {}

    async def reconcile(self, key: str) -> bool:
        """Bring a policy up to date and return whether it exists.

        Raises:
            ApiError, aiohttp.ClientError, OSError: try again later; what could be done is done.
        """
        with metrics.RECONCILE_SECONDS.time():
            policy = self._policies.get(key)
            if policy is None or self._policies.last(key) is not None:
                if not await self._gone(key):
                    self._queue.add(key, delay=CONFLICT_DELAY)
                    return True
                if policy is None:
                    return False
            try:
                await self._reconcile(key, policy)
            except ApiError as error:
                if error.conflict:
                    self._queue.add(key, delay=CONFLICT_DELAY)
                elif not error.says_gone(LATENCY_POLICIES.plural, policy.metadata.name):
                    raise
            return True

    async def _reconcile(self, key: str, policy: LatencyPolicy) -> None:
        # What one of another name raised is let down first: it would count as what there should be.
        waits = self._policies.has_left(target_of(policy)) and self._raised.left(policy) is None
        left = CONFLICT_DELAY if waits else self._rests.get(key, 0.0) - monotonic()
        if left > 0:
            self._queue.add(key, delay=left)
            return
        let_down, now = await self._raised.let_down_former(key, policy), self._clock()
        decided = await self._decide(key, policy, now) if let_down else self._kept(policy, now)
        if decided is None:
            self._queue.add(key, delay=CONFLICT_DELAY)
            return
        generation = policy.metadata.generation
        after = apply(policy.status.conditions, decided.updates, observed_generation=generation, now=now)
        status = decided.status.model_copy(update={"conditions": after, "observed_generation": generation})
        metrics.measure(key, beyond=decided.beyond)
        if decided.look_again is not None:
            self._queue.add(key, delay=max(SOON, (decided.look_again - now).total_seconds()))
        if status.to_api() != policy.status.to_api():
            left = (
                self._wrote.setdefault(key, monotonic()) + patience(policy.status, status, self._interval) - monotonic()
            )
            if left > 0:
                self._queue.add(key, delay=left)
            else:
                await self._write(key, policy, status)
                metrics.count_moves(policy.status.moves, status.moves)
                for note in (*decided.notes, *events.news(policy, status, decided.updates, decided.why)):
                    self._recorder.record(note)
        await self._act(key, policy, decided)

    async def _decide(self, key: str, policy: LatencyPolicy, now: datetime) -> _Decided | None:
        """Return what follows for a policy; None where something else is wanted by then, or of something else."""
        deployment, looked = self._workloads.deployment(target_of(policy)), self._looked(key)
        if is_about_another(policy):
            self._observations.forget(key)
            self._orders.forget(key)
        policy = searching(begun_anew(policy, deployment))
        left, limits = self._raised.left(policy), limits_of_pods(policy, deployment)
        obstacle = left or self._workloads.obstacle(policy, self._policies)
        if obstacle is not None or deployment is None:
            status = without_users(given_up(as_of(policy.status, now)))
            found = self._raised.scaling(key, status, deployment, now) if deployment is not None else Scaling(None)
            status = status.model_copy(update={"surge": found.surge, "annotated_limits": limits})
            why = {move.pod: obstacle.message for move in moves.open_moves(policy.status)} if obstacle else {}
            updates = conditions.obstructed(obstacle) if obstacle else []
            again = now + timedelta(seconds=AGAIN) if left is not None else None
            return _Decided(status, updates, scaling=found, look_again=again, why=why)
        policy = policy.model_copy(update={"spec": with_limits(policy.spec, limits)})
        chosen = await self._deciding.choose(key, policy, self._scaler.replicas(deployment), now)
        begun = thread_time()
        decided = self._follow(key, policy, chosen, limits, now) if looked == self._looked(key) else None
        self._rests[key] = monotonic() + rest_after(chosen.seconds + thread_time() - begun)
        return decided

    def _kept(self, policy: LatencyPolicy, now: datetime) -> _Decided | None:
        """What follows while the number of a former Deployment may not be set back; None: nobody refuses that."""
        kept = self._raised.kept(policy)
        if kept is None:
            return None
        return _Decided(
            searching(policy).status, conditions.obstructed(kept), look_again=now + timedelta(seconds=AGAIN)
        )

    def _looked(self, key: str) -> tuple[object, ...]:
        """What a decision is about: where it is another by the time that it is made, nothing follows from it."""
        policy = self._policies.get(key)
        deployment = self._workloads.deployment(target_of(policy)) if policy is not None else None
        if policy is None or deployment is None:
            return ()
        return (
            policy.metadata.uid,
            policy.metadata.resource_version,
            deployment.metadata.uid,
            self._scaler.replicas(deployment),
            self._workloads.obstacle(policy, self._policies),
            self._workloads.autoscaled(target_of(policy)),
            limits_of_pods(policy, deployment),
        )

    def _follow(
        self, key: str, policy: LatencyPolicy, chosen: Chosen, limits: AnnotatedLimits | None, now: datetime
    ) -> _Decided | None:
        """What follows from what was chosen, by the workload as it is now."""
        target = target_of(policy)
        deployment = self._workloads.deployment(target)
        if deployment is None:
            return None
        status, actions, notes = chosen.status, chosen.actions, list[Note]()
        why = why_given_up(policy.status, chosen.view, now)
        if chosen.each is not None and chosen.each.held is not None:
            why = dict.fromkeys(why, chosen.each.held.message)
        to_go = frozenset(action.pod for action in actions if isinstance(action, Evict))
        found = self._raised.scaling(key, status, deployment, now, chosen.replicas, chosen.leaving, to_go)
        if found.fewer:
            actions = tuple(action for action in actions if not isinstance(action, Evict))
        if found.taken_over:
            replicas = self._scaler.replicas(deployment)
            wanted = status.surge.wanted if status.surge is not None else replicas
            notes.append(events.taken_over(events.about(policy), wanted, replicas))
            status, actions = given_up(status), ()
            why = dict.fromkeys(why, SCALED)
        if status.surge is None and found.surge is not None and chosen.each is not None:
            notes += events.resized(events.about(policy), found.surge, chosen.view.replicas, chosen.each.users)
        status = status.model_copy(update={"surge": found.surge, "annotated_limits": limits})
        pods = self._workloads.pods(target)
        going = frozenset(uid for uid, pod in pods.items() if pod.metadata.name in to_go)
        self._evictions.keep(key, frozenset(pods), going)
        refusals = self._evictions.refusals(key)
        facts = conditions.Facts(
            chosen.spec, status, chosen.view, chosen.users, chosen.wish, refusals, now, chosen.each
        )
        status, updates = status.model_copy(update=conditions.figures(facts)), conditions.conditions(facts)
        times = [time for time in chosen.times if time is not None]
        times += [now + SETTLED_AFTER] if found.surge is not None and not moves.open_moves(status) else []
        beyond = any(update.reason.startswith("Beyond") for update in updates)
        return _Decided(status, updates, actions, found, min(times, default=None), beyond, tuple(notes), why)

    async def _write(self, key: str, policy: LatencyPolicy, status: LatencyPolicyStatus) -> None:
        metadata = policy.metadata
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                # The uid keeps it from writing another of that name, the version from undoing what others wrote.
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            },
            "status": status.to_api(),
        }
        answer = await self._client.apply(
            LATENCY_POLICIES,
            metadata.name,
            body,
            field_manager=MANAGER,
            namespace=metadata.namespace,
            subresource="status",
        )
        self._wrote[key] = monotonic()
        self._policies.written(msgspec.json.decode(answer))

    async def _act(self, key: str, policy: LatencyPolicy, decided: _Decided) -> None:
        """Do what was decided; all of it is harmless when it was done before."""
        target = target_of(policy)
        deployment = self._workloads.deployment(target)
        if (write := decided.scaling.write) is not None and deployment is not None:
            await self._raised.scale(key, policy, deployment, write)
        wanted = Exploration.STEER in policy.spec.exploration
        steer = next((action.node for action in decided.actions if wanted and isinstance(action, Steer)), None)
        self._observations.routers(key).ask(steer, self._clock())
        pods = {pod.metadata.name: pod for pod in self._workloads.pods(target).values()}
        for action in decided.actions:
            match action:
                case Evict(name) if name in pods:
                    known = self._evictions.refusals(key)
                    refusal = await self._evictions.evict(key, pods[name])
                    if refusal is not None:
                        self._queue.add(key, delay=refusal.delay)
                        if known.get(name) != refusal.why:
                            self._queue.add(key, delay=SOON)
                            self._recorder.record(events.eviction_refused(events.about(policy), name, refusal.why))
                    else:
                        log.info("evicted", policy=key, pod=name)
                case Create(node):
                    self._observations.begin_anew(key, self._places.place_of(node, policy.spec.sharing))
                case Probe(nodes):
                    addresses = self._observations.to_probe(key, self._places.may_probe, self._clock())
                    self._orders.ask(key, nodes, addresses)
                    metrics.PROBES.inc(len(nodes) * len(addresses))
                    self._queue.add(key, delay=PATIENCE if addresses else SOON)

    async def _gone(self, key: str) -> bool:
        """A policy is gone: what it raised is let down again; returns False if that has to be tried again."""
        policy = self._policies.last(key)
        if policy is not None and not await self._raised.let_down(key, policy):
            return False
        self._policies.forget(key)
        self._observations.forget(key)
        self._orders.forget(key)
        self._evictions.forget(key)
        self._wrote.pop(key, None)
        self._rests.pop(key, None)
        metrics.forget(key)
        return True
