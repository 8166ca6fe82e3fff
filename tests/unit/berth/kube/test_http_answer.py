"""Answers of HTTP/1.1, however the network cuts them."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.http_answer import LARGEST_HEAD, AnswerReader, HttpAnswer, MalformedAnswerError, TooLargeError

OK = b"HTTP/1.1 200 OK\r\n"
ZIPPED = gzip.compress(b"{}" * 500)
ANSWERS = [
    pytest.param(OK + b"Content-Length: 2\r\n\r\n{}", HttpAnswer(200, b"{}", None), True, id="length"),
    pytest.param(OK + b"content-LENGTH:0\r\n\r\n", HttpAnswer(200, b"", None), True, id="nothing"),
    pytest.param(
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno",
        HttpAnswer(429, b"no", "7"),
        True,
        id="come again later",
    ),
    pytest.param(
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        HttpAnswer(200, b"abc0123456789", None),
        True,
        id="chunks",
    ),
    pytest.param(
        OK + b"Transfer-Encoding: Chunked\r\n\r\n2\r\n\r\n\r\n0\r\nX: y\r\nZ: 0\r\n\r\n",
        HttpAnswer(200, b"\r\n", None),
        True,
        id="headers after chunks",
    ),
    pytest.param(
        b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx",
        HttpAnswer(200, b"x", None),
        True,
        id="interim answers",
    ),
    pytest.param(
        OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(ZIPPED) + ZIPPED,
        HttpAnswer(200, b"{}" * 500, None),
        True,
        id="compressed",
    ),
    pytest.param(
        OK + b"Content-Encoding: identity\r\nContent-Length: 1\r\n\r\nx",
        HttpAnswer(200, b"x", None),
        True,
        id="as it is",
    ),
    pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", HttpAnswer(204, b"", None), True, id="no content"),
    pytest.param(
        OK + b"Connection: close\r\nContent-Length: 1\r\n\r\nx", HttpAnswer(200, b"x", None), False, id="the last one"
    ),
    pytest.param(
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", HttpAnswer(200, b"x", None), False, id="an old server"
    ),
]


@pytest.mark.parametrize(("data", "answer", "lasting"), ANSWERS)
@given(cuts=st.lists(st.integers(min_value=0, max_value=200), max_size=8))
def test_an_answer_is_the_same_in_whatever_pieces_it_comes(
    data: bytes, answer: HttpAnswer, lasting: bool, cuts: list[int]
) -> None:
    reader = AnswerReader()
    places = sorted({min(cut, len(data) - 1) for cut in cuts} | {0})
    pieces = [data[start:end] for start, end in zip(places, [*places[1:], len(data)], strict=True)]
    assert [reader.feed(piece) for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert reader.feed(pieces[-1]) == answer
    assert (reader.lasting, reader.empty, reader.end()) == (lasting, True, None)


def test_answers_follow_each_other() -> None:
    reader = AnswerReader()
    for _ in range(2):
        for data, answer, lasting in (parameter.values for parameter in ANSWERS):
            if lasting:
                assert reader.feed(data) == answer  # type: ignore[arg-type]


def test_an_answer_that_nobody_asked_for_is_no_beginning_of_the_next() -> None:
    reader = AnswerReader()
    assert reader.feed(2 * (OK + b"Content-Length: 2\r\n\r\n{}")) == HttpAnswer(200, b"{}", None)
    assert not reader.empty


def test_a_large_answer_may_come_in_any_number_of_chunks() -> None:
    reader = AnswerReader()
    assert reader.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n") is None
    for _ in range(LARGEST_HEAD // 2):
        assert reader.feed(b"1\r\nx\r\n") is None
    answer = reader.feed(b"0\r\n\r\n")
    assert answer is not None
    assert answer.body == b"x" * (LARGEST_HEAD // 2)


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    reader = AnswerReader()
    assert reader.feed(OK + b"\r\n{") is None
    assert reader.feed(b"}") is None
    assert not reader.lasting
    assert reader.end() == HttpAnswer(200, b"{}", None)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConte", id="in the headers"),
        pytest.param(OK + b"Content-Length: 3\r\n\r\nab", id="in the body"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", id="before the last chunk"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n", id="after an interim answer"),
    ],
)
def test_an_answer_that_is_cut_off_is_none(data: bytes) -> None:
    reader = AnswerReader()
    assert reader.feed(data) is None
    assert reader.end() is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/2 200\r\n\r\n", id="another version"),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", id="no status"),
        pytest.param(b"HTTP/1.1 -12\r\n\r\n", id="negative status"),
        pytest.param(b"HTTP/1.1 999 X\r\n\r\n", id="no such status"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", id="an upgrade"),
        pytest.param(b"HTTP/1.1 304 Not Modified\r\n\r\n", id="not modified"),
        pytest.param(OK + b"Content-Length: -1\r\n\r\n", id="negative length"),
        pytest.param(OK + b"Content-Length: 1_0\r\n\r\n", id="odd length"),
        pytest.param(OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two lengths"),
        pytest.param(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", id="compressed on the way"),
        pytest.param(OK + b"Content-Encoding: br\r\n\r\n", id="compressed in another way"),
        pytest.param(OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", id="not compressed"),
        pytest.param(OK + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n" + ZIPPED[:9], id="compressed in part"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", id="no size of a chunk"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcd", id="a chunk of another size"),
        pytest.param(b"x" * (LARGEST_HEAD + 1), id="headers without end"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * (LARGEST_HEAD + 1), id="size without end"),
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedAnswerError):
        AnswerReader().feed(data)


LARGE = b"x" * 1000
HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(OK + b"Content-Length: 1000\r\n\r\n" + LARGE, id="length"),
        pytest.param(HEAD + b"3e8\r\n" + LARGE + b"\r\n0\r\n\r\n", id="chunks"),
        pytest.param(HEAD + b"3e8\r\n" + LARGE + b"\r\n", id="chunks without end"),
        pytest.param(OK + b"\r\n" + LARGE, id="until the connection ends"),
        pytest.param(
            OK
            + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(gzip.compress(LARGE))
            + gzip.compress(LARGE),
            id="compressed",
        ),
    ],
)
def test_a_body_that_is_larger_than_it_may_be_is_refused(data: bytes) -> None:
    reader = AnswerReader()
    reader.largest = 999
    with pytest.raises(TooLargeError, match="more than 999 bytes"):
        reader.feed(data)


def test_a_compressed_body_without_end_takes_no_more_memory_than_it_may() -> None:
    zeros = zlib.compressobj(wbits=31)
    body = b"".join(zeros.compress(bytes(2**20)) for _ in range(64)) + zeros.flush()
    reader = AnswerReader()
    reader.largest = 2**20
    tracemalloc.start()
    with pytest.raises(TooLargeError):
        reader.feed(OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()
