"""Waiting times between attempts, and answers that are not the API server's."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from berth.kube import client as client_module
from berth.kube.client import ApiClient, backoff
from berth.kube.connection import load_connection
from berth.kube.errors import ApiError
from berth.kube.http_answer import TooLargeError
from berth.kube.resources import CONFIGMAPS, Resource
from tests.support.api_server import Answer, Request, api_server, refusal
from tests.support.http_server import http_server
from tests.support.kube import until


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "backoff", lambda *_, **__: 0.0)


@given(
    attempt=st.integers(min_value=0, max_value=10_000),
    base=st.floats(min_value=0.01, max_value=5),
    cap=st.floats(min_value=0.01, max_value=600),
)
def test_wait_is_between_a_tenth_and_the_whole_of_the_exponential(attempt: int, base: float, cap: float) -> None:
    whole = min(cap, base * 2.0 ** min(attempt, 16))
    assert 0.1 * whole <= backoff(attempt, base=base, cap=cap) <= whole


@pytest.mark.parametrize(("attempt", "longest"), [(0, 0.2), (1, 0.4), (3, 1.6), (6, 10.0), (500, 10.0)], ids=str)
def test_defaults_double_up_to_ten_seconds(attempt: int, longest: float) -> None:
    waits = [backoff(attempt) for _ in range(200)]
    assert max(waits) <= longest
    assert min(waits) >= 0.1 * longest
    assert len(set(waits)) > 150  # jitter: clients that failed together do not return together


DATA = Path(__file__).resolve().parents[3] / "data"
NAMED = {"metadata": {"name": "c", "namespace": "ns", "resourceVersion": "1"}}
PAGE = b"<html><body>Please sign in</body></html>"
ODD = [
    pytest.param(Answer(200, PAGE), id="a proxy's page"),
    pytest.param(Answer(200, b""), id="nothing"),
    pytest.param(Answer(200, b'{"metadata":{"na'), id="cut off"),
    pytest.param(Answer(200, b"[]"), id="a list"),
]


def once(odd: Answer, then: Any) -> Callable[[Request], Answer]:
    """A server whose first answer is odd."""
    answers = iter([odd])
    return lambda _: next(answers, Answer(200, then))


@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_answer_to_a_read_is_asked_for_again(odd: Answer, no_pause: None) -> None:
    with api_server(once(odd, NAMED)) as server:
        async with ApiClient(server.connection()) as client:
            assert (await client.get(CONFIGMAPS, "c", namespace="ns")).metadata.name == "c"
    assert server.count("GET") == 2


@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_answer_to_a_creation_settles_nothing(odd: Answer) -> None:
    """A binding must not count as accepted because some proxy said 200."""
    with api_server(lambda _: odd) as server:
        async with ApiClient(server.connection()) as client:
            with pytest.raises(ApiError, match="UnreadableAnswer: status 200 with no JSON object") as caught:
                await client.create(CONFIGMAPS, NAMED, namespace="ns")
    assert caught.value.retryable
    assert server.count("POST") == 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"login": "https://sso.example"}, id="JSON of something else"),
        pytest.param({"metadata": {"name": "other"}}, id="another object"),
        pytest.param({"metadata": "none"}, id="wrong types"),
        pytest.param(b'{"metadata": oops}', id="broken inside"),
    ],
)
async def test_json_that_is_not_the_object_is_an_error_of_the_gateway(body: Any) -> None:
    with api_server(lambda _: Answer(200, body)) as server:
        async with ApiClient(server.connection()) as client:
            readings: list[Resource[Any]] = [CONFIGMAPS, CONFIGMAPS.raw]
            for resource in readings:
                with pytest.raises(ApiError, match="UnreadableAnswer") as caught:
                    await client.get(resource, "c", namespace="ns")
                assert caught.value.status == 502


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"login": "https://sso.example"}, id="JSON of something else"),
        pytest.param({"metadata": {"resourceVersion": "1"}, "items": "none"}, id="wrong types"),
        pytest.param({"metadata": {"resourceVersion": "1"}, "items": [{"metadata": 1}]}, id="odd item"),
        pytest.param({"metadata": {"name": "c", "resourceVersion": "1"}}, id="an object"),
        pytest.param({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []}, id="of another kind"),
        pytest.param({"kind": "ConfigMapList", "metadata": {}, "items": []}, id="without version"),
    ],
)
async def test_json_that_is_no_list_is_no_empty_cluster(body: Any) -> None:
    with api_server(lambda _: Answer(200, body)) as server:
        async with ApiClient(server.connection()) as client:
            with pytest.raises(ApiError, match="UnreadableAnswer"):
                await client.list_all(CONFIGMAPS)


@pytest.mark.parametrize(
    ("version", "query"), [pytest.param("", "", id="newest"), pytest.param("7", "?resourceVersion=7", id="since 7")]
)
async def test_an_object_is_read_as_new_as_is_asked(version: str, query: str) -> None:
    with api_server(lambda _: Answer(200, NAMED)) as server:
        async with ApiClient(server.connection()) as client:
            await client.get(CONFIGMAPS, "c", namespace="ns", not_older_than=version)
    assert [request.path for request in server.requests] == [f"/api/v1/namespaces/ns/configmaps/c{query}"]


async def test_one_object_that_is_nested_deeply_spoils_no_list() -> None:
    deep = b'{"metadata":{"name":"deep","managedFields":%s1%s}}' % (b"[" * 9000, b"]" * 9000)
    items = b'{"metadata":{"resourceVersion":"1"},"items":[%s,{"metadata":{"name":"c"}}]}' % deep
    with api_server(lambda request: Answer(200, items if request.path.count("?") else deep)) as server:
        async with ApiClient(server.connection()) as client:
            assert [item.metadata.name for item in await client.list_all(CONFIGMAPS)] == ["deep", "c"]
            assert (await client.get(CONFIGMAPS, "deep", namespace="ns")).metadata.name == "deep"
            assert (await client.get(CONFIGMAPS.raw, "deep", namespace="ns"))["metadata"]["name"] == "deep"


def expiring(count: int, *, page: int) -> Callable[[Request], Answer]:
    """A server whose list has expired by its second page, unless pages are as large as this."""

    def answer(request: Request) -> Answer:
        query = URL(request.path).query
        limit, start = int(query["limit"]), int(query.get("continue", 0))
        if start and limit < page:
            return refusal(410, "Expired")
        end = min(count, start + limit)
        items = [{"metadata": {"name": str(number)}} for number in range(start, end)]
        token = str(end) if end < count else ""
        return Answer(200, {"metadata": {"resourceVersion": "1", "continue": token}, "items": items})

    return answer


@pytest.mark.parametrize(
    ("page", "asked"), [(0, [500] * 3), (4 * 500, [500] * 2 + [2000]), (10**6, [500] * 2 + [2000])]
)
async def test_a_list_that_expires_between_pages_is_read_in_larger_ones(page: int, asked: list[int]) -> None:
    """Where answers are slow, hundreds of pages take longer than the API server keeps the version that they are of."""
    with api_server(expiring(1500, page=page)) as server:
        async with ApiClient(server.connection()) as client:
            assert len(await client.list_all(CONFIGMAPS)) == 1500
            assert [int(URL(request.path).query["limit"]) for request in server.requests] == asked
            await anext(client.list_pages(CONFIGMAPS))
            assert URL(server.requests[-1].path).query["limit"] == "500"


async def test_a_list_that_never_comes_to_an_end_is_an_error(no_pause: None) -> None:
    page = {"metadata": {"resourceVersion": "1", "continue": "x"}, "items": []}
    with api_server(lambda _: Answer(200, page)) as server:
        async with ApiClient(server.connection()) as client:
            with pytest.raises(ApiError, match="goes on where it is"):
                await client.list_all(CONFIGMAPS)
    assert server.count("GET") == 2


@pytest.mark.parametrize(
    ("pause", "error"),
    [pytest.param(0.0, TooLargeError, id="at once"), pytest.param(0.01, TimeoutError, id="bit by bit")],
)
async def test_the_refusal_of_a_watch_has_an_end(
    pause: float, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something on the way that says 502 and goes on talking held the watch up for ever, or took all memory."""
    monkeypatch.setattr(client_module, "LARGEST_REFUSAL", 100_000)

    async def without_end(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        while True:
            writer.write(b"x" * (1 if pause else 10_000))
            await writer.drain()
            await asyncio.sleep(pause)

    async with http_server(without_end) as server, ApiClient(server.connection(), timeout=0.5) as client:
        with pytest.raises(error):
            await anext(client.watch_chunks(CONFIGMAPS, resource_version="1"))


async def test_a_list_that_expires_at_once_is_an_error() -> None:
    with api_server(lambda _: refusal(410, "Expired")) as server:
        async with ApiClient(server.connection()) as client:
            with pytest.raises(ApiError, match="Expired"):
                await client.list_all(CONFIGMAPS)
    assert server.count("GET") == 1


@pytest.mark.parametrize("verb", ["GET", "POST", "watch"])
async def test_a_rotated_authority_is_read_again(verb: str, tmp_path: Path, no_pause: None) -> None:
    """The file holds an authority that signed nothing here; by the time it is needed, the right one."""
    authority = tmp_path / "ca.crt"
    authority.write_text((DATA / "client-certificate" / "ca.crt").read_text())
    with api_server(lambda _: Answer(200, NAMED), tls=DATA / "server-certificate") as server:
        path = server.kubeconfig(tmp_path, certificate_authority=str(authority))
        async with ApiClient(await load_connection(kubeconfig=path), retries=0) as client:
            authority.write_text((DATA / "server-certificate" / "server.crt").read_text())
            if verb == "GET":
                assert (await client.get(CONFIGMAPS, "c", namespace="ns")).metadata.name == "c"
            elif verb == "POST":
                await client.create(CONFIGMAPS, NAMED, namespace="ns")
            else:
                with pytest.raises(aiohttp.ClientSSLError):
                    await anext(client.watch_chunks(CONFIGMAPS, resource_version="1"))
                await anext(client.watch_chunks(CONFIGMAPS, resource_version="1"), None)
    assert len(server.requests) == 1


async def test_an_authority_that_stays_wrong_is_an_error(tmp_path: Path) -> None:
    with api_server(lambda _: Answer(200, NAMED), tls=DATA / "server-certificate") as server:
        path = server.kubeconfig(tmp_path, certificate_authority=str(DATA / "client-certificate" / "ca.crt"))
        async with ApiClient(await load_connection(kubeconfig=path), retries=0) as client:
            with pytest.raises(ssl.SSLCertVerificationError):
                await client.get(CONFIGMAPS, "c", namespace="ns")
    assert server.requests == []


@pytest.mark.parametrize("connections", [0, -1])
def test_a_client_that_lets_no_request_through_is_refused(connections: int, closed_client: ApiClient) -> None:
    with pytest.raises(ValueError, match="lets no request through"):
        ApiClient(closed_client.connection, max_connections=connections)


async def test_a_client_is_widened_and_never_narrowed() -> None:
    held, at_once = asyncio.Event(), 0

    async def hold(_: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal at_once
        at_once += 1
        await held.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with http_server(hold) as server, ApiClient(server.connection(), max_connections=1) as client:
        client.widen(3)
        client.widen(2)
        creations = [
            asyncio.create_task(client.create(CONFIGMAPS, {}, namespace="ns", name="c", subresource="x"))
            for _ in range(4)
        ]
        await until(lambda: at_once == 3, what="three at once")
        assert client._slots.locked()
        held.set()
        await asyncio.gather(*creations)
    assert at_once == 4
