"""Leader election by a coordination.k8s.io Lease.

Exactly one replica of a component works at a time. Elapsed time is measured with the monotonic clock
from the moment a renewal was *observed*, never by comparing the Lease's timestamps with the local
clock, so a stepped or skewed clock neither steals nor loses leadership. A leader that could not renew
for `renew_deadline` stops working before anyone else may start (`renew_deadline` < `duration`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.metrics import LEADER
from berth.kube.resources import LEASES

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """How long leadership lasts; the defaults are those of Kubernetes' own components."""

    duration: float = 15.0
    """Seconds after the last renewal when others may take over."""
    renew_deadline: float = 10.0
    """Seconds without a successful renewal after which the leader stops."""
    retry_period: float = 2.0
    """Seconds between attempts to acquire or renew."""

    def __post_init__(self) -> None:
        """Check the order that makes two leaders impossible."""
        if not self.duration > self.renew_deadline > self.retry_period > 0:
            raise ValueError("lease timing must satisfy duration > renew_deadline > retry_period > 0")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class LeaderElection:
    """Competes for one Lease and runs work while holding it."""

    def __init__(
        self, client: ApiClient, *, name: str, namespace: str, identity: str, timing: LeaseTiming | None = None
    ) -> None:
        """Prepare.

        Args:
            client: open API client.
            name: the Lease's name, one per component.
            namespace: where the Lease lives.
            identity: unique name of this process, e.g. pod name plus a random part.
            timing: durations.
        """
        self._client = client
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._timing = timing or LeaseTiming()
        self._observed_version = ""
        self._observed_at = 0.0
        self._lease: dict[str, Any] | None = None
        self.is_leader = False

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for leadership, run `work`, and return when `work` ends or leadership is lost.

        Leadership is released on the way out, so that a clean shutdown hands over at once.

        Raises:
            LeadershipLost: renewing failed for `renew_deadline`; the process should exit and start anew.
        """
        await self._acquire()
        self._set_leader(True)
        log.info("became leader", lease=f"{self._namespace}/{self._name}", identity=self._identity)
        worker = asyncio.ensure_future(work())
        keeper = asyncio.create_task(self._keep())
        try:
            done, _ = await asyncio.wait({worker, keeper}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self._set_leader(False)
            for task in (worker, keeper):
                task.cancel()
            await asyncio.gather(worker, keeper, return_exceptions=True)
            await self._release()

    def _set_leader(self, leader: bool) -> None:
        self.is_leader = leader
        LEADER.labels(self._name).set(1 if leader else 0)

    async def _acquire(self) -> None:
        while not await self._try_acquire():
            await asyncio.sleep(self._timing.retry_period)

    async def _keep(self) -> None:
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(self._timing.retry_period)
            left = renewed + self._timing.renew_deadline - time.monotonic()
            try:
                async with asyncio.timeout(max(left, 0.001)):
                    ok = await self._try_acquire()
            except TimeoutError:
                ok = False
            if ok:
                renewed = time.monotonic()
            elif time.monotonic() - renewed >= self._timing.renew_deadline:
                raise LeadershipLost(f"lease {self._namespace}/{self._name} could not be renewed")

    async def _try_acquire(self) -> bool:
        """One attempt to take or renew the Lease; False when another holds it or the API server is in trouble."""
        try:
            return await self._attempt()
        except ApiError as error:
            if not error.conflict:
                log.warning("lease attempt failed", lease=self._name, error=str(error))
        except TRANSPORT_ERRORS as error:
            log.warning("lease attempt failed", lease=self._name, error=str(error) or repr(error))
        self._lease = None
        return False

    async def _attempt(self) -> bool:
        lease = self._lease if self.is_leader else None
        if lease is None:
            try:
                lease = await self._client.get(LEASES, self._name, namespace=self._namespace)
            except ApiError as error:
                if not error.not_found:
                    raise
                body = {
                    "apiVersion": LEASES.api_version,
                    "kind": LEASES.kind,
                    "metadata": {"name": self._name, "namespace": self._namespace},
                    "spec": self._spec(transitions=0, acquired=_now()),
                }
                self._remember(await self._client.create(LEASES, body, namespace=self._namespace))
                return True
        spec = lease.get("spec") or {}
        version = lease["metadata"]["resourceVersion"]
        holder = spec.get("holderIdentity") or ""
        if version != self._observed_version:
            self._observed_version, self._observed_at = version, time.monotonic()
        if holder and holder != self._identity:
            duration = float(spec.get("leaseDurationSeconds") or self._timing.duration)
            if time.monotonic() - self._observed_at < duration:
                return False
        took_over = holder != self._identity
        transitions = int(spec.get("leaseTransitions") or 0) + (1 if took_over else 0)
        acquired = _now() if took_over else spec.get("acquireTime") or _now()
        body = {**lease, "spec": self._spec(transitions=transitions, acquired=acquired)}
        self._remember(await self._client.replace(LEASES, self._name, body, namespace=self._namespace))
        return True

    def _spec(self, *, transitions: int, acquired: str) -> dict[str, Any]:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._timing.duration)),
            "acquireTime": acquired,
            "renewTime": _now(),
            "leaseTransitions": transitions,
        }

    def _remember(self, answer: bytes) -> None:
        self._lease = msgspec.json.decode(answer, type=dict[str, Any])
        self._observed_version = self._lease["metadata"]["resourceVersion"]
        self._observed_at = time.monotonic()

    async def _release(self) -> None:
        """Empty the holder so that a successor need not wait; failing is harmless, the Lease runs out."""
        if self._lease is None or self._lease["spec"].get("holderIdentity") != self._identity:
            return
        body = {**self._lease, "spec": {**self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}}
        try:
            async with asyncio.timeout(2.0):
                await self._client.replace(LEASES, self._name, body, namespace=self._namespace)
        except (ApiError, *TRANSPORT_ERRORS) as error:
            log.info("lease not released", lease=self._name, error=str(error) or repr(error))
        self._lease = None


class LeadershipLost(Exception):  # noqa: N818 - an outcome, named as Kubernetes names it
    """The Lease could not be renewed in time; whatever it protected has been stopped."""
