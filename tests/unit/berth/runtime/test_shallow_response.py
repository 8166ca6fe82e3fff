"""What kopf reads of answers; with kopf and a real API server: tests/integration/test_operator.py."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from kopf._cogs.clients.errors import APIError, check_response

from berth.kube.decoding import MAX_DEPTH
from berth.runtime.shallow_response import ShallowResponse
from tests.support.api_server import Answer, api_server

DEEP = b'{"a":%s1%s,"b":2}' % (b"[" * 9000, b"]" * 9000)
CUT = json.loads(b'{"a":%snull%s,"b":2}' % (b"[" * (MAX_DEPTH - 1), b"]" * (MAX_DEPTH - 1)))
PLAIN = b'{"c":[{"d":"}"}]}'


@pytest.mark.parametrize(
    ("body", "read"), [pytest.param(PLAIN, json.loads(PLAIN), id="plain"), pytest.param(DEEP, CUT, id="nested deeply")]
)
async def test_an_object_is_read_at_any_depth(body: bytes, read: Any) -> None:
    with api_server(lambda _: Answer(200, body)) as server:
        async with aiohttp.ClientSession(response_class=ShallowResponse) as session, session.get(server.url) as answer:
            assert await answer.json() == read


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>nicht verf\xfcgbar</html>", id="another encoding"),
        pytest.param(b"\xff\xfe\x00", id="no text"),
        pytest.param(b"<html>", id="a page"),
    ],
)
async def test_what_is_no_json_is_refused_as_kopf_knows_it(body: bytes) -> None:
    """Kopf shows the text of a refusal that is no JSON; any other error than this would end it."""
    with api_server(lambda _: Answer(502, body)) as server:
        async with aiohttp.ClientSession(response_class=ShallowResponse) as session, session.get(server.url) as answer:
            with pytest.raises(json.JSONDecodeError):
                await answer.json()
            with pytest.raises(APIError):
                await check_response(answer)


@pytest.mark.parametrize("size", [7, 2**20], ids=["lines in many chunks", "many lines in a chunk"])
async def test_every_line_of_a_watch_is_read_at_any_depth(size: int) -> None:
    lines = [PLAIN, DEEP, b"", b"<html>", PLAIN]
    with api_server(lambda _: Answer(200, b"\n".join([*lines, b'{"cut off']))) as server:
        async with aiohttp.ClientSession(response_class=ShallowResponse) as session, session.get(server.url) as answer:
            read = b"".join([chunk async for chunk in answer.content.iter_chunked(size)]).split(b"\n")
            assert answer.content.at_eof()
    assert [read[0], *read[2:]] == [PLAIN, b"", b"<html>", PLAIN, b""]
    assert json.loads(read[1]) == CUT
