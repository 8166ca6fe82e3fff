"""Where the controller is, by what an API server says of its ConfigMap. Left out: a real API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_INSTANCE, CONFIGMAP_URL, SERVER_NAME
from berth.kube.client import ApiClient
from berth.runtime.measuring.calls import Endpoint
from berth.runtime.measuring.published import REFUSED_SECONDS, FollowedServer, PublishedServer
from tests.support.api_server import Answer, ApiServer, Request, api_server, refusal
from tests.support.kube import running, until

TOKEN = Path("/token")


def published(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": CONFIGMAP, "namespace": "berth-system"}, "data": data}


def whole(url: str = "https://192.0.2.1:8443") -> dict[str, Any]:
    return published(**{CONFIGMAP_URL: url, CONFIGMAP_CA: "certificate"})


async def ask(server: ApiServer, *again: bool) -> list[Endpoint]:
    async with ApiClient(server.connection(), user_agent="test") as client:
        where = PublishedServer(client, "berth-system", TOKEN)
        return [await where.endpoint(again=each) for each in again]


async def test_it_is_read_once_and_again_when_it_does_not_answer() -> None:
    answers = [whole(), whole("https://192.0.2.2:8443")]
    with api_server(lambda request: Answer(200, answers[min(len(server.requests) - 1, 1)])) as server:
        found = await ask(server, False, False, True, False)
    assert found[0] == Endpoint("https://192.0.2.1:8443", b"certificate", SERVER_NAME)
    assert [endpoint.url[-6] for endpoint in found] == ["1", "1", "2", "2"]
    assert [request.path.partition("?")[0] for request in server.requests] == [
        "/api/v1/namespaces/berth-system/configmaps/berth-latency"
    ] * 2


async def test_where_it_was_counts_while_nothing_can_be_read() -> None:
    answers = [Answer(200, whole()), refusal(403, "Forbidden"), Answer(200, published())]
    with api_server(lambda request: answers[min(len(server.requests) - 1, 2)]) as server:
        found = await ask(server, False, True, True)
    assert [endpoint.url[-6] for endpoint in found] == ["1"] * 3
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(Answer(200, published()), "does not say where", id="empty"),
        pytest.param(Answer(200, whole("http://192.0.2.1")), "does not say where", id="without TLS"),
        pytest.param(
            Answer(200, published(**{CONFIGMAP_URL: "https://c"})), "does not say where", id="nothing to trust"
        ),
        pytest.param(refusal(404, "NotFound"), "cannot be read", id="not there"),
        pytest.param(refusal(403, "Forbidden"), "cannot be read", id="not allowed"),
    ],
)
async def test_what_does_not_say_it(answer: Answer, says: str) -> None:
    with api_server(lambda _: answer) as server, pytest.raises(ValueError, match=says):
        await ask(server, False)


class Watched:
    """An API server whose ConfigMap is followed."""

    def __init__(self, **data: str) -> None:
        self.version = 1
        self.items: list[dict[str, Any]] = []
        self.refused: int | None = None
        self.told: list[int] = []
        self.lists = self.watches = self.reads = 0
        if data:
            self.write(**data)

    def write(self, **data: str) -> None:
        """Write it."""
        self.version += 1
        found = published(**data)
        found["metadata"] |= {"uid": "u", "resourceVersion": str(self.version)}
        self.items = [found]

    def answer(self, request: Request) -> Answer:
        """List, watch or read; a watch tells at once what there is, and ends."""
        named = request.path.partition("?")[0].endswith(f"/{CONFIGMAP}")
        self.reads += named
        if named:
            return Answer(200, self.items[0]) if self.items else refusal(404, "NotFound")
        watch = "watch=" in request.path
        self.watches += watch
        self.lists += not watch
        if self.refused is not None:
            return refusal(self.refused, "Refused")
        assert f"metadata.name%3D{CONFIGMAP}" in request.path
        if not watch:
            return Answer(200, {"metadata": {"resourceVersion": str(self.version)}, "items": self.items})
        self.told.append(self.version)
        lines = [json.dumps({"type": "MODIFIED", "object": item}).encode() + b"\n" for item in self.items]
        return Answer(200, b"".join(lines))


@asynccontextmanager
async def following(watched: Watched) -> AsyncIterator[FollowedServer]:
    with api_server(watched.answer) as server:
        async with ApiClient(server.connection(), user_agent="test") as client:
            found = FollowedServer(client, "berth-system", TOKEN)
            async with asyncio.timeout(60), running(found.run()):
                yield found


def stated(number: int, instance: str = "") -> dict[str, str]:
    found = {CONFIGMAP_URL: f"https://192.0.2.{number}", CONFIGMAP_CA: "certificate"}
    return {**found, CONFIGMAP_INSTANCE: instance} if instance else found


async def test_one_that_is_there_from_the_beginning_is_no_other() -> None:
    async with following(Watched(**stated(1))) as server:
        first = server.another()
        assert (await server.endpoint(again=False)).url == "https://192.0.2.1"
        assert not first.is_set()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(stated(1), stated(2), id="another address"),
        pytest.param(stated(1, "a"), stated(1, "b"), id="begun anew at the same address"),
        pytest.param(stated(1), stated(1) | {CONFIGMAP_CA: "renewed"}, id="another certificate"),
        pytest.param({}, stated(1), id="the first"),
        pytest.param(stated(1) | {CONFIGMAP_CA: ""}, stated(1), id="one that was not to be believed"),
    ],
)
async def test_another_is_heard_of(before: dict[str, str], after: dict[str, str]) -> None:
    watched = Watched(**before)
    async with following(watched) as server:
        if before.get(CONFIGMAP_CA):
            assert (await server.endpoint(again=False)).url == before[CONFIGMAP_URL]
        else:
            with pytest.raises(ValueError, match="does not say where"):
                await server.endpoint(again=False)
        another = server.another()
        watched.write(**after)
        await another.wait()
        found = await server.endpoint(again=False)
        assert found == Endpoint(after[CONFIGMAP_URL], after[CONFIGMAP_CA].encode(), SERVER_NAME)
        assert server.another() is not another


async def test_what_says_nothing_new_and_what_is_taken_away_ends_nothing() -> None:
    watched = Watched(**stated(1, "a"))
    async with following(watched) as server:
        await server.endpoint(again=False)
        another = server.another()
        for data in (stated(1, "a"), {}, {CONFIGMAP_URL: "nonsense"}):
            watched.write(**data)
            # Whoever asks again has taken in what it was told before.
            await until(lambda: watched.told.count(watched.version) > 1, what="a look at it")
            assert (await server.endpoint(again=True)).url == "https://192.0.2.1"
        assert not another.is_set()


@pytest.mark.parametrize("status", [pytest.param(403, id="without a right"), pytest.param(500, id="in trouble")])
async def test_where_it_cannot_be_listed_it_is_read(status: int) -> None:
    watched = Watched(**stated(1))
    watched.refused = status
    async with following(watched) as server:
        assert (await server.endpoint(again=False)).url == "https://192.0.2.1"
        watched.write(**stated(2))
        assert [(await server.endpoint(again=again)).url[-1] for again in (False, True)] == ["1", "2"]


async def test_who_may_not_list_it_tries_that_again_after_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def pass_by(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 40:
            await asyncio.Event().wait()

    watched = Watched(**stated(1))
    watched.refused = 403
    monkeypatch.setattr("berth.kube.reflector.asyncio", _AsyncioWith(pass_by))
    async with following(watched):
        await until(lambda: len(waits) == 40, what="forty attempts")
    assert sum(waits[:8]) < 60
    assert max(waits[20:]) <= REFUSED_SECONDS
    # By chance each is a tenth of it at least, and half of it in the mean.
    assert sum(waits[20:]) / 20 > REFUSED_SECONDS / 4


class _AsyncioWith:
    """The module with another `sleep`."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.sleep = sleep

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)


