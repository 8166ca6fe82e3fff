"""LatencyPolicies reach what plugins read, and leave it again; pods wait for theirs to be read once they have come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import cast

import pytest

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.meta import object_key
from berth.kube.objects import CustomObject, Pod
from berth.runtime import workqueue
from berth.scheduling.cache.user_latency import UserLatencyTable
from controllers.placement.latency_policies import PATIENCE, TRY_SECONDS, WORKERS, LatencyPolicies
from tests.support.kube import running, until
from tests.support.placement import lone
from tests.support.user_latency import of, policy

WEB = "shop/Deployment/web"
DB = "shop/Deployment/db"


class World:
    """Policies on an API server, and placement's knowledge of them, whose watch shows what it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table = UserLatencyTable()
        self.server: dict[str, CustomObject] = {}
        self.later: dict[int, Pod] = {}
        """pods that come while it is read for the so-manieth time"""
        self.errors: list[Exception] = []
        self.error: Exception | None = None
        self.asked: list[str] = []
        self.heard: list[str] = []
        self.now = 100.0
        self.takes = 1.0
        """seconds that each read takes"""
        self.open = asyncio.Event()
        self.open.set()
        self.idle = asyncio.Event()
        self.idle.set()
        self.policies = LatencyPolicies(
            cast("ApiClient", self),
            self.table,
            schedulers=frozenset({"berth-scheduler"}),
            heard=self.note,
            deferring=lambda handler, _: handler,
            idle=self.wait_idle,
        )
        real = time.monotonic
        monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _: real())
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(workqueue, "backoff", lambda *_, **__: 0.0)

    def note(self, pods: Iterable[Pod]) -> None:
        self.heard += [pod.metadata.name for pod in pods]

    async def wait_idle(self) -> None:
        await self.idle.wait()

    async def get(self, _kind: object, name: str, *, namespace: str) -> CustomObject:
        self.asked.append(f"{namespace}/{name}")
        if len(self.asked) in self.later:
            self.come(self.later[len(self.asked)])
        await self.open.wait()
        self.now += self.takes
        if self.errors:
            raise self.errors.pop(0)
        if self.error is not None:
            raise self.error
        found = self.server.get(name)
        if found is None:
            raise ApiError(
                status=404, reason="NotFound", message="not found", stated=True, about=("latencypolicies", name)
            )
        return found

    def show(self, new: CustomObject) -> None:
        """Have the watch show one."""
        watch = self.policies.watch
        key = object_key(new.metadata)
        watch._change(key, watch.objects.get(key), new)

    def lose(self, old: CustomObject) -> None:
        """Have the watch show that one is gone."""
        self.policies.watch._change(object_key(old.metadata), old, None)

    def come(self, *pods: Pod) -> None:
        for pod in pods:
            self.policies.on_pod(None, pod)

    async def read(self, *pods: Pod) -> None:
        """Have pods come, and all be read that they have to be."""
        self.come(*pods)
        async with running(self.policies._queue.run(self.policies._look, workers=8)):
            await until(lambda: not self.table.unheard, what="all are heard of", seconds=20.0)

    @property
    def targets(self) -> set[str]:
        known = self.table.of(WEB)
        return set(known.targets) if known is not None else set()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_policy_comes_changes_and_goes(world: World) -> None:
    world.show(policy())
    known = world.table.of(WEB)
    assert known is not None
    assert (known.costs, known.targets) == ({"a": 200.0}, frozenset())
    world.show(policy(version=2, targetRef={"name": "db"}))
    assert world.table.of(WEB) is None
    assert world.table.of(DB) is not None
    world.lose(policy(version=2, targetRef={"name": "db"}))
    assert len(world.table) == 0


def test_one_that_cannot_be_read_is_left_out(world: World) -> None:
    world.show(policy())
    world.show(policy(version=2, softMaxLatency="near"))
    assert world.table.of(WEB) is None


async def test_a_pod_waits_until_its_policy_was_read_whatever_the_watch_has_shown(world: World) -> None:
    world.show(policy())
    world.server["web"] = policy(version=5, awaited="c")
    world.come(of("web"))
    assert (world.table.unheard, world.targets) == ({"pod-shop-p"}, set())
    await world.read()
    assert (world.targets, world.heard, world.asked) == ({"c"}, ["p"], ["shop/web"])


async def test_pods_that_come_together_have_it_read_once(world: World) -> None:
    world.show(policy())
    world.server["web"] = policy(version=5)
    await world.read(*(of("web", f"p{number}") for number in range(9)))
    assert (len(world.heard), world.asked) == (9, ["shop/web"])


