"""Evicts pods through the eviction API; what is refused is tried again, later each time.

A PodDisruptionBudget refuses with 429, several budgets on one pod with 500, and an admission webhook with 403.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import Pod
from berth.kube.resources import PODS
from controllers.latency import metrics

FIRST_DELAY: Final = 5.0
"""Seconds until an eviction is tried again that was refused; twice as many each time."""
LONGEST_DELAY: Final = 60.0
"""Seconds at most."""
REFUSED: Final = frozenset({403, 429, 500})
"""Statuses of an eviction that is refused; others are trouble on the way."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An eviction that was refused."""

    pod: str
    """name of the pod"""
    why: str
    """the API server's words"""
    delay: float
    """seconds that were waited after it"""
    until: float
    """when it is tried again"""


class Evictions:
    """Of all policies."""

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Prepare; `clock` tells seconds of a monotonic clock."""
        self._client = client
        self._clock = clock
        self._refused: dict[str, dict[str, Refusal]] = {}

    def refusals(self, policy: str) -> dict[str, str]:
        """Return why pods of a policy could not be evicted, by their names."""
        return {each.pod: each.why for each in self._refused.get(policy, {}).values()}

    def forget(self, policy: str, there: frozenset[str] = frozenset()) -> None:
        """Forget refusals but for the pods that should go still, by uid."""
        kept = {uid: each for uid, each in self._refused.get(policy, {}).items() if uid in there}
        self._refused.pop(policy, None)
        if kept:
            self._refused[policy] = kept

    async def evict(self, policy: str, pod: Pod) -> Refusal | None:
        """Evict a pod, and no other of its name; returns the refusal if there is one, by now or before.

        Raises:
            ApiError, aiohttp.ClientError, OSError: try again later.
        """
        uid = pod.metadata.uid
        before = self._refused.get(policy, {}).get(uid)
        if before is not None and self._clock() < before.until:
            return before
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        try:
            await self._client.create(
                PODS, body, namespace=pod.metadata.namespace, name=pod.metadata.name, subresource="eviction"
            )
        except ApiError as error:
            if error.not_found or error.conflict:
                return None  # gone, or another pod by now: the watch tells
            if error.status not in REFUSED:
                raise
            metrics.REFUSED.inc()
            delay = min(LONGEST_DELAY, before.delay * 2 if before is not None else FIRST_DELAY)
            refusal = Refusal(pod.metadata.name, error.message, delay, self._clock() + delay)
            self._refused.setdefault(policy, {})[uid] = refusal
            return refusal
        metrics.EVICTED.inc()
        return None
