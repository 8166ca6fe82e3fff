"""The envelope of a list, as the API server sends it."""

from __future__ import annotations

import msgspec

from berth.kube.decoding import at_any_depth


class ListMeta(msgspec.Struct, rename="camel"):
    """metav1.ListMeta."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class RawList(msgspec.Struct):
    """A list whose items are decoded one by one."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


def read_list(body: bytes) -> RawList:
    """Read a list without its items.

    Raises:
        msgspec.DecodeError: it is no JSON, or no list.
    """
    return at_any_depth(_DECODER.decode, body)


_DECODER = msgspec.json.Decoder(RawList)
