"""Answers in any pieces: where they end, whether the connection goes on, and what is no answer."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.runtime.proxy.response_reader import LARGEST_HEAD, MOST_FIELDS, MalformedAnswerError, ResponseReader

OK = b"HTTP/1.1 200 OK\r\n"


def read(data: bytes, method: str = "GET", *, pieces: list[int] | None = None, upgrade: bool = False) -> ResponseReader:
    """A reader that was fed, in pieces that begin at the given places."""
    reader = ResponseReader(method)
    if upgrade:
        reader.expect_upgrade()
    cuts = [0, *sorted(pieces or []), len(data)]
    for begin, end in itertools.pairwise(cuts):
        if begin < end:
            reader.feed(data[begin:end])
    return reader


ANSWERS = [
    pytest.param("GET", OK + b"Content-Length: 3\r\n\r\nabc", b"abc", True, id="measured"),
    pytest.param("GET", OK + b"Content-Length: 0\r\n\r\n", b"", True, id="empty"),
    pytest.param(
        "GET", OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n", b"abc", True, id="chunks"
    ),
    pytest.param(
        "GET",
        OK + b"Transfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n",
        b"a",
        True,
        id="trailer fields",
    ),
    pytest.param("HEAD", OK + b"Content-Length: 3\r\n\r\n", b"", True, id="HEAD, with the length of GET"),
    pytest.param("HEAD", OK + b"Transfer-Encoding: chunked\r\n\r\n", b"", True, id="HEAD of chunks"),
    pytest.param("GET", b"HTTP/1.1 204 No\r\n\r\n", b"", True, id="204"),
    pytest.param("GET", b"HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", b"", True, id="304, with the length of 200"),
    pytest.param(
        "GET", b"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", b"", True, id="204, with the length of nothing"
    ),
    # Neither has a body; whoever states one may send it, which would be taken for the answer to the next request.
    pytest.param("GET", b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n", b"", False, id="204, with a length"),
    pytest.param("GET", b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"", False, id="204 of chunks"),
    pytest.param("HEAD", b"HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"", True, id="HEAD, 304 of chunks"),
    pytest.param("GET", b"HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"", False, id="304 of chunks"),
    pytest.param("GET", OK + b"Connection: close\r\nContent-Length: 1\r\n\r\na", b"a", False, id="the last one"),
    pytest.param("GET", b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", b"a", False, id="HTTP/1.0"),
    pytest.param(
        "GET",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
        + OK
        + b"Content-Length: 1\r\n\r\na",
        b"a",
        True,
        id="after interim ones",
    ),
]


@pytest.mark.parametrize(("method", "data", "body", "lasting"), ANSWERS)
@given(cuts=st.data())
def test_whole_answers_in_any_pieces(method: str, data: bytes, body: bytes, lasting: bool, cuts: st.DataObject) -> None:
    pieces = cuts.draw(st.lists(st.integers(min_value=0, max_value=len(data)), max_size=6))
    reader = read(data, method, pieces=pieces)
    assert reader.complete
    assert b"".join(reader.chunks) == body
    assert reader.lasting == lasting
    assert reader.head is not None
    assert not any(name == b"Link" for name, _ in reader.head.fields), "of an interim answer nothing is kept"


@pytest.mark.parametrize(
    ("data", "length"),
    [
        pytest.param(OK + b"Content-Length: 5\r\n\r\nabc", 5, id="a measured body is cut"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", None, id="the last chunk is missing"),
        pytest.param(OK + b"Content-Le", None, id="within the head"),
        pytest.param(b"", None, id="nothing came"),
    ],
)
def test_an_answer_that_is_cut_is_not_whole(data: bytes, length: int | None) -> None:
    reader = read(data)
    assert not reader.complete
    with pytest.raises(MalformedAnswerError):
        reader.end()


def test_a_body_without_length_ends_with_the_connection() -> None:
    reader = read(OK + b"\r\nabc")
    assert not reader.complete
    reader.end()
    assert reader.complete
    assert not reader.lasting
    assert b"".join(reader.chunks) == b"abc"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"no HTTP\r\n\r\n", id="no HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00", id="TLS"),
        pytest.param(b"HTTP/2.0 200 OK\r\n\r\n", id="HTTP/2"),
        pytest.param(b"HTTP/1.1 099 Odd\r\n\r\n", id="status"),
        pytest.param(
            b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", id="a switch unasked"
        ),
        pytest.param(OK + b"Content-Length: x\r\n\r\n", id="length"),
        pytest.param(OK + b"Content-Length: -1\r\n\r\n", id="negative length"),
        pytest.param(OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two lengths"),
        pytest.param(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", id="a coding that would be lost"),
        pytest.param(OK + b"Transfer-Encoding: gzip\r\n\r\n", id="a coding without chunks"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", id="size of a chunk"),
        pytest.param(OK + b"A: b\0c\r\n\r\n", id="NUL"),
        pytest.param(OK + b"A\r\n\r\n", id="no colon"),
        pytest.param(OK + b"A: b\r\n" * (MOST_FIELDS + 1) + b"\r\n", id="many fields"),
        pytest.param(OK + b"A: " + b"x" * LARGEST_HEAD, id="a head without end"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 4000, id="interim answers without end"),
    ],
)
def test_what_is_no_answer(data: bytes) -> None:
    with pytest.raises(MalformedAnswerError):
        read(data)


@pytest.mark.parametrize(
    ("method", "data"),
    [
        pytest.param("GET", OK + b"Content-Length: 1\r\n\r\nab", id="beyond the length"),
        pytest.param("HEAD", OK + b"Content-Length: 1\r\n\r\na", id="a body to HEAD"),
        pytest.param(
            "GET", OK + b"Content-Length: 0\r\n\r\n" + OK + b"Content-Length: 0\r\n\r\n", id="a second answer"
        ),
    ],
)
def test_what_comes_behind_an_answer_ends_the_connection(method: str, data: bytes) -> None:
    reader = read(data, method)
    assert reader.complete
    assert not reader.lasting
    assert b"".join(reader.chunks) in (b"", b"a")


@given(cut=st.integers(min_value=0, max_value=200))
def test_what_follows_a_switch_of_protocols_is_kept(cut: int) -> None:
    head = b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    reader = read(head + b"\x81\x02hi", pieces=[min(max(cut, 1), len(head) + 3)], upgrade=True)
    assert reader.complete
    assert reader.head is not None
    assert reader.head.status == 101
    assert reader.tail == b"\x81\x02hi"
