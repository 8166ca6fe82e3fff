"""Evicts pods through the eviction API; what is refused is tried again, later each time.

A PodDisruptionBudget refuses with 429, several budgets on one pod with 500, a policy of admission with 422, and an
admission webhook with 403, with 400 where it states nothing, or with whatever else it states. The API server itself
has 409 for a pod that others write all the while. Only by its word that there is no such pod is one taken for gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import Pod
from berth.kube.resources import PODS
from controllers.latency import metrics

FIRST_DELAY: Final = 5.0
"""Seconds until an eviction is tried again that was refused; twice as many each time."""
LONGEST_DELAY: Final = 60.0
"""Seconds at most."""
REFUSED: Final = frozenset({400, 403, 404, 409, 422, 429, 500})
"""Statuses of an eviction that is refused; others are trouble on the way."""
MOST_CAUSES: Final = 3
"""Causes of a refusal that are told."""
_DAY: Final = 86_400.0
_T = TypeVar("_T")


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
        self._evicted: dict[str, frozenset[str]] = {}
        self._last: dict[str, float] = {}

    def refusals(self, policy: str) -> dict[str, str]:
        """Return why pods of a policy could not be evicted, by their names."""
        return {each.pod: each.why for each in self._refused.get(policy, {}).values()}

    def evicted(self, policy: str) -> frozenset[str]:
        """Return the pods of a policy that go, though the watch may not show it yet, by uid."""
        return self._evicted.get(policy, frozenset())

    def since(self, policy: str) -> float:
        """Return the seconds since the last eviction for a policy, by this process; a day if there was none."""
        last = self._last.get(policy)
        return self._clock() - last if last is not None else _DAY

    def keep(self, policy: str, there: frozenset[str], to_go: frozenset[str]) -> None:
        """Forget evictions but of pods that the watch shows still, and refusals but of those that should go; by uid."""
        _set(self._evicted, policy, self.evicted(policy) & there)
        _set(self._refused, policy, {uid: each for uid, each in self._refused.get(policy, {}).items() if uid in to_go})

    def forget(self, policy: str) -> None:
        """Forget all of a policy that is gone."""
        self.keep(policy, frozenset(), frozenset())
        self._last.pop(policy, None)

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
            if error.says_gone(PODS.plural, pod.metadata.name):
                self._gone(policy, uid)
                return None  # the watch tells
            if error.status not in REFUSED:
                raise
            metrics.REFUSED.inc()
            delay = min(LONGEST_DELAY, before.delay * 2 if before is not None else FIRST_DELAY)
            refusal = Refusal(pod.metadata.name, _why(error), delay, self._clock() + delay)
            self._refused.setdefault(policy, {})[uid] = refusal
            return refusal
        self._gone(policy, uid)
        metrics.EVICTED.inc()
        return None

    def _gone(self, policy: str, uid: str) -> None:
        self._evicted[policy] = self.evicted(policy) | {uid}
        self._last[policy] = self._clock()


def _why(error: ApiError) -> str:
    """The API server's words; which budget it is only the causes say."""
    causes = [cause for cause in error.causes if cause not in error.message]
    return " ".join([error.message, *causes[:MOST_CAUSES]])


def _set(found: dict[str, _T], key: str, value: _T) -> None:
    """Set what is not empty, and leave nothing of what is."""
    if value:
        found[key] = value
    else:
        found.pop(key, None)
