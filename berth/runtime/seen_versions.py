"""Which version of an object was seen last, and whether it is one that we wrote ourselves.

A read that names no version is answered from etcd: an object of a megabyte is decoded and encoded for it, a third of a
second of the API server's processors. One that may be as old as the last event is answered from memory, in a tenth.
Without a look at whose version it is, every write would make its own object due again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from berth.kube.decoding import ObjectDecoder
from berth.kube.resources import version_number

K = TypeVar("K")


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    generation: int = 0


class _Written(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_WRITTEN = ObjectDecoder(_Written)


class SeenVersions(Generic[K]):
    """The last version of each object, from events and from answers to writes."""

    def __init__(self, news: Callable[[K], None]) -> None:
        """Start without any.

        Args:
            news: called with the key of an object of which an event has shown a version that is not ours.
        """
        self._news = news
        self._versions: dict[K, str] = {}
        self._written: dict[K, set[str]] = {}
        self._unsure: dict[K, list[str]] = {}

    def note(self, key: K, version: str) -> None:
        """An event has shown an object in a version; one that is older than what was seen says nothing about reads.

        Whether it is news is told as soon as it is known: an event is often there before the answer to the write.
        """
        if version_number(version) >= version_number(self.of(key)):
            self._versions[key] = version
        ours = self._written.get(key, set())
        if key in self._unsure:
            self._unsure[key].append(version)
        elif version in ours:
            ours.difference_update([each for each in ours if version_number(each) <= version_number(version)])
        else:
            self._news(key)

    async def writing(self, key: K, write: Awaitable[bytes], *, generation: int) -> bytes:
        """Write an object and return the answer; its event, there before or after, is no news.

        Args:
            key: the object, of which only one write is under way.
            write: returns the object as it is then, as JSON.
            generation: what it is to be after this write. One of another has what somebody else wrote since it was
                read, so that its event is news.
        """
        before = version_number(self.of(key))
        unsure = self._unsure[key] = []
        try:
            answer = await write
            metadata = _WRITTEN.decode(answer).metadata
            written = version_number(metadata.resource_version)
            if written >= version_number(self.of(key)):
                self._versions[key] = metadata.resource_version
            if written > before and metadata.generation == generation:
                if metadata.resource_version in unsure:
                    unsure.remove(metadata.resource_version)
                else:
                    self._written.setdefault(key, set()).add(metadata.resource_version)
        finally:
            del self._unsure[key]
            if unsure:
                self._news(key)
        return answer

    def of(self, key: K) -> str:
        """Return the resourceVersion that a read must not be older than; empty where it must be the newest there is."""
        return self._versions.get(key, "")

    def forget(self, key: K) -> None:
        """The next read of an object must be the newest: it is gone, or the API server has refused something."""
        self._versions.pop(key, None)
        self._written.pop(key, None)

    def clear(self) -> None:
        """Forget all: events may have been missed, and versions gone back."""
        self._versions.clear()
        self._written.clear()
