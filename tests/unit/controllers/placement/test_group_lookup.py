"""AppGroups that pods name before the watch has shown them: which are looked for, when, and how often."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import CustomObject, Pod
from berth.kube.reflector import Reflector
from berth.kube.resources import APP_GROUPS
from berth.network.groups import GroupKey
from berth.runtime import workqueue
from controllers.placement.group_lookup import DELAY, LAST_PAUSE, MOST, PAUSE, TRIES, GroupLookup
from tests.support.placement import chain, group_object, lone, member

SHOP = GroupKey("default", "shop")
SCHEDULERS = frozenset({"berth-scheduler"})


class World:
    """AppGroups on an API server, a copy that its watch has left behind, and the lookup; no time passes by itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, error: Exception | None = None) -> None:
        self.watch: Reflector[CustomObject] = Reflector(cast("ApiClient", self), APP_GROUPS)
        self.watch._version = "1"
        self.error = error
        self.server: dict[str, CustomObject] = {}
        self.asked: list[str] = []
        self.delays: list[float] = []
        self.pauses: list[float] = []
        self.takes = 0.01
        self.now = 100.0
        self.lookup = GroupLookup(cast("ApiClient", self), self.watch, schedulers=SCHEDULERS, sleep=self.sleep)
        real = time.monotonic
        monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _: real())
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        add = workqueue.WorkQueue.add

        def at_once(queue: Any, key: GroupKey, *, delay: float = 0.0) -> None:
            self.delays.append(delay)
            add(queue, key)

        monkeypatch.setattr(workqueue.WorkQueue, "add", at_once)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def store(self, version: str = "5") -> CustomObject:
        found = group_object("shop", *chain("a", "b"))
        found.metadata.resource_version = version
        self.server["shop"] = found
        return found

    async def get(self, _kind: object, name: str, *, namespace: str) -> CustomObject:
        self.asked.append(f"{namespace}/{name}")
        self.now += self.takes
        if self.error is not None:
            raise self.error
        if name not in self.server:
            raise ApiError(status=404, reason="NotFound", message="not found")
        return self.server[name]

    async def run(self, *pods: Pod) -> None:
        for pod in pods:
            self.lookup.on_pod(None, pod)
        task = asyncio.create_task(self.lookup.run())
        async with asyncio.timeout(60):
            while len(self.lookup._queue):
                await asyncio.sleep(0)
            for _ in range(10):
                await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def test_one_that_is_there_is_read_once_for_all_its_pods_and_given_to_the_copy(world: World) -> None:
    found = world.store()
    await world.run(*(member(f"a{number}", "a") for number in range(9)))
    assert world.asked == ["default/shop"]
    assert world.delays == [DELAY]
    assert world.watch.objects == {"default/shop": found}


async def test_one_that_is_not_there_is_looked_for_a_few_times_however_many_pods_name_it(world: World) -> None:
    await world.run(*(member(f"a{number}", "a") for number in range(9)))
    await world.run(*(member(f"b{number}", "b") for number in range(9)))
    assert len(world.asked) == TRIES
    assert world.delays == [DELAY * 2**tries for tries in range(TRIES)]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ApiError(status=403, reason="Forbidden", message="no"), id="an older role"),
        pytest.param(OSError("away"), id="no connection"),
        pytest.param(ValueError("HTML"), id="an odd answer"),
    ],
)
async def test_what_cannot_be_read_is_left_to_the_watch(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    world = World(monkeypatch, error=error)
    await world.run(member("a", "a"))
    assert (len(world.asked), world.watch.objects) == (TRIES, {})


async def test_what_the_watch_has_shown_by_then_is_not_read(world: World) -> None:
    world.lookup.on_pod(None, member("a", "a"))
    world.watch.objects["default/shop"] = world.store()
    await world.run()
    assert world.asked == []


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(None, id="a pod that is gone"),
        pytest.param(lone("alone"), id="without an AppGroup"),
        pytest.param(member("placed", "a", on="n1"), id="placed"),
        pytest.param(member("theirs", "a", spec={"schedulerName": "default-scheduler"}), id="another scheduler's"),
    ],
)
async def test_other_pods_have_nothing_looked_for(world: World, pod: Pod | None) -> None:
    world.lookup.on_pod(member("before", "a") if pod is None else None, pod)
    assert world.delays == []


async def test_one_that_is_known_is_not_looked_for(world: World) -> None:
    world.watch.objects["default/shop"] = world.store()
    await world.run(member("a", "a"))
    assert world.delays == []


async def test_one_that_was_found_and_deleted_is_looked_for_again(world: World) -> None:
    world.store()
    await world.run(member("a", "a"))
    world.watch.objects.clear()
    await world.run(member("b", "b"))
    assert world.asked == ["default/shop"] * 2


async def test_one_that_was_deleted_since_is_looked_for_again(world: World) -> None:
    """It may have been made anew."""
    world.store()
    world.watch._version = "9"
    await world.run(member("a", "a"))
    assert (len(world.asked), world.watch.objects) == (TRIES, {})


async def test_what_is_not_found_is_followed_by_pauses(world: World) -> None:
    """One tenant's pods could have the API server asked for what is not there all the time."""
    world.store()
    await world.run(member("a", "a"), member("b", "a", group="missing"))
    assert world.pauses == pytest.approx([PAUSE * 0.01] * TRIES)


async def test_a_pause_ends_soon_however_long_the_answer_took(world: World) -> None:
    """An API server that hung for minutes may be well again."""
    world.takes = 153.0
    await world.run(member("a", "a", group="missing"))
    assert world.pauses == [LAST_PAUSE] * TRIES


async def test_of_one_namespace_so_many_wait_and_of_others_too(world: World) -> None:
    pods = [member(f"p{number}", "a", group=f"g{number}") for number in range(MOST + 100)]
    for pod in pods:
        world.lookup.on_pod(None, pod)
    assert len(world.lookup._queue) == MOST
    await world.run(member("theirs", "a", namespace="other"))
    assert world.asked.count("other/shop") == TRIES
    assert len(world.asked) == (MOST + 1) * TRIES
    assert (world.lookup._tries, world.lookup._waiting) == ({}, {})
    await world.run(pods[-1])
    assert len(world.asked) == (MOST + 2) * TRIES
