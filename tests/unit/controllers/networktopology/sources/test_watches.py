"""Watches that fail, and so end their source: its process begins anew, instead of going on with what it knew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext
from berth.runtime.health import Checks
from controllers.networktopology.places import Places
from controllers.networktopology.sources import configmap, probereports
from controllers.networktopology.sources.base import Source, Surroundings, TopologyKey
from controllers.networktopology.sources.configmap import ConfigMaps
from controllers.networktopology.sources.probereports import ProbeReports
from controllers.networktopology.sources.watches import Watches
from tests.support.topologies import topology

KEY = TopologyKey("shop", "net")


class Broken:
    """A reflector that meets what nobody has thought of."""

    refusal = None

    def __init__(self, *_: Any, **__: Any) -> None:
        self.synced = asyncio.Event()
        self.synced.set()
        self.objects: dict[str, Any] = {}
        self.healthy = True

    def add_handler(self, handler: Any) -> None:
        """Nothing changes here."""

    add_batch_handler = add_handler

    async def run(self) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("what nobody has thought of")


class Server:
    """An API server that has the kind; the process's checks."""

    checks = Checks()

    async def list_pages(self, *_: Any, **__: Any) -> AsyncIterator[list[Any]]:
        yield []


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        pytest.param(ProbeReports, probereports, id="ProbeReports"),
        pytest.param(ConfigMaps, configmap, id="ConfigMaps"),
    ],
)
async def test_a_watch_that_fails_ends_its_source(
    monkeypatch: pytest.MonkeyPatch, kind: type[Source], module: Any
) -> None:
    """It was deaf for ever, and healthy: what it had read was taken for the present."""
    monkeypatch.setattr(module, "Reflector", Broken)
    server = Server()
    source = kind(Surroundings(cast(ComponentContext, server), cast(ApiClient, server), print))
    running = asyncio.create_task(source.run())
    await source.read(KEY, topology(configmap="netperf"), Places())
    done, _ = await asyncio.wait({running}, timeout=60.0)
    assert done, "it goes on"
    with pytest.raises(RuntimeError, match="thought of"):
        running.result()


async def test_one_that_is_given_up_ends_nothing_else() -> None:
    watches, ended = Watches(), asyncio.Event()

    async def follow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    first, second = watches.start(follow()), watches.start(follow())
    running = asyncio.create_task(watches.run())
    await asyncio.sleep(0)
    first.cancel()
    await ended.wait()
    ended.clear()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert ended.is_set()
    assert second.cancelled()