async def test_who_comes_while_it_is_read_has_it_read_again(world: World) -> None:
    """It may be awaited by what was written since."""
    world.show(policy())
    world.server["web"] = policy(version=5)
    world.open.clear()
    world.come(of("web", "first"))
    async with running(world.policies._queue.run(world.policies._look, workers=8)):
        await until(lambda: world.asked == ["shop/web"], what="it is read")
        world.come(of("web", "second"))
        world.open.set()
        await until(lambda: world.heard == ["first", "second"], what="both are heard of")
    assert world.asked == ["shop/web"] * 2


@pytest.mark.parametrize(
    ("before", "while_read", "asked"),
    [
        pytest.param(0.0, True, 1, id="while it is read"),
        pytest.param(PATIENCE + 1.0, False, 0, id="once its patience is over"),
    ],
)
async def test_who_waits_already_does_not_begin_anew(world: World, before: float, while_read: bool, asked: int) -> None:
    """A controller that begins has all pods come that wait, after some came by the watch."""
    world.show(policy())
    world.server["web"] = policy(version=5)
    world.come(of("web"))
    world.now += before
    if while_read:
        world.later[1] = of("web")
    else:
        world.policies.came(of("web"))
    async with running(world.policies._queue.run(world.policies._look, workers=8)):
        await until(lambda: not world.table.unheard, what="nobody waits", seconds=20.0)
        await until(lambda: bool(world.heard), what="it is heard of", seconds=20.0)
    assert (world.heard, len(world.asked)) == (["p"], asked)


async def test_nothing_is_taken_in_while_a_plan_is_made(world: World) -> None:
    world.show(policy())
    world.server["web"] = policy(version=5, awaited="c")
    world.idle.clear()
    world.come(of("web"))
    async with running(world.policies._queue.run(world.policies._look, workers=8)):
        await until(lambda: world.asked == ["shop/web"], what="it is read")
        for _ in range(10):
            await asyncio.sleep(0)
        assert (world.table.unheard, world.targets) == ({"pod-shop-p"}, set())
        world.idle.set()
        await until(lambda: world.targets == {"c"}, what="it is taken in")


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(of("db"), id="of another workload"),
        pytest.param(lone("alone"), id="of none"),
        pytest.param(of("web", on="a"), id="has a node"),
        pytest.param(of("web", schedulerName="default-scheduler"), id="of another scheduler"),
        pytest.param(of("web", schedulingGates=[{"name": "quota"}]), id="gated"),
    ],
)
def test_others_do_not_wait(world: World, pod: Pod) -> None:
    world.show(policy())
    world.come(pod)
    world.policies.on_pod(pod, None)
    assert world.table.unheard == set()


async def test_it_waits_once_and_not_with_each_change(world: World) -> None:
    world.show(policy())
    world.server["web"] = policy()
    await world.read(of("web"))
    world.policies.on_pod(of("web"), of("web"))
    assert world.table.unheard == set()


async def test_a_pod_waits_when_its_last_gate_is_gone(world: World) -> None:
    world.show(policy())
    world.policies.on_pod(of("web", schedulingGates=[{"name": "quota"}]), of("web"))
    assert world.table.unheard == {"pod-shop-p"}


async def test_what_the_watch_shows_later_does_not_set_back_what_was_read(world: World) -> None:
    world.show(policy())
    world.server["web"] = policy(version=5, awaited="c")
    await world.read(of("web"))
    world.show(policy(version=4, awaited="b"))
    assert world.targets == {"c"}
    world.show(policy(version=5, awaited="c"))
    world.show(policy(version=6, awaited="d"))
    assert world.targets == {"d"}


async def test_an_answer_that_the_watch_has_overtaken_is_not_taken_in(world: World) -> None:
    world.show(policy())
    world.server["web"] = policy(version=5, awaited="c")
    world.idle.clear()
    world.come(of("web"))
    async with running(world.policies._queue.run(world.policies._look, workers=8)):
        await until(lambda: world.asked == ["shop/web"], what="it is read")
        world.show(policy(version=6, awaited="d"))
        world.idle.set()
        await until(lambda: world.heard == ["p"], what="it is heard of")
    assert world.targets == {"d"}


async def test_one_that_is_gone_leaves_it_to_the_next(world: World) -> None:
    world.show(policy())
    world.show(policy(name="web2", uid="u2"))
    world.server["web2"] = policy(name="web2", uid="u2", version=5, awaited="c")
    await world.read(of("web"))
    assert (world.asked, world.targets) == (["shop/web", "shop/web2"], {"c"})


