"""The AppGroups as kopf's watch and our own writes have shown them: the newest of each.

kopf does not report objects that vanished while its watch was broken; :meth:`AppGroupStore.reconcile_list`
finds them by comparing with a list. It also finds objects that the watch should have delivered and did
not, and the store remembers them, together with our own writes, as *echoes* that must come back: an echo
that stays away means that the watch is dead although its connection looks alive.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from berth.network.groups import GroupKey


class Change(Enum):
    """What an observation means for the status."""

    NOTHING = "nothing"
    """seen already, or older than what is known"""
    SPEC = "spec"
    """new object or new spec"""
    OTHER = "other"
    """the rest of the object changed, such as its status or labels"""
    GONE = "gone"
    """the object does not exist any more"""


class _Echo(NamedTuple):
    """A version that the watch still has to show."""

    version: int
    since: float


class _Known(NamedTuple):
    """What is kept of an object: as JSON it takes a fraction of the memory of dicts."""

    uid: str
    version: int
    generation: int
    encoded: bytes

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> _Known:
        metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
        return cls(
            uid=_uid(document),
            version=_version(document),
            generation=int(metadata.get("generation") or 0),
            encoded=msgspec.json.encode({**document, "metadata": metadata}),
        )


def key_of(document: Mapping[str, Any]) -> GroupKey:
    """Return the identity of a raw object."""
    metadata = document["metadata"]
    return GroupKey(metadata.get("namespace", ""), metadata["name"])


def version_of(text: str) -> int:
    """Return a resourceVersion as a number; versions of one resource grow (KEP-5504), -1 for one that is no number."""
    return int(text) if text.isdecimal() else -1


class AppGroupStore:
    """AppGroups by key, with the echoes that are still to come."""

    def __init__(self) -> None:
        """Start empty."""
        self._known: dict[GroupKey, _Known] = {}
        self._echoes: dict[GroupKey, _Echo] = {}

    def __len__(self) -> int:
        """Return the number of AppGroups."""
        return len(self._known)

    def __contains__(self, key: GroupKey) -> bool:
        """Return whether an AppGroup is known."""
        return key in self._known

    def get(self, key: GroupKey) -> dict[str, Any] | None:
        """Return a copy of the newest known object without its managedFields, None when there is none."""
        known = self._known.get(key)
        return msgspec.json.decode(known.encoded, type=dict[str, Any]) if known is not None else None

    def observe(self, event_type: str | None, document: Mapping[str, Any]) -> Change:
        """Take in an event of the watch (``None`` for an object of its first list) and return what it means."""
        key = key_of(document)
        version = _version(document)
        echo = self._echoes.get(key)
        if echo is not None and version >= echo.version:
            del self._echoes[key]
        known = self._known.get(key)
        if event_type == "DELETED":
            if known is None or known.uid != _uid(document):
                return Change.NOTHING
            self.forget(key)
            return Change.GONE
        if known is not None and known.uid == _uid(document) and 0 <= version <= known.version:
            return Change.NOTHING
        fresh = self._known[key] = _Known.of(document)
        same = known is not None and (known.uid, known.generation) == (fresh.uid, fresh.generation)
        return Change.OTHER if same else Change.SPEC

    def wrote(self, document: Mapping[str, Any], *, now: float) -> None:
        """Take in the API server's answer to our own write; the watch must bring the same version."""
        key = key_of(document)
        known = self._known.get(key)
        version = _version(document)
        if known is None or known.uid != _uid(document) or version <= known.version:
            return  # deleted or overtaken meanwhile, or the write changed nothing
        fresh = _Known.of(document)
        if fresh.generation == known.generation:
            self._known[key] = fresh
        # Otherwise the answer carries a spec newer than the one the status is of. Its own event is still to come
        # and has a lower version than the answer: taking in the answer now would make that event look old.
        self._expect(key, version, now=now)

    def forget(self, key: GroupKey, *, uid: str | None = None) -> None:
        """Drop an object that no longer exists; with ``uid``, unless a successor of its name is known already."""
        known = self._known.get(key)
        if uid is None or (known is not None and known.uid == uid):
            self._known.pop(key, None)
            self._echoes.pop(key, None)

    def reconcile_list(self, listed: Mapping[GroupKey, int], *, list_version: int, now: float) -> list[GroupKey]:
        """Compare with a list of all AppGroups and return those that are gone, already forgotten.

        Objects that the list shows newer than the store become echoes: the watch still has to bring them.

        Args:
            listed: resourceVersion of every AppGroup.
            list_version: resourceVersion of the list; objects of later versions cannot be in it.
            now: monotonic time.
        """
        for key, version in listed.items():
            known = self._known.get(key)
            if known is None or known.version < version:
                self._expect(key, version, now=now)
        gone = [key for key, known in self._known.items() if key not in listed and known.version <= list_version]
        unseen = [key for key, echo in self._echoes.items() if key not in listed and echo.version <= list_version]
        for key in {*gone, *unseen}:
            self.forget(key)
        return gone

    def missing(self, listed: Mapping[GroupKey, int]) -> int:
        """Return how many objects of a list the watch has not delivered yet, or not in that version."""
        found = ((self._known.get(key), version) for key, version in listed.items())
        return sum(1 for known, version in found if known is None or known.version < version)

    def oldest_echo(self, *, now: float) -> tuple[GroupKey, float] | None:
        """Return the object whose echo is missing the longest and for how many seconds; None when none is."""
        if not self._echoes:
            return None
        key, echo = min(self._echoes.items(), key=lambda item: item[1].since)
        return key, now - echo.since

    def _expect(self, key: GroupKey, version: int, *, now: float) -> None:
        earlier = self._echoes.get(key)
        # The clock of an echo that is already late must not start anew with every further write.
        self._echoes[key] = _Echo(version, earlier.since if earlier is not None else now)


def _uid(document: Mapping[str, Any]) -> str:
    return str(document["metadata"].get("uid", ""))


def _version(document: Mapping[str, Any]) -> int:
    return version_of(document["metadata"].get("resourceVersion", ""))
