"""A coordination.k8s.io Lease: taken, renewed and released by one candidate.

Exactly one replica of a component works at a time. Elapsed time is measured with the monotonic clock
from the moment a renewal was *observed*, never by comparing the Lease's timestamps with the local
clock, so a stepped or skewed clock neither steals nor loses leadership. A leader counts its time from
the moment it *sent* its last successful renewal, before anybody could observe it, and stops working
`renew_deadline` later, before anyone else may start (`renew_deadline` < `duration`).

:mod:`berth.kube.leader_election` runs work while a Lease is held.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
import structlog

from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError, readable
from berth.kube.jitter import jitter
from berth.kube.resources import LEASES, version_number

log = structlog.get_logger(__name__)

RELEASE_TIMEOUT = 2.0
"""Seconds that handing over may take on the way out."""
MAX_TRANSITIONS = 2**31 - 1
"""Where leaseTransitions stops: the API server takes no more."""


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """How long leadership lasts; the defaults are those of Kubernetes' own components."""

    duration: float = 15.0
    """Seconds after the last renewal when others may take over; written to the Lease in whole seconds, rounded up."""
    renew_deadline: float = 10.0
    """Seconds without a successful renewal after which the leader stops."""
    retry_period: float = 2.0
    """Seconds between attempts to acquire or renew."""

    def __post_init__(self) -> None:
        """Check the order that makes two leaders impossible."""
        if not math.inf > self.duration > self.renew_deadline > self.retry_period > 0:
            raise ValueError(
                "lease timing must satisfy duration > renew_deadline > retry_period > 0, not "
                f"{self.duration:g} > {self.renew_deadline:g} > {self.retry_period:g} > 0"
            )

    @classmethod
    def of(cls, duration: float) -> LeaseTiming:
        """Timing for a duration in seconds, with the proportions of the defaults (15 : 10 : 2).

        Raises:
            ValueError: the duration is not a positive number.
        """
        return cls(duration=duration, renew_deadline=duration * 2 / 3, retry_period=duration * 2 / 15)

    @property
    def published(self) -> int:
        """leaseDurationSeconds: rounded up, since others take over by it."""
        return math.ceil(self.duration)


class LeadershipLost(Exception):  # noqa: N818 - an outcome, named as Kubernetes names it
    """The Lease could not be renewed in time, or somebody else has it, or the API server has another history.

    The work that it protects was told to stop.
    """


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: Annotated[int, msgspec.Meta(le=2**31 - 1)] | None = None
    lease_transitions: Annotated[int, msgspec.Meta(le=MAX_TRANSITIONS)] | None = None
    acquire_time: str | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Lease(msgspec.Struct):
    """What is read of a Lease, to know one from whatever else something on the way may answer."""

    kind: Literal["Lease"]
    metadata: _Metadata
    spec: _Spec | None = None


def _lease_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The Lease as it stands, to be written back with all of its fields.

    Raises:
        ValueError: it is none.
    """
    msgspec.convert(answer, _Lease)
    return {**answer, "spec": answer.get("spec") or {}}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def boot_clock() -> float:
    """Seconds that no clock setting changes and, on Linux, that go on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


