"""How many pods ReplicaSets are to have: the first pods of an AppGroup wait for those that were declared with them.

kube-controller-manager creates 20 pods a second at most once it has made 30 requests, and far fewer on a machine that
is busy. A plan of those that are there by chance is another one than that of all. Somebody else reads the ReplicaSets,
as this does no I/O. StatefulSets are not asked for: most have a pod made once the one before is ready.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cachetools import TTLCache

from berth.scheduling.queue_entry import EntryKey, QueueEntry

REMEMBERED: Final = 10_000
"""AppGroups of which an answer is kept."""
REMEMBER_SECONDS: Final = 60.0
"""How long it is, which is longer than anybody waits."""


UNANSWERED_SECONDS: Final = 1.0
"""How long the first pods wait while nobody has said how many there are to be."""
MISSING_SECONDS: Final = 2.0
"""How long after the last one while a ReplicaSet is to have more: they come, unless something forbids them of which its
status says nothing yet."""
MISSING_AT_MOST_SECONDS: Final = 10.0
"""The longest that they wait then."""


class Pace(NamedTuple):
    """How long pods wait for others, in seconds."""

    gather: float
    """after the last one that came"""
    at_most: float
    """altogether"""


@dataclass(slots=True)
class DeclaredReplicas:
    """What is known of the ReplicaSets of AppGroups whose first pods gather."""

    ask: Callable[[EntryKey], None]
    """has those of an AppGroup read, and the answer given to :meth:`answer`"""
    clock: Callable[[], float]
    """monotonic time"""
    _answers: TTLCache[EntryKey, Mapping[str, int] | None] = field(init=False)
    """None where it was asked for"""

    def __post_init__(self) -> None:
        """Know nothing yet."""
        self._answers = TTLCache(REMEMBERED, REMEMBER_SECONDS, timer=self.clock)

    def begin(self, entry: QueueEntry) -> None:
        """Ask about an entry whose pods begin to gather, unless none came for so long that nobody would wait."""
        self._answers.pop(entry.key, None)
        if self.clock() < entry.last_came + MISSING_SECONDS and _pods_by_owner(entry):
            self._answers[entry.key] = None
            self.ask(entry.key)

    def answer(self, key: EntryKey, replicas: Mapping[str, int]) -> None:
        """Take what ReplicaSets of an AppGroup are to have: pods by uid of the ReplicaSet, without those that fail."""
        self._answers[key] = replicas

    def pace(self, entry: QueueEntry) -> Pace | None:
        """How long its pods wait for others; None when there is no reason to wait for longer than usual."""
        if entry.key not in self._answers:
            return None
        known = self._answers[entry.key]
        if known is None:
            return Pace(UNANSWERED_SECONDS, UNANSWERED_SECONDS)
        there = _pods_by_owner(entry)
        if any(known.get(uid, 0) > count for uid, count in there.items()):
            return Pace(MISSING_SECONDS, MISSING_AT_MOST_SECONDS)
        return None


def _pods_by_owner(entry: QueueEntry) -> Counter[str]:
    """Waiting pods by the uid of their ReplicaSet."""
    return Counter(
        owner.uid
        for pod in entry.pods.values()
        for owner in pod.metadata.owner_references
        if owner.controller and owner.kind == "ReplicaSet"
    )
