"""What of a message's head goes on to the next hop, what does not, and who is believed about the user."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.runtime.proxy.headers import (
    HOP_BY_HOP,
    MAX_HEAD_BYTES,
    MAX_VIA,
    BadRequestError,
    end_to_end,
    listed,
    request_head,
    response_head,
    target_of,
)

HOST = (b"Host", b"shop.example")


def sent(*fields: tuple[bytes, bytes], method: str = "GET", path: str = "/a?b=c", **others: object) -> list[bytes]:
    """Lines of the head that is sent on."""
    head = request_head(method, path, fields, peer="192.0.2.7", scheme="http", pseudonym=b"berth", **others)  # type: ignore[arg-type]
    assert head.endswith(b"\r\n\r\n")
    return head[:-4].split(b"\r\n")


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        pytest.param([(b"Accept", b"*/*")], [(b"Accept", b"*/*")], id="end to end"),
        pytest.param([(b"aCCept", b"\xff\xe9")], [(b"aCCept", b"\xff\xe9")], id="bytes and case as they came"),
        pytest.param([(b"Connection", b"close")], [], id="Connection"),
        pytest.param([(b"TE", b"trailers"), (b"Trailer", b"X-Sum")], [], id="trailers end here"),
        pytest.param([(b"Proxy-Authorization", b"x"), (b"Proxy-Connection", b"keep-alive")], [], id="for this proxy"),
        pytest.param([(b"Connection", b"X-Own , close"), (b"x-OWN", b"1"), (b"X", b"2")], [(b"X", b"2")], id="named"),
        pytest.param([(b"Connection", b"a"), (b"Connection", b",b,"), (b"A", b""), (b"B", b"")], [], id="named in two"),
        pytest.param(
            [(b"Connection", b"host, content-length"), HOST, (b"Content-Length", b"3")],
            [HOST, (b"Content-Length", b"3")],
            id="what a message cannot be without is never dropped",
        ),
        pytest.param(
            [(b"Set-Cookie", b"a"), (b"Set-Cookie", b"b")], [(b"Set-Cookie", b"a"), (b"Set-Cookie", b"b")], id="twice"
        ),
    ],
)
def test_fields_that_go_on(fields: list[tuple[bytes, bytes]], kept: list[tuple[bytes, bytes]]) -> None:
    assert end_to_end(fields) == kept


NAMES = st.sampled_from([*sorted(HOP_BY_HOP), b"accept", b"x-a", b"x-b", b"cookie"])


@given(fields=st.lists(st.tuples(NAMES, st.sampled_from([b"x-a", b"close", b"cookie, te", b""]))))
def test_nothing_for_the_next_hop_is_left_and_all_else_is_in_order(fields: list[tuple[bytes, bytes]]) -> None:
    kept = end_to_end(fields)
    named = set(listed(fields, b"connection"))
    assert kept == [(name, value) for name, value in fields if name not in HOP_BY_HOP and name not in named]


@pytest.mark.parametrize(
    ("method", "raw", "expected"),
    [
        pytest.param("GET", "/", (b"/", None), id="origin"),
        pytest.param("GET", "/a%2Fb?c=%20", (b"/a%2Fb?c=%20", None), id="as it was quoted"),
        pytest.param("GET", "//b/c", (b"//b/c", None), id="a path with two slashes is no host"),
        pytest.param("GET", "/\udcff", (b"/\xff", None), id="bytes that are no text"),
        pytest.param("OPTIONS", "*", (b"*", None), id="asterisk"),
        pytest.param("GET", "http://h:1/a?b", (b"/a?b", b"h:1"), id="absolute"),
        pytest.param("GET", "HTTPS://h", (b"/", b"h"), id="absolute without a path"),
        pytest.param("OPTIONS", "http://h:1", (b"*", b"h:1"), id="absolute, about the server (RFC 9112, 3.2.4)"),
        pytest.param("OPTIONS", "http://h/", (b"/", b"h"), id="absolute, about its first page"),
        pytest.param("OPTIONS", "http://h?a", (b"/?a", b"h"), id="absolute, with a query alone"),
        pytest.param("GET", "http://h/a?#b", (b"/a?", b"h"), id="absolute, with an empty query, as it came"),
    ],
)
def test_targets(method: str, raw: str, expected: tuple[bytes, bytes | None]) -> None:
    assert target_of(method, raw) == expected


@pytest.mark.parametrize(
    ("method", "raw", "status"),
    [
        pytest.param("CONNECT", "h:443", 501, id="CONNECT"),
        pytest.param("CONNECT", "/", 501, id="CONNECT of a path"),
        pytest.param("CONNECT", "http://h/", 501, id="CONNECT of an absolute target"),
        pytest.param("GET", "*", 400, id="asterisk of another method"),
        pytest.param("GET", "ftp://h/", 400, id="scheme"),
        pytest.param("GET", "http://", 400, id="no host"),
        pytest.param("GET", "http://:80/", 400, id="a port alone"),
        pytest.param("GET", "http://u@h/", 400, id="a user"),
        pytest.param("GET", "a", 400, id="relative"),
    ],
)
def test_targets_that_are_refused(method: str, raw: str, status: int) -> None:
    with pytest.raises(BadRequestError) as caught:
        target_of(method, raw)
    assert caught.value.status == status


def test_a_request_goes_on_with_who_asked() -> None:
    assert sent(HOST, (b"Accept", b"*/*")) == [
        b"GET /a?b=c HTTP/1.1",
        b"Host: shop.example",
        b"Accept: */*",
        b"X-Forwarded-For: 192.0.2.7",
        b"X-Forwarded-Host: shop.example",
        b"X-Forwarded-Proto: http",
        b"Via: 1.1 berth",
    ]


FORGED = (
    (b"X-Forwarded-For", b"10.0.0.1"),
    (b"X-Real-IP", b"10.0.0.1"),
    (b"Forwarded", b"for=10.0.0.1"),
    (b"X-Forwarded-Proto", b"https"),
    (b"X_Forwarded-for", b"10.0.0.1"),
    (b"x_real_ip", b"10.0.0.1"),
)


def test_what_a_client_says_of_itself_is_not_passed_on() -> None:
    assert not any(b"10.0.0.1" in line or b"https" in line for line in sent(HOST, *FORGED))


def test_what_a_proxy_of_ours_says_is_passed_on_with_its_own_address() -> None:
    lines = sent(HOST, *FORGED, believed=True)
    assert b"X-Forwarded-For: 10.0.0.1, 192.0.2.7" in lines
    assert b"X-Forwarded-Proto: https" in lines
    assert b"Forwarded: for=10.0.0.1" in lines
    assert sum(line.startswith(b"X-Forwarded-For") for line in lines) == 1


@pytest.mark.parametrize("name", [b"bErTh-RoUtEr", b"Berth_Router"])
def test_fields_that_only_we_write_are_taken_out_however_they_are_written(name: bytes) -> None:
    lines = sent(HOST, (name, b"forged"), without=frozenset((b"berth-router",)), added=((b"Berth-Router", b"ours"),))
    assert [line for line in lines if b"outer" in line.lower()] == [b"Berth-Router: ours"]


def test_no_Connection_header_takes_out_what_we_add() -> None:  # noqa: N802
    lines = sent(HOST, (b"Connection", b"x-forwarded-for, via, berth-router"), added=((b"Berth-Router", b"ours"),))
    assert {b"X-Forwarded-For: 192.0.2.7", b"Via: 1.1 berth", b"Berth-Router: ours"} <= set(lines)


def test_the_authority_of_an_absolute_target_is_the_host() -> None:
    lines = sent((b"Host", b"other.example"), path="http://shop.example/x")
    assert lines[:2] == [b"GET /x HTTP/1.1", b"Host: shop.example"]
    assert b"X-Forwarded-Host: shop.example" in lines


def test_Via_grows_and_is_one_field() -> None:  # noqa: N802
    lines = sent(HOST, (b"Via", b"1.0 a, 1.1 b"), (b"via", b"1.1 c"))
    assert [line for line in lines if line.lower().startswith(b"via")] == [b"Via: 1.0 a, 1.1 b, 1.1 c, 1.1 berth"]


NO_HOSTS = (b"a b", b"u@h", b"a, b", b"a:b", b"a:1:2", b"[::1", b"::1", b"a\\b", b"\xc3\xa4", b"%4", b'"a"', b"a<b")


@pytest.mark.parametrize("host", NO_HOSTS)
def test_no_authority_that_is_none_becomes_the_host(host: bytes) -> None:
    with pytest.raises(BadRequestError) as caught:
        sent(HOST, path=f"http://{host.decode(errors='surrogateescape')}/")
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "host", [b"", b"shop", b"a.b-c_d.example:8080", b"[::1]:80", b"[fe80::1%25eth0]", b"10.0.0.1:1", b"a%20b", b"a:"]
)
def test_hosts_as_they_may_be(host: bytes) -> None:
    assert sent((b"Host", host))[1] == b"Host: " + host


def test_Via_says_which_version_has_come_and_another_than_1_is_not_spoken() -> None:  # noqa: N802
    assert sent(HOST, version=(1, 0))[-1] == b"Via: 1.0 berth"
    for version in ((0, 9), (2, 0)):
        with pytest.raises(BadRequestError) as caught:
            sent(HOST, version=version)
        assert caught.value.status == 505


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        pytest.param([HOST, (b"Transfer-Encoding", b"gzip, chunked")], 501, id="a coding that would be lost"),
        pytest.param([HOST, (b"Transfer-Encoding", b"gzip"), (b"transfer-encoding", b"chunked")], 501, id="in two"),
        pytest.param([HOST, *[(b"Via", b"1.1 berth")] * MAX_VIA], 508, id="a loop"),
        pytest.param([HOST, (b"Via", b", ".join([b"1.1 x"] * MAX_VIA))], 508, id="a loop in one field"),
        pytest.param([HOST, (b"A", b"x" * MAX_HEAD_BYTES)], 431, id="one large field"),
        pytest.param([HOST, *[(b"A", b"x" * 1000)] * 66], 431, id="many fields"),
        *(pytest.param([(b"Host", host)], 400, id=f"Host {host!r}") for host in (*NO_HOSTS, b"a/b", b"a?b")),
    ],
)
def test_requests_that_are_refused(fields: list[tuple[bytes, bytes]], status: int) -> None:
    with pytest.raises(BadRequestError) as caught:
        sent(*fields)
    assert caught.value.status == status


def test_an_upgrade_is_asked_for_where_it_is_wanted() -> None:
    asked = (HOST, (b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"), (b"Sec-WebSocket-Key", b"k"))
    assert not any(b"pgrade" in line for line in sent(*asked))
    lines = sent(*asked, websocket=True)
    assert lines.count(b"Connection: Upgrade") == lines.count(b"Upgrade: websocket") == 1
    assert b"Sec-WebSocket-Key: k" in lines


@pytest.mark.parametrize(
    ("length", "chunked", "close", "upgrade", "framing"),
    [
        pytest.param(3, False, False, False, [b"Content-Length: 3"], id="measured"),
        pytest.param(None, True, False, False, [b"Transfer-Encoding: chunked"], id="in chunks"),
        pytest.param(None, False, True, False, [b"Connection: close"], id="to the end of the connection"),
        pytest.param(
            0, False, True, False, [b"Content-Length: 0", b"Connection: close"], id="nothing, and then the end"
        ),
        pytest.param(None, False, False, True, [b"Connection: Upgrade", b"Upgrade: websocket"], id="upgrade"),
    ],
)
def test_answers(length: int | None, chunked: bool, close: bool, upgrade: bool, framing: list[bytes]) -> None:
    fields = [(b"Content-Length", b"99"), (b"Transfer-Encoding", b"chunked"), (b"X", b"1"), (b"Keep-Alive", b"3")]
    head = response_head(200, b"Fine", fields, length=length, chunked=chunked, close=close, upgrade=upgrade)
    assert head == b"\r\n".join([b"HTTP/1.1 200 Fine", b"X: 1", *framing, b"", b""])