class LeaseLock:
    """One candidate for one Lease. Coroutines belong to one event loop; :attr:`held` may be read from any thread."""

    def __init__(self, client: ApiClient, *, name: str, namespace: str, identity: str, timing: LeaseTiming) -> None:
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
        self._timing = timing
        self._observed_version = ""
        self._observed_at = 0.0
        self._taken_at = -math.inf
        """when a version was first seen that another held"""
        self._lease: dict[str, Any] | None = None
        self._written = False
        self._deadline = -math.inf
        self._sent = -math.inf
        """when the last write was sent, by the boot clock"""
        self.refusal: ApiError | None = None
        """what the API server refuses this candidate for good; None once an attempt went well"""

    @property
    def held(self) -> bool:
        """True until the renew deadline, by a clock that goes on while the process or the machine stands still."""
        return self.left > 0

    @property
    def left(self) -> float:
        """Seconds until the renew deadline, by that clock; not positive when the Lease is not held."""
        return self._deadline - boot_clock()

    async def acquire(self) -> None:
        """Wait for the Lease."""
        while True:
            if await self._try():
                self._deadline = self._sent + self._timing.renew_deadline
                # An answer that took longer than the deadline is leadership that has run out already: renew it first.
                if self.held:
                    return
            # Jitter, because candidates that started together would go on meeting each other.
            await asyncio.sleep(self._timing.retry_period * jitter(1.0, 1.2))

    async def keep(self) -> None:
        """Renew for ever; the Lease counts as held no longer when this ends.

        Raises:
            LeadershipLost: at the deadline, or as soon as somebody else is seen to hold the Lease, or one of our
                renewals to be missing, as after an etcd restore.
        """
        started = self._sent
        try:
            while True:
                # From the beginning of the last attempt: after a slow answer there is no time left to wait.
                pause = started + self._timing.retry_period - boot_clock()
                await asyncio.sleep(max(0.0, min(pause, self.left)))
                started = boot_clock()
                await self._renew()
        finally:
            self._deadline = -math.inf

    async def _renew(self) -> None:
        left = self.left
        if left <= 0:
            raise LeadershipLost(
                f"lease {self._namespace}/{self._name} could not be renewed for {self._timing.renew_deadline:g} s"
            )
        try:
            async with asyncio.timeout(left):
                if await self._try(renewing=True):
                    self._deadline = self._sent + self._timing.renew_deadline
        except TimeoutError:
            self._lease = None  # whether the write arrived is unknown
        holder = self._holder()
        if holder != self._identity and holder:
            raise LeadershipLost(f"lease {self._namespace}/{self._name} is held by {holder}")

    def _holder(self) -> str:
        return "" if self._lease is None else self._lease["spec"].get("holderIdentity") or ""

    async def _try(self, *, renewing: bool = False) -> bool:
        """One attempt to take or renew the Lease; False when another holds it or the API server is in trouble."""
        try:
            done = await self._attempt(renewing=renewing)
        except ApiError as error:
            if not error.conflict:
                if not error.retryable:
                    self.refusal = error
                log.warning("lease attempt failed", lease=self._name, error=str(error))
        except TRANSPORT_ERRORS as error:
            log.warning("lease attempt failed", lease=self._name, error=str(error) or repr(error))
        else:
            self.refusal = None
            return done
        self._lease = None
        return False

    async def _attempt(self, *, renewing: bool) -> bool:
        if self._lease is None or self._holder() != self._identity:
            self._lease = await self._read()
        if self._lease is None:
            if boot_clock() - self._taken_at < self._timing.duration:
                return False  # it was deleted; its holder works on, and makes it again
            body = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": self._name, "namespace": self._namespace},
                "spec": self._spec(transitions=0, acquired=_now()),
            }
            self._written, self._sent = True, boot_clock()
            self._remember(await self._client.create(LEASES, body, namespace=self._namespace))
            return True
        spec = self._lease["spec"]
        holder = self._holder()
        if holder and holder != self._identity:
            duration = float(spec.get("leaseDurationSeconds") or self._timing.duration)
            self._taken_at = self._observed_at
            if renewing or boot_clock() - self._taken_at < duration:
                return False
        self._taken_at = -math.inf  # nobody else holds it: one that is deleted now is ours to make again
        took_over = holder != self._identity
        transitions = min(int(spec.get("leaseTransitions") or 0) + took_over, MAX_TRANSITIONS)
        acquired = _now() if took_over else spec.get("acquireTime") or _now()
        body = {**self._lease, "spec": self._spec(transitions=transitions, acquired=acquired)}
        self._written, self._sent = True, boot_clock()
        self._remember(await self._client.replace(LEASES, self._name, body, namespace=self._namespace))
        return True

    async def _read(self) -> dict[str, Any] | None:
        """Read the Lease and note when its version was first seen; None if there is none."""
        try:
            answer = await self._client.get(LEASES, self._name, namespace=self._namespace)
        except ApiError as error:
            if error.not_found:
                return None
            raise
        with readable(msgspec.json.encode(answer)):
            lease = _lease_of(answer)
        version = lease["metadata"]["resourceVersion"]
        self._check_history(version)
        if version != self._observed_version:
            self._observed_version, self._observed_at = version, boot_clock()
        return lease

    def _check_history(self, version: str) -> None:
        """End leadership where a renewal is missing: watches may go on and leave out what is in the new history."""
        if self.held and 0 <= version_number(version) < version_number(self._observed_version):
            raise LeadershipLost(
                f"the API server shows lease {self._namespace}/{self._name} at version {version}, "
                f"after version {self._observed_version}: it was restored from a backup"
            )

    def _spec(self, *, transitions: int, acquired: str) -> dict[str, Any]:
        # The times are for people: nothing of Berth compares them with anything.
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._timing.published,
            "acquireTime": acquired,
            "renewTime": _now(),
            "leaseTransitions": transitions,
        }

    def _remember(self, answer: bytes) -> None:
        with readable(answer):
            lease = _lease_of(msgspec.json.decode(answer, type=dict[str, Any]))
            if lease["spec"].get("holderIdentity") != self._identity:
                raise ValueError("not the Lease as it was written")
        version = lease["metadata"]["resourceVersion"]
        self._check_history(version)
        self._lease = lease
        self._observed_version, self._observed_at = version, boot_clock()

    async def release(self) -> None:
        """Empty the holder so that a successor need not wait; failing is harmless, the Lease runs out."""
        self._deadline = -math.inf
        if not self._written:
            return
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT):
                # Read anew: a renewal may have been cut off after it took effect.
                self._lease = await self._read()
                if self._lease is None or self._holder() != self._identity:
                    return
                spec = {**self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                body = {**self._lease, "spec": spec}
                await self._client.replace(LEASES, self._name, body, namespace=self._namespace)
        except (ApiError, *TRANSPORT_ERRORS) as error:
            log.info("lease not released", lease=self._name, error=str(error) or repr(error))
        finally:
            self._lease = None
            self._written = False

    def abandon(self) -> None:
        """Let the Lease run out instead of releasing it."""
        self._written = False
