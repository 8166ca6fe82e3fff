"""Which ConfigMaps have a watch: those that are named, and of one namespace no more than some."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from berth.api.base import ObjectMeta
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.runtime.component import ComponentContext
from controllers.networktopology.places import Places
from controllers.networktopology.sources import configmap as subject
from controllers.networktopology.sources.base import Reading, SourceState, Surroundings, TopologyKey
from controllers.networktopology.sources.configmap import ConfigMaps
from tests.support.topologies import topology


class Watch:
    """A reflector that has found its ConfigMap missing, and counts those that run."""

    running = 0
    refusal: ApiError | None = None

    def __init__(self, *_: Any, **__: Any) -> None:
        self.synced = asyncio.Event()
        self.synced.set()
        self.objects: dict[str, Any] = {}

    def add_handler(self, handler: Any) -> None:
        """Nothing changes here."""

    async def run(self) -> None:
        Watch.running += 1
        try:
            await asyncio.Event().wait()
        finally:
            Watch.running -= 1


class World:
    """The source, with two watches to a namespace."""

    def __init__(self) -> None:
        self.changed: list[str] = []
        context, client = cast(ComponentContext, None), cast(ApiClient, None)
        self.source = ConfigMaps(Surroundings(context, client, lambda key: self.changed.append(key.name)))

    async def read(self, name: str, configmap: str, namespace: str = "shop") -> Reading:
        """Read the ConfigMap that a NetworkTopology names."""
        named = topology(configmap=configmap)
        named = named.model_copy(update={"metadata": ObjectMeta(name=name, namespace=namespace)})
        reading = await self.source.read(TopologyKey(namespace, name), named, Places())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return reading

    async def forget(self, name: str) -> None:
        """Have a NetworkTopology gone."""
        self.changed.clear()
        self.source.forget(TopologyKey("shop", name))
        await asyncio.sleep(0)
        await asyncio.sleep(0)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(subject, "Reflector", Watch)
    monkeypatch.setattr(subject, "MAX_FOLLOWED", 2)
    monkeypatch.setattr(Watch, "running", 0)
    world = World()
    run = asyncio.create_task(world.source.run())
    yield world
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    assert Watch.running == 0


async def test_a_namespace_has_a_bounded_number_of_watches(world: World) -> None:
    states = [(await world.read(f"net-{number}", f"cm-{number}")).state for number in range(5)]
    assert states == [SourceState.MISSING] * 2 + [SourceState.LEFT_OUT] * 3
    assert Watch.running == 2
    told = world.source.availability(await world.read("net-4", "cm-4"), "there are no costs")
    assert (told.status, told.reason) == (False, "TooManyConfigMaps")
    assert "ConfigMap shop/cm-4 is not read" in told.message


async def test_other_namespaces_have_their_own(world: World) -> None:
    for number in range(5):
        await world.read(f"net-{number}", f"cm-{number}")
    assert (await world.read("net", "netperf", namespace="system")).state is SourceState.MISSING
    assert Watch.running == 3


async def test_one_that_is_followed_already_serves_any_number(world: World) -> None:
    for number in range(3):
        assert (await world.read(f"net-{number}", "netperf")).state is SourceState.MISSING
    assert Watch.running == 1
    await world.forget("net-0")
    assert Watch.running == 1


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "names another"])
async def test_a_watch_that_ends_makes_room_for_those_left_out(world: World, gone: bool) -> None:
    for number in range(5):
        await world.read(f"net-{number}", f"cm-{number}")
    world.changed.clear()
    if gone:
        await world.forget("net-0")
    else:
        await world.read("net-0", "cm-1")
    assert sorted(world.changed) == ["net-2", "net-3", "net-4"]
    states = [(await world.read(f"net-{number}", f"cm-{number}")).state for number in (2, 3, 4)]
    assert states == [SourceState.MISSING, SourceState.LEFT_OUT, SourceState.LEFT_OUT]
    assert Watch.running == 2


async def test_those_left_out_that_go_are_not_looked_at_any_more(world: World) -> None:
    for number in range(4):
        await world.read(f"net-{number}", f"cm-{number}")
    await world.forget("net-3")
    await world.forget("net-0")
    assert world.changed == ["net-2"]


async def test_one_that_may_not_be_read_any_more_is_told_and_stays_as_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "REFUSAL_SECONDS", 0.0)
    forbidden = ApiError(status=403, reason="Forbidden", message="no such right")
    await world.read("net", "netperf")
    for refusal in (forbidden, None):
        monkeypatch.setattr(Watch, "refusal", refusal)
        world.changed.clear()
        while not world.changed:  # else this test times out
            await asyncio.sleep(0)
        reading = await world.read("net", "netperf")
        assert reading.state is SourceState.MISSING
        told = world.source.availability(reading, "there are no costs")
        assert told.reason == ("ConfigMapUnreadable" if refusal else "ConfigMapNotFound")
        assert ("allow this account to list and watch configmaps" in told.message) == bool(refusal)
    world.changed.clear()
    for _ in range(10):
        await asyncio.sleep(0)
    assert world.changed == []
