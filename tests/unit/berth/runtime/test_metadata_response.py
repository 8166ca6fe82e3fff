"""What kopf reads of answers; with kopf and a real API server: tests/integration/test_operator.py."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from kopf._cogs.clients.errors import APIError, check_response

from berth.kube import lines
from berth.kube.decoding import MAX_DEPTH, shallow
from berth.kube.http_answer import TooLargeError
from berth.runtime import metadata_response
from berth.runtime.metadata_response import MetadataResponse
from tests.support.api_server import Answer, api_server

DEEP, SOMEWHAT = (b'{"a":%s1%s,"b":2}' % (b"[" * depth, b"]" * depth) for depth in (9000, 2 * MAX_DEPTH))
CUT = json.loads(b'{"a":%snull%s,"b":2}' % (b"[" * (MAX_DEPTH - 1), b"]" * (MAX_DEPTH - 1)))
PLAIN = b'{"c":[{"d":"}"}]}'

KEY = {"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7"}
OBJECT = {
    "metadata": {**KEY, "managedFields": [{"manager": "x"}], "labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {"workloads": [{"workload": {"name": "web"}}]},
    "status": {"topologyOrder": []},
}
TYPED = {"apiVersion": "g/v1", "kind": "AppGroup"}
PAGE = {"apiVersion": "g/v1", "kind": "AppGroupList", "metadata": {"resourceVersion": "9", "continue": "more"}}
BOOKMARK = {**TYPED, "metadata": {"resourceVersion": "9", "creationTimestamp": None}}
STATUS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Expired", "code": 410}
DISCOVERY = {"kind": "APIResourceList", "groupVersion": "g/v1", "resources": [{"name": "appgroups", "verbs": ["list"]}]}


ODD: list[Any] = [
    None,
    {},
    {"metadata": None},
    {"metadata": {"uid": "u"}},
    {"metadata": {"name": "no version"}},
    [],
    "text",
    5,
    {"metadata": []},
    {"metadata": {"name": 5, "resourceVersion": "5"}},
]
"""Objects that are none, or lack what every object has."""


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("body", "read"),
    [
        pytest.param(PLAIN, json.loads(PLAIN), id="plain"),
        pytest.param(DEEP, CUT, id="nested deeply"),
        pytest.param(SOMEWHAT, CUT, id="nested as any decoder reads it"),
        pytest.param(as_json({**PAGE, "items": []}), {**PAGE, "items": []}, id="an empty list"),
        pytest.param(
            as_json({**PAGE, "items": [OBJECT, {**TYPED, **OBJECT}]}),
            {**PAGE, "items": [{"metadata": KEY}, {**TYPED, "metadata": KEY}]},
            id="objects of a list: which ones they are",
        ),
        pytest.param(
            as_json({**PAGE, "items": [{"metadata": KEY, "spec": 1}]}).replace(b": 1}", b":" + DEEP + b"}"),
            {**PAGE, "items": [{"metadata": KEY}]},
            id="a list with an object that is nested deeply",
        ),
        pytest.param(as_json({**PAGE, "items": None}), {**PAGE, "items": []}, id="a list whose objects are null"),
        pytest.param(as_json(PAGE), PAGE, id="a list without objects"),
        pytest.param(
            as_json({**PAGE, "items": [*ODD, OBJECT]}),
            {**PAGE, "items": [{"metadata": KEY}]},
            id="objects of which nobody can tell which ones they are are left out",
        ),
        pytest.param(as_json(STATUS), STATUS, id="a refusal"),
        pytest.param(as_json(DISCOVERY), DISCOVERY, id="what kinds there are"),
    ],
)
async def test_an_answer_is_read_at_any_depth(body: bytes, read: Any) -> None:
    with api_server(lambda _: Answer(200, body)) as server:
        async with aiohttp.ClientSession(response_class=MetadataResponse) as session, session.get(server.url) as answer:
            assert await answer.json() == read


@pytest.mark.parametrize(
    ("line", "read"),
    [
        pytest.param({"type": "ADDED", "object": {**TYPED, **OBJECT}}, {**TYPED, "metadata": KEY}, id="an object"),
        pytest.param(
            {"type": "BOOKMARK", "object": BOOKMARK}, {**TYPED, "metadata": {"resourceVersion": "9"}}, id="a bookmark"
        ),
        pytest.param({"type": "ERROR", "object": STATUS}, STATUS, id="an error, of which the code matters"),
    ],
)
async def test_of_a_watch_is_read_which_object_it_is(line: Any, read: Any) -> None:
    with api_server(lambda _: Answer(200, as_json(line) + b"\n")) as server:
        async with aiohttp.ClientSession(response_class=MetadataResponse) as session, session.get(server.url) as answer:
            chunks = b"".join([chunk async for chunk in answer.content.iter_chunked(2**20)])
    assert json.loads(chunks) == {"type": line["type"], "object": read}


@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
async def test_events_of_odd_objects_are_left_out(odd: Any) -> None:
    lines = [as_json({"type": kind, "object": each}) for kind in ("ADDED", "DELETED") for each in (odd, OBJECT)]
    with api_server(lambda _: Answer(200, b"\n".join([*lines, b""]))) as server:
        async with aiohttp.ClientSession(response_class=MetadataResponse) as session, session.get(server.url) as answer:
            chunks = b"".join([chunk async for chunk in answer.content.iter_chunked(2**20)])
    assert [json.loads(each)["object"] for each in chunks.split()] == [{"metadata": KEY}] * 2


@pytest.mark.parametrize(
    ("code", "told"),
    [
        pytest.param(410, True, id="expired"),
        pytest.param(None, True, id="none stated"),
        pytest.param(500, False, id="trouble"),
        pytest.param(504, False, id="timeout"),
        pytest.param(429, False, id="overloaded"),
    ],
)
async def test_of_errors_in_a_watch_kopf_sees_those_that_end_the_version(code: int | None, told: bool) -> None:
    """With any other it would end, and list every kind again."""
    line = as_json({"type": "ERROR", "object": {**STATUS, "code": code} if code else {"metadata": {}}})
    with api_server(lambda _: Answer(200, line + b"\n")) as server:
        async with aiohttp.ClientSession(response_class=MetadataResponse) as session, session.get(server.url) as answer:
            chunks = b"".join([chunk async for chunk in answer.content.iter_chunked(2**20)])
    assert chunks == (line if told else b"") + b"\n"


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
        async with aiohttp.ClientSession(response_class=MetadataResponse) as session, session.get(server.url) as answer:
            with pytest.raises(json.JSONDecodeError):
                await answer.json()
            with pytest.raises(APIError):
                await check_response(answer)


@pytest.mark.parametrize("size", [7, 2**20], ids=["lines in many chunks", "many lines in a chunk"])
async def test_every_line_of_a_watch_is_read_at_any_depth(size: int) -> None:
    error = as_json({"type": "ERROR", "object": STATUS}).replace(b"Expired", b'","details":' + SOMEWHAT + b',"x":"')
    lines = [PLAIN, DEEP, b"", b"<html>", PLAIN, SOMEWHAT, error]
    with api_server(lambda _: Answer(200, b"\n".join([*lines, b'{"cut off']))) as server:
        async with aiohttp.ClientSession(response_class=MetadataResponse) as session, session.get(server.url) as answer:
            read = b"".join([chunk async for chunk in answer.content.iter_chunked(size)]).split(b"\n")
            assert answer.content.at_eof()
    assert [read[0], *read[2:5], read[7]] == [PLAIN, b"", b"<html>", PLAIN, b""]
    assert json.loads(read[1]) == json.loads(read[5]) == CUT
    # Two levels of its own are around it.
    told = json.loads(read[6])
    assert (told["type"], told["object"]["code"]) == ("ERROR", 410)
    assert told["object"]["details"]["b"] == 2
    assert shallow(read[6]) == read[6]


@pytest.mark.parametrize("status", [200, 503], ids=["a list", "a refusal"])
async def test_an_answer_without_end_is_refused(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take all memory, within the time that kopf has for it."""
    monkeypatch.setattr(metadata_response, "LARGEST_BODY", 100)
    page = as_json({**PAGE, "items": [OBJECT]})
    with api_server(lambda _: Answer(status, page)) as server:
        async with aiohttp.ClientSession(response_class=MetadataResponse) as session, session.get(server.url) as answer:
            with pytest.raises(TooLargeError, match="a body of more than 100 bytes"):
                await (answer.json() if status == 200 else check_response(answer))


