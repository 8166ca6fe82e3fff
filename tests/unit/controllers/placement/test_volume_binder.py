"""When the claims of a pod are waited for, and what ends that. Writes are tested against a real API server,
in tests/integration/test_volume_binder.py; no test here gets as far as one."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from berth.kube.client import ApiClient
from berth.kube.objects import Pod
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.volumes import StorageObject
from controllers.placement import volume_binder
from controllers.placement.claims import VolumeError, Written, unfinished
from controllers.placement.volume_binder import VolumeBinder
from tests.support.placement import Clock, lone, zoned
from tests.support.volumes import NOW, WAIT, claim, storage_class, using, volume

POD = lone("p", spec=using("c"))


async def no_plan() -> None:
    """No plan is being made."""


@pytest.fixture
def cache() -> Cache:
    """A cache that knows n1, and the pod assumed there; its claim is bound by somebody else, and not yet."""
    made = Cache(clock=Clock())
    made.update_node(zoned("n1"))
    made.update_storage(storage_class(NOW))
    made.update_storage(claim("c", storageClassName=NOW))
    made.update_pod(POD)
    made.state.assume(POD, "n1")
    return made


@pytest.fixture
def binder(cache: Cache) -> VolumeBinder:
    return VolumeBinder(cast("ApiClient", None), cache.state, idle=no_plan)


def see(cache: Cache, binder: VolumeBinder, *items: StorageObject) -> None:
    """Have the watches show storage objects."""
    for item in items:
        cache.update_storage(item)
        binder.storage_changed(item)


def bind(cache: Cache, binder: VolumeBinder, *, zone: str = "") -> None:
    see(cache, binder, volume("v", zone=zone), claim("c", bound_to="v"))


async def bound(binder: VolumeBinder, node: str = "n1") -> None:
    """Have the claims bound from beginning to end."""
    await binder.wait(POD, node, await binder.claim(POD, node))


async def begin(binder: VolumeBinder, node: str = "n1") -> asyncio.Task[None]:
    """A binding that has come to its wait."""
    task = asyncio.create_task(bound(binder, node))
    await asyncio.sleep(0)
    assert not task.done()
    return task


@pytest.mark.parametrize(
    ("pod", "bound", "needed"),
    [
        pytest.param(lone("q"), False, False, id="no-claims"),
        pytest.param(POD, False, True, id="unbound"),
        pytest.param(POD, True, False, id="bound"),
        pytest.param(lone("q", spec=using("unknown")), False, True, id="unknown"),
    ],
)
def test_needed(cache: Cache, binder: VolumeBinder, pod: Pod, bound: bool, needed: bool) -> None:
    if bound:
        bind(cache, binder)
    assert binder.needed(pod) is needed


async def test_ends_when_the_claim_is_bound(cache: Cache, binder: VolumeBinder) -> None:
    task = await begin(binder)
    binder.storage_changed(claim("c"))
    await asyncio.sleep(0)
    assert not task.done()
    bind(cache, binder)
    await task
    assert (binder._waiting, binder._following) == ({}, {})


async def test_ends_when_the_volume_is_out_of_reach(cache: Cache, binder: VolumeBinder) -> None:
    task = await begin(binder)
    bind(cache, binder, zone="elsewhere")
    with pytest.raises(VolumeError, match="which node n1 cannot reach"):
        await task


async def test_ends_with_the_pod(cache: Cache, binder: VolumeBinder) -> None:
    task = await begin(binder)
    cache.delete_pod(POD)
    binder.pod_gone("another")
    binder.pod_gone(POD.metadata.uid)
    with pytest.raises(VolumeError, match="the pod has ended or was deleted"):
        await task
    binder.pod_gone(POD.metadata.uid)


async def test_ends_with_the_node(cache: Cache, binder: VolumeBinder) -> None:
    task = await begin(binder)
    cache.delete_node(zoned("n1"))
    binder.node_gone("another")
    binder.node_gone("n1")
    with pytest.raises(VolumeError, match="node n1 was deleted"):
        await task


async def test_ends_when_the_volume_is_seen_after_its_claim(cache: Cache, binder: VolumeBinder) -> None:
    task = await begin(binder)
    see(cache, binder, claim("c", bound_to="late"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()
    see(cache, binder, volume("late"))
    await task


class Server:
    """Answers writes with the object in version 8."""

    async def merge_patch(self, *_: object, **__: object) -> bytes:
        return b'{"metadata":{"resourceVersion":"8"}}'


@pytest.mark.parametrize("gone", [True, False], ids=["deleted", "taken back"])
async def test_ends_when_the_volume_reserved_for_the_claim_is_lost(gone: bool) -> None:
    cache = Cache(clock=Clock())
    cache.update_node(zoned("n1"))
    free = volume("v")
    for item in (storage_class(WAIT), claim("c"), free):
        cache.update_storage(item)
    cache.update_pod(POD)
    cache.state.assume(POD, "n1")
    binder = VolumeBinder(cast("ApiClient", Server()), cache.state, idle=no_plan)
    task = await begin(binder)
    if gone:
        cache.delete_storage(free)
        binder.storage_changed(free)
    else:
        taken = volume("v", for_claim="another")
        taken.metadata.resource_version = "9"
        see(cache, binder, taken)
    with pytest.raises(VolumeError, match="was deleted" if gone else "not reserved for claim default/c any more"):
        await asyncio.wait_for(task, 1)
    assert (binder._waiting, binder._following) == ({}, {})


async def test_what_no_pod_waits_for_has_nobody_checked(
    cache: Cache, binder: VolumeBinder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others' storage objects are as many as others like; each check reads all claims of a pod."""
    checks: list[str] = []

    def counted(pod: Pod, node: str, state: ClusterState, *, written: Written) -> str:
        checks.append(pod.metadata.name)
        return unfinished(pod, node, state, written=written)

    monkeypatch.setattr(volume_binder, "unfinished", counted)
    task = await begin(binder)
    see(cache, binder, claim("other"), volume("other"), storage_class(WAIT))
    binder.node_gone("n2")
    for _ in range(5):
        await asyncio.sleep(0)
    assert checks == ["p"]
    bind(cache, binder)
    await task


