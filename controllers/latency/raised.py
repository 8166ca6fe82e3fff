"""The number of replicas of policies' Deployments: what it should be while pods move, set and set back again.

What follows from what is known is decided in `surge`, and written by `scaler`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import structlog

from berth.api.latencypolicy import LatencyPolicy, LatencyPolicyStatus
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder
from berth.kube.owners import owner_key
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.latency import moves
from controllers.latency import events
from controllers.latency.evictions import Evictions
from controllers.latency.objects import Deployment
from controllers.latency.policies import Policies, target_of
from controllers.latency.scaler import AGAIN, Scaler
from controllers.latency.surge import Scaling, is_of_another, let_down, scaling
from controllers.latency.workloads import Obstacle, Workloads, left_over

log = structlog.get_logger(__name__)

SOON: Final = 0.2
"""Seconds until a policy is looked at again after something that it should tell of."""
SETTLED_AFTER: Final = timedelta(seconds=10)
"""How long after a move replicas are taken away in any case; before, once the pod beyond their number is there.

Of ready pods the ReplicaSet would delete the one that became ready last, or any where both have run for about as long;
as soon as it has made a further pod in place of the evicted one, it deletes that."""


class Raised:
    """Of all policies."""

    def __init__(
        self,
        *,
        scaler: Scaler,
        recorder: EventRecorder,
        queue: WorkQueue[str],
        policies: Policies,
        workloads: Workloads,
        evictions: Evictions,
    ) -> None:
        """Prepare.

        Args:
            scaler: sets the numbers.
            recorder: running event recorder.
            queue: for further passes after some time.
            policies: the policies.
            workloads: their Deployments and pods.
            evictions: which pods go, and since when.
        """
        self._scaler = scaler
        self._recorder = recorder
        self._queue = queue
        self._policies = policies
        self._workloads = workloads
        self._evictions = evictions

    def left(self, policy: LatencyPolicy) -> Obstacle | None:
        """Return why what a policy that is gone raised is not let down; None: there is none, or it has to wait."""
        target = target_of(policy)
        deployment = self._workloads.deployment(target)
        refusal = self._scaler.refusal(deployment) if deployment is not None else ""
        return left_over(deployment, refusal) if deployment and refusal and self._policies.has_left(target) else None

    def kept(self, policy: LatencyPolicy) -> Obstacle | None:
        """Return why what a policy raised of a former Deployment is not let down; None: nobody refuses that."""
        deployment = self._raised_of(policy)
        refusal = self._scaler.refusal(deployment) if deployment is not None else ""
        return left_over(deployment, refusal, "this LatencyPolicy") if deployment and refusal else None

    def scaling(
        self,
        key: str,
        status: LatencyPolicyStatus,
        deployment: Deployment,
        now: datetime,
        wanted: int | None = None,
        leaving: str | None = None,
        to_go: frozenset[str] = frozenset(),
    ) -> Scaling:
        """Return what follows for the number of replicas from the moves of a status.

        Args:
            key: the policy.
            status: what is to be remembered, with the moves that go on.
            deployment: the policy's.
            now: the time.
            wanted: how many pods there should be but for moves; None: as many as there are.
            leaving: pod that is to go where fewer are wanted.
            to_go: pods that are to be evicted now, by name.
        """
        target = owner_key(deployment.metadata.namespace, "Deployment", deployment.metadata.name)
        there = self._workloads.pods(target).items()
        staying = {pod.metadata.name: uid for uid, pod in there if pod.metadata.deletion_timestamp is None}
        surge, going = status.surge, len(moves.open_moves(status))
        fewer = surge is not None and surge.leaving is not None
        should = surge.replicas - fewer + going if surge is not None else 0
        last = max((move.ready_time or move.start_time for move in status.moves), default=now - SETTLED_AFTER)
        long_ago = min(now - last, timedelta(seconds=self._evictions.since(key))) >= SETTLED_AFTER
        # Nobody knows which of two ready pods the ReplicaSet deletes: what is to go goes before it deletes another.
        evicted = {name for name, uid in staying.items() if uid in self._evictions.evicted(key)}
        awaited = (to_go - self._evictions.refusals(key).keys() | evicted) & staying.keys()
        # Of one that leaves nobody knows when it went: another in its place is awaited in any case.
        beyond = len(staying.keys() - to_go) > should
        settled = surge is not None and not awaited and (beyond or (long_ago and not fewer))
        return scaling(
            surge,
            going,
            self._scaler.replicas(deployment),
            settled=settled,
            wanted=wanted,
            leaving=leaving,
            gone=surge is not None and surge.leaving not in staying,
            refused=bool(self._scaler.refusal(deployment)),
            deployment=deployment.metadata.uid,
        )

    async def scale(self, key: str, policy: LatencyPolicy, deployment: Deployment, write: tuple[int, int]) -> None:
        """Set the number of replicas; who wonders is told where that is refused, and the rest goes on meanwhile."""
        before, after = write
        done, told = await self._scale(policy, deployment, before, after)
        if done is not None:
            log.info("scaled", policy=key, before=before, after=after, done=done)
        self._queue.add(key, delay=AGAIN if done is None and not told else SOON)

    async def _scale(
        self, policy: LatencyPolicy, deployment: Deployment, before: int, after: int
    ) -> tuple[bool | None, bool]:
        """Set the number; returns whether it was set, None where that is refused, and whether somebody was told so."""
        known = self._scaler.refusal(deployment)
        try:
            return await self._scaler.scale(deployment, before, after), False
        except ApiError:
            if not (refusal := self._scaler.refusal(deployment)):
                raise
            if refusal != known:
                self._recorder.record(events.scaling_refused(events.about(policy), after, refusal))
            return None, refusal != known

    async def let_down_former(self, key: str, policy: LatencyPolicy) -> bool:
        """Set back what a policy raised of a Deployment that it is not about any more; returns False as `let_down`.

        The API server refuses such a change while a pod moves, unless its definition of the kind is an older one. Who
        wonders is told where the number may not be set; see :meth:`kept`.
        """
        surge, deployment = policy.status.surge, self._workloads.deployment(target_of(policy))
        if deployment is not None and not is_of_another(surge, deployment.metadata.uid):
            return True
        found = self._to_let_down(key, policy)
        if found is None:
            return True
        former, write = found
        return write is not None and bool((await self._scale(policy, former, *write))[0])

    async def let_down(self, key: str, policy: LatencyPolicy) -> bool:
        """Set back what a policy raised that is gone; returns False if that has to be tried again."""
        found = self._to_let_down(key, policy)
        if found is None:
            return True
        deployment, write = found
        return write is not None and await self._scaler.scale(deployment, *write)

    def _raised_of(self, policy: LatencyPolicy) -> Deployment | None:
        """Return the Deployment of which a policy has raised the number of replicas; None: none, or it is gone."""
        surge = policy.status.surge
        if surge is None:
            return None
        if surge.deployment is None:
            return self._workloads.deployment(target_of(policy))
        return self._workloads.with_uid(policy.metadata.namespace, surge.deployment)

    def _to_let_down(self, key: str, policy: LatencyPolicy) -> tuple[Deployment, tuple[int, int] | None] | None:
        """Return a number to replace, and that instead, None where that has to wait; None: nothing is to be done."""
        surge, deployment = policy.status.surge, self._raised_of(policy)
        write = let_down(surge, self._scaler.replicas(deployment)) if surge and deployment else None
        if deployment is None or write is None:
            return None
        # Of a pod that was just evicted the ReplicaSet may not know, and delete another.
        recent = self._evictions.since(key) < SETTLED_AFTER.total_seconds()
        return deployment, None if recent else write
