"""Who asks: what tells the users of a policy from each other, read from a request."""

from __future__ import annotations

from aiohttp import web

from berth.api.latency_exchange import Identity, IdentitySource


def address_of(request: web.BaseRequest) -> str:
    """Return the IP address that the connection comes from, in one form wherever it is seen; empty without one.

    A socket that listens on IPv6 as well shows an IPv4 address as one that is mapped (RFC 4291, 2.5.5.2).
    """
    address = request.remote or ""
    return address.removeprefix("::ffff:") if "." in address else address


def identity_of(request: web.BaseRequest, identity: Identity, *, address: str) -> str:
    """Return what tells this user from others; it is to be hashed and never kept.

    Args:
        request: the request.
        identity: where to look.
        address: IP address of the user; what counts where the request has nothing else.
    """
    found: str | None = None
    match identity.source:
        case IdentitySource.HEADER:
            found = request.headers.get(identity.name)
        case IdentitySource.COOKIE:
            found = _cookie(request.headers.get("Cookie", ""), identity.name)
        case IdentitySource.QUERY:
            found = request.query.get(identity.name)
        case IdentitySource.ADDRESS:
            pass
    return found or address


def _cookie(header: str, name: str) -> str | None:
    """Value of a cookie, the last of that name (RFC 6265, 4.2.1); None without one.

    aiohttp's reader takes 20 to 40 ms for a header of 16 KB that is malformed, so that thirty requests a second of
    anybody's would fill a processor. Escapes in quoted values are left as they are: who asks is hashed, not shown.
    """
    for pair in reversed(header.split(";")):
        key, equals, value = pair.partition("=")
        if equals and key.strip() == name:
            return value.strip().strip('"')
    return None
