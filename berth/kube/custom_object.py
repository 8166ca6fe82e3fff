"""Objects of Berth's kinds as the copies of a cluster keep them: metadata to look at, all else as JSON.

Anybody may make objects of a megabyte. Decoded they take seven to ten times that, in thousands of containers through
which the garbage collector goes again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec

from berth.kube.decoding import at_any_depth
from berth.kube.meta import ObjectMeta, Struct

_EMPTY: Final = msgspec.Raw(b"{}")
_NULL: Final = msgspec.Raw(b"null")


class _Manifest(Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class CustomObject(Struct):
    """An object of one of Berth's kinds before validation: `berth.api` models are made from `document`."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: msgspec.Raw = _EMPTY
    status: msgspec.Raw = _EMPTY

    def __post_init__(self) -> None:
        """Let go of the line that the object was read from: its managedFields may be larger than all the rest."""
        self.metadata = self.metadata.bounded()
        self.spec, self.status = _kept(self.spec), _kept(self.status)

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Self:
        """Make the object of a manifest.

        Raises:
            msgspec.ValidationError: metadata, spec or status have a wrong type.
        """
        read = msgspec.convert(manifest, _Manifest)
        return cls(read.metadata, encoded(read.spec), encoded(read.status))

    def document(self, *, api_version: str, kind: str) -> dict[str, Any]:
        """The object as the API server would show it, for pydantic models."""
        return {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": msgspec.to_builtins(self.metadata),
            "spec": decoded(self.spec),
            "status": decoded(self.status),
        }


def encoded(part: dict[str, Any]) -> msgspec.Raw:
    """A spec or status as an object keeps it."""
    return msgspec.Raw(msgspec.json.encode(part))


def decoded(part: msgspec.Raw) -> dict[str, Any]:
    """A spec or status as the API server would show it."""
    found: dict[str, Any] = at_any_depth(msgspec.json.decode, part)
    return found


def _kept(part: msgspec.Raw) -> msgspec.Raw:
    return _EMPTY if part == _NULL else part.copy()