async def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take all memory, and no silence would tell."""
    monkeypatch.setattr(lines, "LARGEST_LINE", 100)
    whole = as_json({"type": "ADDED", "object": OBJECT})
    with api_server(lambda _: Answer(200, whole + b"\n" + b"x" * 101)) as server:
        async with aiohttp.ClientSession(response_class=MetadataResponse) as session, session.get(server.url) as answer:
            chunks = answer.content.iter_chunked(len(whole) + 1)
            assert json.loads(await anext(chunks))["object"] == {"metadata": KEY}
            with pytest.raises(ValueError, match="a line of more than 100 bytes"):
                await anext(chunks)


@pytest.mark.parametrize(
    ("status", "stated", "waits"),
    [
        pytest.param(429, "2", 2, id="seconds"),
        pytest.param(429, "0.5", 0, id="less than one"),
        pytest.param(429, "999999", 60, id="days"),
        pytest.param(429, "inf", 60, id="for ever"),
        pytest.param(429, "Wed, 21 Oct 2027 07:28:00 GMT", 0, id="a date"),
        pytest.param(429, "-1", 0, id="negative"),
        pytest.param(429, None, 0, id="in the body alone, which counts only without a header"),
        pytest.param(503, "999999", None, id="no 429, for which kopf has pauses of its own"),
    ],
)
async def test_kopf_waits_no_longer_than_others(status: int, stated: str | None, waits: int | None) -> None:
    body = as_json({**STATUS, "code": status, "details": {"retryAfterSeconds": 999999}})
    headers = {"Retry-After": stated} if stated else {}
    with api_server(lambda _: Answer(status, body, headers)) as server:
        async with aiohttp.ClientSession(response_class=MetadataResponse) as session, session.get(server.url) as answer:
            with pytest.raises(APIError) as refused:
                await check_response(answer)
    if waits is None:
        assert refused.value.headers["Retry-After"] == stated
    else:
        # As kopf reads it.
        assert int(float(refused.value.headers["Retry-After"])) == waits
