"""How often somebody may speak, and whether a message was told before. No I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from cachetools import LRUCache

from berth.api.latency_exchange import Instructions, UserRoundTrips
from berth.scheduling.latency.window import LENGTH
from controllers.latency.callers import Caller

POD_RATE: Final = 2.0
"""Messages a second of one pod, on average; a meter has one every five seconds, and more when new users come."""
POD_BURST: Final = 20.0
"""Messages of one pod at once."""
NAMESPACE_RATE: Final = 100.0
"""Messages a second of the meters and routers of one namespace, on average."""
NAMESPACE_BURST: Final = 400.0
"""Messages of one namespace at once."""
USERS_RATE: Final = 2000.0
"""Users a second of whom the meters and routers of one namespace may tell, on average: twice as many as are kept of a
policy. Each takes 35 microseconds: a hundred messages of a thousand users would take 3.5 s of a second."""
USERS_BURST: Final = 4000.0
"""Users of one namespace at once."""
LEAST_USERS: Final = LENGTH
"""Users of whom is read in each message, however many there were: where all count as one, no more are looked at."""
INTERVAL: Final = Instructions().interval
"""Seconds between messages of one meter or router, where those of its namespace are few."""
LONGEST_INTERVAL: Final = 30.0
"""Seconds at most, where they are many: what is older yields to what node agents measure."""
MOST_NAMESPACES: Final = 1000
"""Namespaces whose pods are counted, those that spoke last; in others the interval is the usual one."""
MOST_SPEAKERS: Final = int(NAMESPACE_RATE * LONGEST_INTERVAL)
"""Pods of a namespace that are counted: of more the interval is the longest one in any case."""
REGULAR_SHARE: Final = 0.5
"""Share of a namespace's rate for messages at intervals; the rest is for those that tell of a new user."""
MOST_KEPT: Final = 20_000
"""Pods, and namespaces, that are remembered; those that spoke last."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    time: float


class Rate:
    """So many messages, users or addresses a second on average, and some at once, of each key."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        """Begin; `clock` tells seconds of a monotonic clock."""
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: LRUCache[str, _Bucket] = LRUCache(MOST_KEPT)

    def allows(self, key: str) -> bool:
        """Return whether one more may be read now, and count it if so."""
        return self.take(key, 1) == 1

    def take(self, key: str, wanted: int) -> int:
        """Return how many more may be read now, of so many, and count these."""
        bucket = self._filled(key)
        found = min(wanted, int(bucket.tokens))
        bucket.tokens -= found
        return found

    def spend(self, key: str, count: int) -> None:
        """Count so many whether or not they are allowed; what is too much is waited for."""
        self._filled(key).tokens -= count

    def pause(self, key: str) -> float:
        """Return the seconds until one more is allowed, whole microseconds; 0: now."""
        return max(0.0, round((1.0 - self._filled(key).tokens) / self._rate, 6))

    def _filled(self, key: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._burst, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.time) * self._rate)
        bucket.time = now
        return bucket


class Intake:
    """Who may have one more message read now."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin; `clock` tells seconds of a monotonic clock."""
        self._pods = Rate(POD_RATE, POD_BURST, clock)
        self._namespaces = Rate(NAMESPACE_RATE, NAMESPACE_BURST, clock)
        self._users = Rate(USERS_RATE, USERS_BURST, clock)
        self._clock = clock
        self._speakers: LRUCache[str, OrderedDict[str, float]] = LRUCache(MOST_NAMESPACES)

    def allows(self, caller: Caller, *, agent: bool) -> bool:
        """Return whether a message may be read, and count it if so.

        Node agents are all of one namespace, and as many as nodes: 5000 that ask every half a minute are more than a
        namespace may have. Each counts for itself.
        """
        if not self._pods.allows(caller.uid):
            return False
        if agent:
            return True
        self._spoke(caller)
        return self._namespaces.allows(caller.namespace)

    def heard(self, namespace: str, users: Sequence[UserRoundTrips]) -> Sequence[UserRoundTrips]:
        """Return those users of a message of whom is read, and count them: those who were served last.

        Args:
            namespace: who tells it.
            users: all of them.
        """
        count = max(self._users.take(namespace, len(users)), LEAST_USERS)
        return users if count >= len(users) else nsmallest(count, users, key=_age)

    def interval(self, namespace: str, least: float = INTERVAL) -> float:
        """Return the seconds between messages that a meter or router of a namespace is to keep to, at the least.

        All of them together then have :data:`REGULAR_SHARE` of the rate, up to 1500 pods, and all of it up to 3000.
        """
        speakers = self._speakers.get(namespace)
        if speakers is None:
            return least
        before = self._clock() - 2 * LONGEST_INTERVAL
        while speakers and next(iter(speakers.values())) < before:
            speakers.popitem(last=False)
        if not speakers:
            del self._speakers[namespace]
        return min(LONGEST_INTERVAL, max(least, len(speakers) / (NAMESPACE_RATE * REGULAR_SHARE)))

    def _spoke(self, caller: Caller) -> None:
        speakers = self._speakers.get(caller.namespace)
        if speakers is None:
            speakers = self._speakers[caller.namespace] = OrderedDict()
        speakers[caller.uid] = self._clock()
        speakers.move_to_end(caller.uid)
        if len(speakers) > MOST_SPEAKERS:
            speakers.popitem(last=False)


def _age(user: UserRoundTrips) -> float:
    return user.age


class Sequences:
    """The last message of each pod's process: one that comes again counts once."""

    def __init__(self) -> None:
        """Begin without any."""
        self._last: LRUCache[str, tuple[str, int]] = LRUCache(MOST_KEPT)

    def is_new(self, uid: str, instance: str, sequence: int) -> bool:
        """Return whether a message of a pod was not told before, and remember it."""
        known = self._last.get(uid)
        if known is not None and known[0] == instance and sequence <= known[1]:
            return False
        self._last[uid] = instance, sequence
        return True