@asynccontextmanager
async def sought(watched: Watched) -> AsyncIterator[PublishedServer]:
    """A server as meters and routers have it, which knows the first controller."""
    with api_server(watched.answer) as server:
        async with ApiClient(server.connection(), user_agent="test") as client:
            found = PublishedServer(client, "berth-system", TOKEN)
            await found.endpoint(again=False)
            yield found


@pytest.mark.parametrize(
    ("after", "another"),
    [
        pytest.param(stated(2, "a"), True, id="another address"),
        pytest.param(stated(1, "b"), True, id="begun anew at the same address"),
        pytest.param(stated(1, "a"), False, id="the same"),
        pytest.param({}, False, id="nothing"),
    ],
)
async def test_whoever_waits_hears_of_another(after: dict[str, str], another: bool) -> None:
    watched = Watched(**stated(1, "a"))
    async with sought(watched) as server:
        watched.write(**after)
        # As long as it is waited for another that comes at once, the test fails by its time.
        assert await server.another_within(6000.0 if another else 1.0) is another
        reads = watched.reads
        assert (await server.endpoint(again=True)).url == after.get(CONFIGMAP_URL, "https://192.0.2.1")
        assert (watched.watches, watched.lists) == (1, 0)
        assert watched.reads - reads == (0 if after else 1)  # what the watch has told need not be read


async def test_one_that_is_known_already_is_no_other() -> None:
    """An API server that is behind tells what was."""
    watched = Watched(**stated(1))
    async with sought(watched) as server:
        before = watched.items
        watched.write(**stated(2))
        await server.endpoint(again=True)
        watched.items = before
        assert not await server.another_within(1.0)
        assert (await server.endpoint(again=False)).url == "https://192.0.2.2"


async def test_it_is_read_where_the_watch_ended_long_before_its_time() -> None:
    watched = Watched(**stated(1))
    async with sought(watched) as server:
        # The watch tells what there is, and ends at once; what comes in the rest of the time it does not tell.
        assert not await server.another_within(2.5)
        watched.write(**stated(2))
        assert (await server.endpoint(again=True)).url == "https://192.0.2.2"


async def test_short_waits_ask_nothing() -> None:
    watched = Watched(**stated(1))
    async with sought(watched) as server:
        watched.write(**stated(2))
        assert not await server.another_within(0.05)
    assert watched.watches == 0


@pytest.mark.parametrize(
    ("status", "watches"), [pytest.param(403, 1, id="without a right"), pytest.param(500, 2, id="in trouble")]
)
async def test_who_may_not_watch_does_not_ask_again(status: int, watches: int) -> None:
    watched = Watched(**stated(1))
    watched.refused = status
    async with sought(watched) as server:
        for _ in range(2):
            assert not await server.another_within(1.0)
        watched.write(**stated(2))
        assert (await server.endpoint(again=True)).url == "https://192.0.2.2"
    assert watched.watches == watches


@pytest.mark.parametrize("body", [b"no JSON\n", b"{}\n", b'{"type": "ADDED", "object": 1}\n', b"[" * 99_999 + b"\n"])
async def test_what_is_no_watch_ends_nothing(body: bytes) -> None:
    def answer(request: Request) -> Answer:
        return Answer(200, body if "watch=" in request.path else whole())

    with api_server(answer) as api:
        async with ApiClient(api.connection(), user_agent="test") as client:
            server = PublishedServer(client, "berth-system", TOKEN)
            await server.endpoint(again=False)
            assert not await server.another_within(1.0)
