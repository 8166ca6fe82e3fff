"""Entries that wait for a change in the cluster, by what may help them: a change is told to those alone.

Changes are noted when they come, at once, and told to entries later: to each the first that may help it, with its time,
and none that came before the entry began to wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from berth.scheduling.queue_entry import EntryKey, QueueEntry


class Change(Enum):
    """What changed in the cluster, by the entries that it may help."""

    ANY = "any"
    """may help everybody: room, network costs"""
    PODS = "pods"
    """pods that have got a node: helps entries with rules about other pods"""
    VOLUMES = "volumes"
    """storage objects: helps entries with claims or disks"""
    CALLS = "calls"
    """where calls go: helps AppGroups that limit calls or give them bandwidth"""


class _Noted(NamedTuple):
    """A change that entries are yet to be told."""

    number: int
    kind: tuple[str, Change]
    when: float


class UnschedulableEntries:
    """Each entry under every change that may help it, in the cluster and in its namespace."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[tuple[str, Change], dict[EntryKey, QueueEntry]] = {}
        self._noted: list[_Noted] = []
        self._number = 0
        self._noted_since_added: set[tuple[str, Change]] = set()

    @property
    def changed(self) -> bool:
        """Whether there is a change that entries are yet to be told."""
        return bool(self._noted)

    def note(self, change: Change, namespace: str, when: float) -> None:
        """Something changed at time `when`, in the cluster or, with a name, for a namespace alone.

        One like it adds nothing, unless another entry has begun to wait in between.
        """
        kind = (namespace, change)
        if kind in self._entries and kind not in self._noted_since_added:
            self._number += 1
            self._noted.append(_Noted(self._number, kind, when))
            self._noted_since_added.add(kind)

    def helped(self) -> Iterator[tuple[QueueEntry, float]]:
        """Entries that a change noted may help, and when that came; all of them are told, and take the entries out."""
        noted, self._noted = self._noted, []
        self._noted_since_added.clear()
        for number, kind, when in noted:
            for entry in list(self._entries.get(kind, {}).values()):
                if entry.changes_before < number:
                    yield entry, when

    def help_for(self, entry: QueueEntry) -> float | None:
        """When the first change came that may help this entry and was not told yet; None without any."""
        if not entry.unschedulable:
            return None
        later = (noted for noted in self._noted if noted.number > entry.changes_before)
        return next((noted.when for noted in later if entry.key in self._entries.get(noted.kind, {})), None)

    def add(self, entry: QueueEntry) -> None:
        """An entry waits from now on; what it follows may become more while it does, and not less."""
        entry.unschedulable = True
        entry.changes_before = self._number
        self._noted_since_added.clear()
        for kind in _kinds(entry):
            self._entries.setdefault(kind, {})[entry.key] = entry

    def discard(self, entry: QueueEntry) -> None:
        """An entry no longer waits for a change."""
        if not entry.unschedulable:
            return
        entry.unschedulable = False
        for kind in _kinds(entry):
            entries = self._entries.get(kind, {})
            entries.pop(entry.key, None)
            if not entries:
                self._entries.pop(kind, None)


def _kinds(entry: QueueEntry) -> Iterator[tuple[str, Change]]:
    follows = {
        Change.ANY: True,
        Change.PODS: entry.follows_pods,
        Change.VOLUMES: entry.follows_volumes,
        Change.CALLS: entry.follows_calls,
    }
    return ((namespace, one) for one, holds in follows.items() if holds for namespace in ("", entry.key.namespace))
