"""Which version of an object was seen last, so that a read need not go past the API server's watch cache.

A read that names no version is answered from etcd: an object of a megabyte is decoded and encoded for it, a third of a
second of the API server's processors. One that may be as old as the last event is answered from memory, in a tenth.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from berth.kube.decoding import ObjectDecoder
from berth.kube.resources import version_number

K = TypeVar("K")


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_WRITTEN = ObjectDecoder(_Written)


class SeenVersions(Generic[K]):
    """The last version of each object, from events and from answers to writes."""

    def __init__(self) -> None:
        """Start without any."""
        self._versions: dict[K, str] = {}

    def note(self, key: K, version: str) -> None:
        """An event has shown an object in a version; one that is older than what was seen says nothing."""
        if version_number(version) >= version_number(self.of(key)):
            self._versions[key] = version

    def note_answer(self, key: K, answer: bytes) -> None:
        """An object was written; the answer has its new version."""
        self.note(key, _WRITTEN.decode(answer).metadata.resource_version)

    def of(self, key: K) -> str:
        """Return the resourceVersion that a read must not be older than; empty where it must be the newest there is."""
        return self._versions.get(key, "")

    def forget(self, key: K) -> None:
        """The next read of an object must be the newest: it is gone, or the API server has refused something."""
        self._versions.pop(key, None)

    def clear(self) -> None:
        """Forget all: events may have been missed, and versions gone back."""
        self._versions.clear()
