"""The part of a watch's line that can be read whatever the object in it is."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from berth.kube.meta import HasMetadata, object_key

T = TypeVar("T", bound=HasMetadata)


class WatchEvent(msgspec.Struct):
    """A line of a watch, its object not decoded."""

    type: str
    """ADDED, MODIFIED, DELETED, BOOKMARK or ERROR"""
    object: msgspec.Raw
    """the object, or a metav1.Status"""


class _Identity(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class Identified(msgspec.Struct):
    """What is read of bookmarks, and of objects whose other fields cannot be read."""

    metadata: _Identity
    """which object it is, in which version"""


EVENT_DECODER: Final = msgspec.json.Decoder(WatchEvent)
"""Decodes a line."""
IDENTITY_DECODER: Final = msgspec.json.Decoder(Identified)
"""Decodes its object."""


def key_of(item: msgspec.Raw) -> str:
    """Return ``namespace/name`` of an object that cannot be read; empty where it does not even have a name."""
    try:
        return object_key(IDENTITY_DECODER.decode(item).metadata)
    except ValueError:
        return ""


def named(item: T) -> T:
    """Return the object.

    Raises:
        ValueError: it does not say which one it is.
    """
    if not item.metadata.name:
        raise ValueError("it has no name")
    return item
