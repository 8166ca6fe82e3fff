"""Who is served by which node, from the status of a LatencyPolicy."""

from __future__ import annotations

import msgspec
import structlog

from berth.kube.custom_object import CustomObject
from berth.kube.decoding import at_any_depth
from berth.kube.meta import Struct

log = structlog.get_logger(__name__)


class _Association(Struct):
    user: str = ""
    node: str = ""


class _Status(Struct):
    associations: list[_Association] = msgspec.field(default_factory=list)


_DECODER = msgspec.json.Decoder(_Status)


def associations(policy: CustomObject | None) -> dict[str, str]:
    """Return the node of each user that has one, by the user's hash; nothing where the status cannot be read."""
    if policy is None:
        return {}
    try:
        status = at_any_depth(_DECODER.decode, policy.status)
    except ValueError as error:
        log.warning("associations cannot be read", policy=policy.metadata.name, error=str(error))
        return {}
    return {found.user: found.node for found in status.associations if found.user and found.node}
