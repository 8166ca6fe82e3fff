"""The envelope of a list, as the API server sends it."""

from __future__ import annotations

import msgspec

from berth.kube.decoding import at_any_depth


class ListMeta(msgspec.Struct, rename="camel"):
    """metav1.ListMeta."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Envelope(msgspec.Struct):
    """What claims to be a list."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET
    kind: str = ""


class RawList(msgspec.Struct):
    """A list whose items are decoded one by one."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


def read_list(body: bytes, kind: str) -> RawList:
    """Read a list of a kind without its items.

    Whatever else has a resourceVersion, such as a single object in answer to another request, would be taken for a
    cluster without objects.

    Raises:
        ValueError: it is no JSON, or no list of that kind.
    """
    found = at_any_depth(_DECODER.decode, body)
    if found.items is msgspec.UNSET or found.kind not in ("", f"{kind}List"):
        raise ValueError(f"no list of {kind}")
    if not found.metadata.resource_version:
        raise ValueError("a list without resourceVersion")
    return RawList(found.metadata, found.items)


_DECODER = msgspec.json.Decoder(_Envelope)
