"""What a meter or router may make of the controller's answer."""

from __future__ import annotations

import base64
from typing import Final

import msgspec

from berth.api.latency_exchange import IdentitySource, Instructions

LEAST_KEY: Final = 16
"""Bytes of a key at least."""
INTERVALS: Final = (0.5, 300.0)
"""Least and greatest seconds between messages that are followed."""
MAX_BYTES: Final = 2**20
"""Longest answer that is read."""


def decode_instructions(body: bytes) -> tuple[Instructions, bytes]:
    """Return the instructions in an answer, and the policy's key, which is empty where there is no policy.

    Raises:
        ValueError: they cannot be followed.
    """
    try:
        found = msgspec.json.decode(body, type=Instructions)
        key = base64.b64decode(found.key, validate=True)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(f"the answer is none: {error}") from None
    if found.policy and len(key) < LEAST_KEY:
        raise ValueError(f"the key has {len(key)} bytes, at least {LEAST_KEY} are needed")
    if found.policy and found.identity.source is not IdentitySource.ADDRESS and not found.identity.name:
        raise ValueError(f"the identity is a {found.identity.source} without a name")
    least, greatest = INTERVALS
    interval = min(greatest, max(least, found.interval))
    return msgspec.structs.replace(found, interval=interval), key if found.policy else b""
