"""Where a watch goes on after it broke: at the version it had reached, or with a new list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import aiohttp
import msgspec
import pytest

from berth.kube import reflector as reflector_module
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.lists import ListMeta, RawList
from berth.kube.objects import ConfigMap
from berth.kube.page_size import LIST_PAGE
from berth.kube.reflector import Reflector
from berth.kube.resources import CONFIGMAPS
from tests.support.api_server import Answer, Request, api_server
from tests.support.kube import running, until


@pytest.fixture
def reflector(closed_client: ApiClient) -> Reflector[ConfigMap]:
    return Reflector(closed_client, CONFIGMAPS)


def line(kind: str, **about: object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": about}) + b"\n"


@pytest.mark.parametrize(
    ("code", "times", "lists"),
    [
        pytest.param(500, 1, 1, id="server trouble: from the last version"),
        pytest.param(504, 1, 1, id="timeout: from the last version"),
        pytest.param(429, 6, 1, id="overloaded: never listed again, however often"),
        pytest.param(500, 4, 2, id="refused again and again: listed again"),
        pytest.param(410, 1, 2, id="expired: listed again"),
    ],
)
async def test_after_an_error_in_the_stream_the_watch_goes_on(
    code: int, times: int, lists: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector_module, "backoff", lambda *_, **__: 0.0)
    refusals = iter([line("ERROR", code=code)] * times)
    late = line("ADDED", metadata={"namespace": "ns", "name": "late", "uid": "u1", "resourceVersion": "9"})

    def answer(request: Request) -> Answer:
        if "watch=true" in request.path:
            return Answer(200, next(refusals, late))
        return Answer(200, {"metadata": {"resourceVersion": "5"}, "items": []})

    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            reflector = Reflector(client, CONFIGMAPS)
            arrived = asyncio.Event()
            reflector.add_handler(lambda _old, _new: arrived.set())
            async with running(reflector.run()):
                await asyncio.wait_for(arrived.wait(), 20)
        paths = [request.path for request in server.requests]
    assert len([path for path in paths if f"limit={LIST_PAGE}" in path]) == lists
    watches = [path for path in paths if "watch=true" in path][: times + 1]
    assert all("resourceVersion=5" in path for path in watches)
    assert len(watches) == times + 1


async def test_a_page_of_a_proxy_for_the_list_and_for_the_watch_ends_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector_module, "backoff", lambda *_, **__: 0.0)
    page = Answer(200, b"<html>Please sign in</html>\n", {"Content-Type": "text/html"})
    odd = {"watch": [page], "list": [page] * 4}  # a list is asked for several times

    def answer(request: Request) -> Answer:
        kind = "watch" if "watch=true" in request.path else "list"
        if odd[kind]:
            return odd[kind].pop()
        item = {"metadata": {"namespace": "ns", "name": "there", "uid": "u1", "resourceVersion": "5"}}
        return Answer(200, {"metadata": {"resourceVersion": "5"}, "items": [item]} if kind == "list" else b"")

    with api_server(answer) as server:
        async with ApiClient(server.connection(), retries=0) as client:
            reflector = Reflector(client, CONFIGMAPS)
            async with running(reflector.run()):
                await until(lambda: not odd["list"] and not odd["watch"], what="both pages were read")
                seen = len(server.requests)
                await until(lambda: len(server.requests) > seen, what="it goes on")
                assert list(reflector.objects) == ["ns/there"]


@pytest.mark.parametrize(
    ("error", "version"),
    [
        pytest.param(aiohttp.ConnectionTimeoutError("connect"), "5", id="nobody was reached: from the last version"),
        pytest.param(aiohttp.ClientConnectionError("refused"), "5", id="refused: from the last version"),
        pytest.param(aiohttp.SocketTimeoutError("read"), "", id="silent from the start: listed again"),
        pytest.param(TimeoutError(), "", id="any other timeout: listed again"),
    ],
)
async def test_where_a_watch_goes_on_after_a_broken_connection(
    reflector: Reflector[ConfigMap], monkeypatch: pytest.MonkeyPatch, error: Exception, version: str
) -> None:
    async def chunks(*_: object, **__: object) -> AsyncGenerator[list[bytes], None]:
        raise error
        yield []

    async def pause(_: Exception) -> None: ...

    async def at_present(*_: object, **__: object) -> AsyncGenerator[RawList, None]:
        yield RawList(ListMeta("5"))

    monkeypatch.setattr(reflector._client, "watch_chunks", chunks)
    monkeypatch.setattr(reflector._client, "list_pages", at_present)
    monkeypatch.setattr(reflector, "_pause", pause)
    reflector._version = "5"
    for _ in range(5):
        await reflector._step()
        assert reflector._version == version
        reflector._version = "5"


async def test_watches_that_expire_at_once_are_not_listed_again_without_a_pause(
    reflector: Reflector[ConfigMap], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def chunks(*_: object, **__: object) -> AsyncGenerator[list[bytes], None]:
        yield [line("BOOKMARK", metadata={"resourceVersion": "9"}).rstrip()]
        yield [line("ERROR", code=410).rstrip()]

    async def listed() -> None:
        reflector._version = "5"

    pauses: list[Exception] = []

    async def pause(error: Exception) -> None:
        pauses.append(error)

    monkeypatch.setattr(reflector._client, "watch_chunks", chunks)
    monkeypatch.setattr(reflector, "_list", listed)
    monkeypatch.setattr(reflector, "_pause", pause)
    for _ in range(5):
        await reflector._step()
    assert len(pauses) == 4  # the first end may be the ordinary end of an old version


@pytest.mark.parametrize("error", [None, aiohttp.ClientPayloadError("cut")], ids=["ended early", "cut"])
@pytest.mark.parametrize(
    ("now", "lists"),
    [
        pytest.param("9", 1, id="where it was"),
        pytest.param("12", 1, id="further on"),
        pytest.param("8", 2, id="etcd was restored from a backup"),
    ],
)
async def test_a_watch_that_was_broken_off_goes_on_unless_the_server_has_gone_back(
    monkeypatch: pytest.MonkeyPatch, now: str, lists: int, error: Exception | None
) -> None:
    """The server takes a version of the future, is silent until it has come, and then goes on as if all was well."""
    monkeypatch.setattr(reflector_module, "backoff", lambda *_, **__: 0.0)
    watched: list[str] = []

    async def chunks(*_: object, resource_version: str, **__: object) -> AsyncGenerator[list[bytes], None]:
        watched.append(resource_version)
        if len(watched) > 1:
            await asyncio.Event().wait()
        yield [line("BOOKMARK", metadata={"resourceVersion": "9"}).rstrip()]
        if error is not None:
            raise error

    def answer(request: Request) -> Answer:
        name, version = ("late", now) if watched else ("early", "7")
        item = {"metadata": {"namespace": "ns", "name": name, "uid": name}}
        return Answer(200, {"metadata": {"resourceVersion": version}, "items": [item]})

    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            monkeypatch.setattr(client, "watch_chunks", chunks)
            reflector = Reflector(client, CONFIGMAPS)
            async with running(reflector.run()):
                await until(lambda: len(watched) == 2, what="the watch goes on")
        limits = [request.path.rpartition("limit=")[2] for request in server.requests]
    assert limits == [str(LIST_PAGE), "1", *[str(LIST_PAGE)] * (lists - 1)]
    assert watched == ["7", "9" if lists == 1 else now]
    assert set(reflector.objects) == {"ns/early" if lists == 1 else "ns/late"}


@pytest.mark.parametrize("error", [None, aiohttp.ClientPayloadError("cut")], ids=["ended early", "cut"])
async def test_where_no_watch_comes_through_everything_is_listed_again(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """As behind a proxy that cuts every watch within the first line."""
    monkeypatch.setattr(reflector_module, "backoff", lambda *_, **__: 0.0)
    watched = 0

    async def chunks(*_: object, **__: object) -> AsyncGenerator[list[bytes], None]:
        nonlocal watched
        watched += 1
        if error is not None:
            raise error
        return
        yield []

    def answer(_: Request) -> Answer:
        item = {"metadata": {"namespace": "ns", "name": "late" if watched else "early", "uid": "u"}}
        return Answer(200, {"metadata": {"resourceVersion": "9"}, "items": [item]})

    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            monkeypatch.setattr(client, "watch_chunks", chunks)
            reflector = Reflector(client, CONFIGMAPS)
            async with running(reflector.run()):
                await until(lambda: set(reflector.objects) == {"ns/late"}, what="the later object")
        limits = [request.path.rpartition("limit=")[2] for request in server.requests]
    # Not before it is certain that watches do not come through.
    assert limits[:5] == [str(LIST_PAGE), *["1"] * reflector_module.MAX_FRUITLESS, str(LIST_PAGE)]


@pytest.mark.parametrize(
    ("status", "known"),
    [
        pytest.param(403, True, id="a missing right"),
        pytest.param(404, True, id="a kind that is not there"),
        pytest.param(410, False, id="an old version"),
        pytest.param(429, False, id="too many requests"),
        pytest.param(503, False, id="a server in trouble"),
    ],
)
async def test_a_watch_that_nobody_lets_begin_is_known_until_it_begins(
    reflector: Reflector[ConfigMap], monkeypatch: pytest.MonkeyPatch, status: int, known: bool
) -> None:
    refusing = True

    async def chunks(*_: object, begun: Callable[[], None], **__: object) -> AsyncGenerator[list[bytes], None]:
        if refusing:
            raise ApiError(status=status, reason="Refused", message="words")
        begun()
        return
        yield []

    async def pause(_: Exception) -> None: ...

    monkeypatch.setattr(reflector._client, "watch_chunks", chunks)
    monkeypatch.setattr(reflector, "_pause", pause)
    monkeypatch.setattr(reflector_module, "backoff", lambda *_, **__: 0.0)
    reflector._version = "5"
    await reflector._step()
    assert (reflector.refusal is not None) is known
    refusing, reflector._version = False, "5"
    await reflector._step()
    assert reflector.refusal is None