async def test_one_that_was_made_anew_since_it_was_missed_is_not_forgotten(world: World) -> None:
    world.show(policy(uid="old"))
    world.idle.clear()
    world.come(of("web"))
    async with running(world.policies._queue.run(world.policies._look, workers=8)):
        await until(lambda: world.asked == ["shop/web"], what="it is missed")
        world.lose(policy(uid="old"))
        world.server["web"] = policy(uid="new", version=5, awaited="c")
        world.show(policy(uid="new", version=5, awaited="c"))
        world.idle.set()
        await until(lambda: world.heard == ["p"], what="it is heard of")
    assert world.targets == {"c"}


async def test_one_that_is_about_another_workload_by_now_counts_no_more(world: World) -> None:
    world.show(policy())
    world.server["web"] = policy(version=5, targetRef={"name": "db"})
    await world.read(of("web"))
    assert (world.heard, world.table.first(WEB), world.table.first(DB)) == (["p"], None, "shop/web")


async def test_the_end_of_one_does_not_take_another_of_its_name_that_was_read(world: World) -> None:
    world.show(policy(uid="old"))
    world.server["web"] = policy(uid="new", version=5, awaited="c")
    await world.read(of("web"))
    world.lose(policy(uid="old", version=3))
    assert world.targets == {"c"}
    world.show(policy(uid="new", version=4))
    assert world.targets == {"c"}
    world.lose(policy(uid="new", version=7))
    assert len(world.table) == 0


async def test_a_server_that_was_set_back_is_believed_by_the_next_pod(world: World) -> None:
    world.show(policy())
    world.server["web"] = policy(version=500, awaited="c")
    await world.read(of("web"))
    world.server["web"] = policy(version=5, awaited="d")
    world.show(world.server["web"])
    await world.read(of("web", "q"))
    assert world.targets == {"d"}


@pytest.mark.parametrize(
    ("error", "times"),
    [
        pytest.param(ApiError(status=403, reason="Forbidden", message="no"), 1, id="an older role"),
        pytest.param(ApiError(status=404, reason="NotFound", message="no"), 1, id="the kind is gone"),
        pytest.param(ValueError("HTML"), 1, id="an odd answer"),
        pytest.param(ApiError(status=503, reason="", message="no"), int(PATIENCE), id="trouble"),
        pytest.param(OSError("away"), int(PATIENCE), id="no connection"),
    ],
)
async def test_a_policy_that_cannot_be_read_stops_nobody_for_good(world: World, error: Exception, times: int) -> None:
    world.show(policy(awaited="b"))
    world.error = error
    await world.read(of("web"))
    assert (world.heard, world.targets, len(world.asked)) == (["p"], {"b"}, times)


async def test_trouble_that_ends_is_waited_for(world: World) -> None:
    world.show(policy())
    world.server["web"] = policy(version=5, awaited="c")
    world.errors = [OSError("away"), ApiError(status=429, reason="", message="later")]
    await world.read(of("web"))
    assert (world.targets, len(world.asked)) == ({"c"}, 3)


async def test_who_waits_for_its_turn_is_placed_no_later(world: World) -> None:
    """Each read takes as long as it may: of workloads of one namespace few have their turns within the time."""
    targets = [f"web{number}" for number in range(40)]
    for name in targets:
        world.show(policy(name=name, uid=name, targetRef={"name": name}))
    world.error, world.takes = OSError("away"), TRY_SECONDS
    await world.read(*(of(name, name) for name in targets))
    assert sorted(world.heard) == sorted(targets)
    assert world.now - 100.0 <= PATIENCE + TRY_SECONDS * WORKERS


async def test_tries_are_not_so_far_apart_that_patience_lasts_longer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(failures: int, *, base: float, cap: float) -> float:
        world.now += min(cap, base * 2**failures)
        return 0.0

    monkeypatch.setattr(workqueue, "backoff", wait)
    world.show(policy())
    world.error, world.takes = OSError("away"), 0.0
    await world.read(of("web"))
    assert world.now - 100.0 <= PATIENCE + TRY_SECONDS


async def test_who_comes_later_is_waited_for_as_long(world: World) -> None:
    world.show(policy())
    world.error = OSError("away")
    world.later = {15: of("web", "second")}
    await world.read(of("web", "first"))
    assert (world.heard, len(world.asked)) == (["first", "second"], 14 + int(PATIENCE))
