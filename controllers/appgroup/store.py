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

from controllers.appgroup.pods import GroupKey


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
    version: int
    since: float


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
        self._documents: dict[GroupKey, Mapping[str, Any]] = {}
        self._echoes: dict[GroupKey, _Echo] = {}

    def __len__(self) -> int:
        """Return the number of AppGroups."""
        return len(self._documents)

    def get(self, key: GroupKey) -> Mapping[str, Any] | None:
        """Return the newest known object, None when there is none."""
        return self._documents.get(key)

    def observe(self, event_type: str | None, document: Mapping[str, Any]) -> Change:
        """Take in an event of the watch (``None`` for an object of its first list) and return what it means."""
        key = key_of(document)
        version = version_of(document["metadata"].get("resourceVersion", ""))
        echo = self._echoes.get(key)
        if echo is not None and version >= echo.version:
            del self._echoes[key]
        known = self._documents.get(key)
        if event_type == "DELETED":
            if known is None or _uid(known) != _uid(document):
                return Change.NOTHING
            self.forget(key)
            return Change.GONE
        if known is None or _uid(known) != _uid(document):
            self._documents[key] = document
            return Change.SPEC
        if 0 <= version <= _version(known):
            return Change.NOTHING
        self._documents[key] = document
        return Change.OTHER if _generation(known) == _generation(document) else Change.SPEC

    def wrote(self, document: Mapping[str, Any], *, now: float) -> None:
        """Take in the API server's answer to our own write; the watch must bring the same version."""
        key = key_of(document)
        known = self._documents.get(key)
        version = _version(document)
        if known is None or _uid(known) != _uid(document) or version <= _version(known):
            return  # deleted or overtaken meanwhile, or the write changed nothing
        self._documents[key] = document
        self._expect(key, version, now=now)

    def forget(self, key: GroupKey) -> None:
        """Drop an object that does not exist any more."""
        self._documents.pop(key, None)
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
            known = self._documents.get(key)
            if known is None or _version(known) < version:
                self._expect(key, version, now=now)
        gone = [key for key, known in self._documents.items() if key not in listed and _version(known) <= list_version]
        gone_unseen = [key for key, echo in self._echoes.items() if key not in listed and echo.version <= list_version]
        for key in {*gone, *gone_unseen}:
            self.forget(key)
        return gone

    def missing(self, listed: Mapping[GroupKey, int]) -> int:
        """Return how many objects of a list the watch has not delivered yet, or not in that version."""
        return sum(
            1
            for key, version in listed.items()
            if key not in self._documents or _version(self._documents[key]) < version
        )

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


def _generation(document: Mapping[str, Any]) -> Any:
    return document["metadata"].get("generation")
