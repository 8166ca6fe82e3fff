"""Which of a client's requests go first: all but Events, which would otherwise wait for each other."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from berth.kube.client import ApiClient
from berth.kube.http_answer import HttpAnswer
from berth.kube.resources import EVENTS, LEASES, PODS, Resource
from tests.support.api_server import Answer, Request, api_server


@pytest.mark.parametrize(
    ("resource", "first"), [(PODS, True), (LEASES, True), (EVENTS, False)], ids=["pods", "leases", "events"]
)
async def test_all_writes_but_events_go_first(resource: Resource[Any], *, first: bool) -> None:
    arrived, answered = threading.Event(), threading.Event()

    def wait(_: Request) -> Answer:
        arrived.set()
        answered.wait(20.0)
        return Answer(body={})

    with api_server(wait) as server:
        async with ApiClient(server.connection()) as client:
            sent = asyncio.create_task(client.create(resource, {}, namespace="shop"))
            assert await asyncio.to_thread(arrived.wait, 20.0)
            others = asyncio.create_task(client.writes.give_way(60.0))
            for _ in range(5):
                await asyncio.sleep(0)
            assert others.done() is not first
            answered.set()
            await sent
            async with asyncio.timeout(5.0):
                await others


@pytest.mark.parametrize(
    ("method", "first"),
    [("get", False), ("list_all", False), ("replace", True), ("merge_patch", True), ("delete", True)],
)
async def test_reads_do_not(method: str, *, first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    async def send(*_: object, goes_first: bool, **__: object) -> HttpAnswer:
        asked.append(goes_first)
        body = b'{"metadata": {"name": "p", "resourceVersion": "1"}, "items": []}'
        return HttpAnswer(200, body, None)

    with api_server(lambda _: Answer()) as server:
        async with ApiClient(server.connection()) as client:
            monkeypatch.setattr(client._transport, "send", send)
            arguments: dict[str, tuple[Any, ...]] = {
                "list_all": (), "get": ("p",), "delete": ("p",), "replace": ("p", {}), "merge_patch": ("p", {}),
            }  # fmt: skip
            await getattr(client, method)(PODS, *arguments[method], namespace="shop")
    assert asked == [first]
