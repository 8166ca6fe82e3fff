"""How a router tells the meter behind it whose request it is: a header that nobody else can write.

What the meter would measure of such a request is the way from the router. The mark is the user's hash with a code
by the policy's key, which meters and routers have from the controller. It says nothing that gets old; whoever has
seen one can hide from the meter, and nothing else.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
from typing import Final

MARK_HEADER: Final = "Berth-Router"
"""Name of the header; routers and meters drop any that comes from elsewhere."""
MARK_FIELD: Final = MARK_HEADER.lower().encode()
"""The same as it is looked up in raw header fields."""
_PURPOSE: Final = b"berth.dev router mark"


@functools.lru_cache(maxsize=16_384)
def mark_of(key: bytes, user: str) -> str:
    """Return the header's value for a user.

    Args:
        key: key of the policy.
        user: keyed hash of the user's identity.
    """
    own = hmac.digest(key, _PURPOSE, hashlib.sha256)
    code = base64.b32encode(hmac.digest(own, user.encode(), hashlib.sha256)[:16]).decode().rstrip("=").lower()
    return f"{user}.{code}"


def marked_user(key: bytes, value: str) -> str | None:
    """Return the user that a header's value is about; None if no router of the policy has written it."""
    user, _, _ = value.partition(".")
    # No bytes that a header can have may stop the comparison, which takes text of ASCII alone.
    told, right = value.encode(errors="surrogateescape"), _fresh(key, user)
    return user if hmac.compare_digest(told, right) else None


def _fresh(key: bytes, user: str) -> bytes:
    """The right value, without a place in the cache: anybody may send any number of wrong ones."""
    return mark_of.__wrapped__(key, user.encode(errors="replace").decode()).encode()
