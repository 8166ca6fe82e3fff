"""Entries that wait for a change in the cluster, by what may help them: a change is told to those alone."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

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


class UnschedulableEntries:
    """Each entry under every change that may help it, in the cluster and in its namespace."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[tuple[str, Change], dict[EntryKey, QueueEntry]] = {}

    def add(self, entry: QueueEntry) -> None:
        """An entry waits from now on; what it follows may become more while it does, and not less."""
        entry.unschedulable = True
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

    def helped_by(self, change: Change, namespace: str = "") -> list[QueueEntry]:
        """Entries that a change may help; one that only matters in a namespace helps those there."""
        return list(self._entries.get((namespace, change), {}).values())


def _kinds(entry: QueueEntry) -> Iterator[tuple[str, Change]]:
    follows = {
        Change.ANY: True,
        Change.PODS: entry.follows_pods,
        Change.VOLUMES: entry.follows_volumes,
        Change.CALLS: entry.follows_calls,
    }
    return ((namespace, one) for one, holds in follows.items() if holds for namespace in ("", entry.key.namespace))
