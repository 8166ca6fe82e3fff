"""Heads of forwarded messages, as RFC 9110 and RFC 9112 want them. No I/O.

Field names and values stay the bytes that came; what belongs to one connection alone is taken out (RFC 9110, 7.6.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

Fields = Iterable[tuple[bytes, bytes]]
"""Header fields as they came: name and value."""

HOP_BY_HOP: Final = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",  # trailer fields end here, which RFC 9110, 6.5.1 allows; nobody is to wait for them
        b"transfer-encoding",
        b"upgrade",
    )
)
"""Names, in lower case, of fields that are meant for the next hop."""
ESSENTIAL: Final = frozenset((b"host", b"content-length"))
"""Fields that no Connection header can take out."""
FORWARDED: Final = frozenset(
    (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-port", b"x-real-ip")
)
"""Fields by which proxies say who asks: of whoever is no proxy of ours they are not believed."""
MAX_HEAD_BYTES: Final = 65_536
"""Bytes of all fields of a request at most."""
MAX_VIA: Final = 8
"""Proxies that a request has passed at most; more are a loop."""
_HOST: Final = re.compile(rb"(?:\[[0-9A-Za-z:.%_~-]+\]|(?:[0-9A-Za-z._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")
"""What a Host field may be (RFC 9110, 7.2): a name or an address, and a port; nothing where the target has no host."""
_AUTHORITY_END: Final = re.compile(rb"[/?#]")


class BadRequestError(ValueError):
    """A request that cannot be forwarded."""

    def __init__(self, status: int, text: str) -> None:
        """Keep the status of the answer and what it says."""
        super().__init__(text)
        self.status = status


def listed(fields: Fields, name: bytes) -> list[bytes]:
    """Return the members of a field that is a list (RFC 9110, 5.6.1), in lower case."""
    values = (value for key, value in fields if key.lower() == name)
    return [item for value in values for member in value.split(b",") if (item := member.strip().lower())]


def known_as(name: bytes) -> bytes:
    """Return the name in lower case, as many applications know it: to CGI and WSGI ``_`` and ``-`` are the same."""
    return name.lower().replace(b"_", b"-")


def end_to_end(fields: Fields) -> list[tuple[bytes, bytes]]:
    """Return the fields that are meant for whoever is at the other end."""
    fields = list(fields)
    dropped = HOP_BY_HOP | (set(listed(fields, b"connection")) - ESSENTIAL)
    return [(name, value) for name, value in fields if name.lower() not in dropped]


def target_of(method: str, raw_path: str) -> tuple[bytes, bytes | None]:
    """Return the request target in origin-form and the authority that an absolute-form has had (RFC 9112, 3.2).

    Raises:
        BadRequestError: it is neither.
    """
    path = raw_path.encode(errors="surrogateescape")
    if method == "CONNECT":  # with any target: what follows its answer would be no HTTP
        raise BadRequestError(501, "CONNECT is not offered here")
    if path.startswith(b"/") or (path == b"*" and method == "OPTIONS"):
        return path, None
    scheme, _, rest = path.partition(b"://")
    if scheme.lower() not in (b"http", b"https"):
        raise BadRequestError(400, "the request target is no path")
    authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
    if authority[:1] in (b"", b":") or not _HOST.fullmatch(authority):
        raise BadRequestError(400, "the request target has no host, or a user in it")
    origin = rest[len(authority) :].partition(b"#")[0]
    if not origin and method == "OPTIONS":
        return b"*", authority  # RFC 9112, 3.2.4
    return (origin if origin.startswith(b"/") else b"/" + origin), authority


def request_head(
    method: str,
    raw_path: str,
    fields: Fields,
    *,
    peer: str,
    scheme: str,
    pseudonym: bytes,
    version: tuple[int, int] = (1, 1),
    believed: bool = False,
    websocket: bool = False,
    chunked: bool = False,
    without: frozenset[bytes] = frozenset(),
    added: Fields = (),
) -> bytes:
    """Return the head of the request that is sent on, with the empty line that ends it.

    Args:
        method: such as ``GET``.
        raw_path: the request target as it came.
        fields: those of the request.
        peer: address that the request has come from.
        scheme: ``http`` or ``https``, of the connection that it came by.
        pseudonym: this proxy's name in Via.
        version: of HTTP, as the request has it.
        believed: whether who sent it is a proxy of ours, whose word about the user is passed on.
        websocket: whether to ask for the upgrade, too.
        chunked: whether a body follows whose length is not known.
        without: names, in lower case, of further fields that nobody but us may write.
        added: fields to send besides.

    Raises:
        BadRequestError: the request cannot be forwarded.
    """
    if version[0] != 1:  # the parser lets 0.9 and 2.0 pass
        raise BadRequestError(505, "HTTP/1.1 alone is spoken here")
    fields = list(fields)
    if sum(len(name) + len(value) + 4 for name, value in fields) > MAX_HEAD_BYTES:
        raise BadRequestError(431, "the header fields are too large")
    target, authority = target_of(method, raw_path)
    if listed(fields, b"transfer-encoding") not in ([], [b"chunked"]):
        raise BadRequestError(501, "no Transfer-Encoding but chunked is known here")
    via = [value for name, value in fields if name.lower() == b"via"]
    if sum(value.count(b",") + 1 for value in via) >= MAX_VIA:
        raise BadRequestError(508, "the request has passed too many proxies")
    kept = [(name, value) for name, value in end_to_end(fields) if known_as(name) not in without]
    host = next((value for name, value in kept if name.lower() == b"host"), b"")
    if not _HOST.fullmatch(host):
        raise BadRequestError(400, "the field Host states no host")
    if authority is not None:
        host = authority
    told = _forwarded(kept, peer, scheme, host, believed=believed)
    passed = b", ".join((*via, b"%d.%d %b" % (*version, pseudonym)))
    sent = [
        (b"Host", host),
        *(
            (name, value)
            for name, value in kept
            if name.lower() not in (b"host", b"via") and known_as(name) not in FORWARDED
        ),
        *told,
        (b"Via", passed),
        *added,
    ]
    if websocket:
        sent += [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
    if chunked:
        sent.append((b"Transfer-Encoding", b"chunked"))
    lines = b"".join(b"%b: %b\r\n" % field for field in sent)
    return b"%b %b HTTP/1.1\r\n%b\r\n" % (method.encode(), target, lines)


def response_head(
    status: int, reason: bytes, fields: Fields, *, length: int | None, chunked: bool, close: bool, upgrade: bool = False
) -> bytes:
    """Return the head of an answer that is passed on, with the empty line that ends it.

    Args:
        status: HTTP status.
        reason: its text.
        fields: those of the answer.
        length: bytes of the body, None where it is not stated.
        chunked: whether the body is sent in chunks.
        close: whether the connection ends after it.
        upgrade: whether another protocol follows.
    """
    kept = [field for field in end_to_end(fields) if field[0].lower() != b"content-length"]
    if length is not None:
        kept.append((b"Content-Length", b"%d" % length))
    if chunked:
        kept.append((b"Transfer-Encoding", b"chunked"))
    if upgrade:
        kept += [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
    elif close:
        kept.append((b"Connection", b"close"))
    lines = b"".join(b"%b: %b\r\n" % field for field in kept)
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, reason, lines)


def _forwarded(kept: Fields, peer: str, scheme: str, host: bytes, *, believed: bool) -> list[tuple[bytes, bytes]]:
    """Fields that say who asks: what a proxy of ours has said, with its own address behind; else what we see."""
    address = peer.encode()
    if not believed:
        return [
            (b"X-Forwarded-For", address),
            (b"X-Forwarded-Host", host),
            (b"X-Forwarded-Proto", scheme.encode()),
        ]
    before = [(name, value) for name, value in kept if name.lower() in FORWARDED]
    chain = [value for name, value in before if name.lower() == b"x-forwarded-for"]
    rest = [(name, value) for name, value in before if name.lower() != b"x-forwarded-for"]
    return [*rest, (b"X-Forwarded-For", b", ".join((*chain, address)))]
