"""How a router tells the meter behind it that a request is a router's, and whose: a header.

What the meter would measure of such a request is the way from the router. That the header is there says so, whatever is
in it: routers and meters get another key one after the other, and a router may have none. Whoever writes it himself is
not measured, as if he had not come, and nothing else. The mark is the user's hash with a code by the policy's key,
which meters and routers have from the controller; by the code the meter tells those that are sure from others, for
people who wonder where users are. It says nothing that gets old.
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
UNANSWERED_HEADER: Final = b"Berth-Unanswered"
"""Field of a meter's 503 to a router: the application is not there, and to ask another does no harm."""
UNANSWERED_FIELD: Final = UNANSWERED_HEADER.lower()
"""The same as it is looked up; who else writes it is not believed."""
UNNAMED: Final = "unnamed"
"""The header's value of a router that has no key."""
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
