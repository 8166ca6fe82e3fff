"""The part of a watch's line that can be read whatever the object in it is."""

from __future__ import annotations

from typing import Final

import msgspec


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