async def test_an_odd_object_fails_this_binding_alone(binder: VolumeBinder, monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(*_: object, **__: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(volume_binder, "unfinished", odd)
    with pytest.raises(VolumeError, match="volumes cannot be judged: ZeroDivisionError"):
        await bound(binder)


async def test_ends_in_time(binder: VolumeBinder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_binder, "DEADLINE", 0.01)
    with pytest.raises(VolumeError, match=r"claims were not bound within 0\.01 s"):
        await bound(binder)


async def test_a_node_that_is_gone(binder: VolumeBinder) -> None:
    with pytest.raises(VolumeError, match="node n9 is not known"):
        await bound(binder, "n9")


def test_an_odd_answer_to_a_write_fails_this_binding_alone() -> None:
    class OddServer:
        async def merge_patch(self, *_: object, **__: object) -> bytes:
            return b'{"metadata":"upstream is down"}'

    made = Cache(clock=Clock())
    made.update_node(zoned("n1"))
    made.update_storage(storage_class(WAIT))
    made.update_storage(claim("c", storageClassName=WAIT))
    made.update_pod(POD)
    made.state.assume(POD, "n1")
    with pytest.raises(VolumeError, match="volumes cannot be claimed"):
        asyncio.run(bound(VolumeBinder(cast("ApiClient", OddServer()), made.state, idle=no_plan)))


def test_the_cache_is_not_read_while_a_plan_is_made(cache: Cache) -> None:
    async def scenario() -> None:
        planned = asyncio.Event()

        async def idle() -> None:
            await planned.wait()

        binder = VolumeBinder(cast("ApiClient", None), cache.state, idle=idle)
        bind(cache, binder)
        task = asyncio.create_task(bound(binder))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not task.done()
        planned.set()
        await task

    asyncio.run(scenario())
