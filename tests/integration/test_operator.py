"""kopf, a key and a GET suffice: the operator with handlers as the rooms have them, while watches break.

Each test follows AppGroups through a faulty network with a queue whose work is a GET, as a room does. Left out: what a
room makes of an object (test_appgroup_recovery.py, test_networktopology_recovery.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import kopf
import msgspec
import pytest

from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder
from berth.kube.precedence import Precedence
from berth.kube.resources import APP_GROUPS, NETWORK_TOPOLOGIES, Resource
from berth.network.groups import GroupKey
from berth.runtime import operator as subject
from berth.runtime.component import ComponentContext
from berth.runtime.health import Checks
from berth.runtime.operator import Operator
from berth.runtime.workqueue import WorkQueue
from hack.harness.boutique import appgroup
from hack.harness.cluster import CRDS, Kubectl, install_crds
from hack.localcluster import LocalCluster
from tests.support.appgroups import AppGroups
from tests.support.faults import Fault, FaultProxy
from tests.support.kube import client_of, running, until
from tests.support.topologies import raw_topology

WATCH = r".*/appgroups"
"""Lists and watches of all AppGroups."""


@pytest.fixture(scope="module")
def own_cluster(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A control plane that this module may disturb."""
    return module_cluster(kwok=False)


@pytest.fixture
def proxy(own_cluster: LocalCluster, tmp_path: Path) -> Iterator[FaultProxy]:
    """The network between operator and cluster."""
    with FaultProxy(own_cluster, directory=tmp_path) as proxy:
        yield proxy


@pytest.fixture
def groups(own_cluster: LocalCluster) -> Iterator[AppGroups]:
    """The AppGroups of a namespace; none are left at the end."""
    groups = AppGroups(own_cluster, "default")
    yield groups
    groups.reconnect()
    for document in groups.all():
        groups.delete(document["metadata"]["name"])


class Room:
    """Follows one kind and keeps the generation of every object, as it was at its last pass."""

    def __init__(self, kind: Resource[Any]) -> None:
        self.kind = kind
        self.queue: WorkQueue[GroupKey] = WorkQueue(lambda key: key.namespace)
        self.seen: dict[str, int] = {}
        self.passes = 0
        self.checks = Checks()

    def register(self, registry: kopf.OperatorRegistry) -> None:
        @kopf.on.event(*self.kind.names, registry=registry)
        def changed(namespace: str | None, name: str, **_: Any) -> None:
            self.queue.add(GroupKey(namespace or "", name))

    async def run(self, operator: Operator, client: ApiClient) -> None:
        context = ComponentContext(
            connection=client.connection,
            client=client,
            recorder=EventRecorder(client, controller="test", instance="test", gives_way_to=Precedence()),
            checks=self.checks,
            identity="test",
        )

        async def work(key: GroupKey) -> bool:
            self.passes += 1
            try:
                found = await client.get(self.kind.raw, key.name, namespace=key.namespace)
            except ApiError as error:
                if not error.says_gone(self.kind.plural, key.name):
                    raise
                self.seen.pop(key.name, None)
                return False
            self.seen[key.name] = found["metadata"]["generation"]
            return True

        following = operator.follow(context, self.kind, self.register, listed=self.queue.add_known)
        async with running(following, self.queue.run(work, workers=2)):
            await asyncio.Event().wait()


@asynccontextmanager
async def world(kubeconfig: Path, *rooms: Room) -> AsyncIterator[tuple[Operator, ApiClient]]:
    """An operator with rooms at work."""
    connection = await load_connection(kubeconfig=str(kubeconfig))
    operator = Operator()
    async with (
        ApiClient(connection) as client,
        running(operator.run(), *(room.run(operator, client) for room in rooms)),
    ):
        yield operator, client


def apply(groups: AppGroups, name: str, *selectors: str) -> None:
    groups.apply(appgroup({}, [*selectors] or ["web"], name=name))


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """What blocks must not hold up the loop under test."""
    return await asyncio.to_thread(function, *arguments)


async def test_every_change_is_seen(own_cluster: LocalCluster, groups: AppGroups) -> None:
    await in_thread(apply, groups, "early")
    room = Room(APP_GROUPS)
    async with world(own_cluster.kubeconfig, room):
        await until(lambda: room.seen == {"early": 1}, what="what is there at the beginning")
        await in_thread(apply, groups, "late")
        await in_thread(apply, groups, "early", "web", "cart")
        await until(lambda: room.seen == {"early": 2, "late": 1}, what="a new object and a new spec")
        await in_thread(groups.delete, "early")
        await until(lambda: room.seen == {"late": 1}, what="a deletion")
        assert room.checks.ready() == {}


async def test_an_object_that_is_nested_deeply_keeps_nobody_waiting(
    own_cluster: LocalCluster, groups: AppGroups
) -> None:
    """Whoever may create an AppGroup may state managedFields like these; listed at first, then watched."""
    nested = msgspec.Raw(b'{"f:a":' * 9000 + b"{}" + b"}" * 9000)
    entry = {"apiVersion": APP_GROUPS.api_version, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": nested}
    room = Room(APP_GROUPS)

    async def create(client: ApiClient, name: str) -> None:
        body = appgroup({}, ["web"], name=name)
        body["metadata"] = {"name": name, "managedFields": [{"manager": "somebody", **entry}]}
        await client.create(APP_GROUPS, body, namespace=groups.namespace)

    async with client_of(own_cluster) as client:
        await create(client, "deep")
        try:
            async with world(own_cluster.kubeconfig, room):
                await until(lambda: set(room.seen) == {"deep"}, what="what is there at the beginning")
                await create(client, "deeper")
                await in_thread(apply, groups, "plain")
                await until(lambda: set(room.seen) == {"deep", "deeper", "plain"}, what="what comes later")
        finally:
            for name in ("deep", "deeper"):
                await client.delete(APP_GROUPS, name, namespace=groups.namespace)


async def test_a_cut_watch_loses_nothing(proxy: FaultProxy, groups: AppGroups) -> None:
    for name in ("stays", "changes", "goes"):
        await in_thread(apply, groups, name)
    room = Room(APP_GROUPS)
    async with world(proxy.kubeconfig, room):
        await until(lambda: len(room.seen) == 3 and not room.checks.ready(), what="the first list")
        # Reconnecting takes until everything has happened.
        rule = proxy.add(Fault.HOLD, method="GET", path=WATCH)
        await in_thread(proxy.cut_watches)
        await in_thread(proxy.wait_hits, rule)
        await in_thread(groups.delete, "goes")
        await in_thread(apply, groups, "changes", "web", "cart")
        await in_thread(apply, groups, "comes")
        await in_thread(proxy.release, rule)
        await until(lambda: room.seen == {"stays": 1, "changes": 2, "comes": 1}, what="all changes")


async def test_what_vanished_before_a_new_list_is_seen_too(
    own_cluster: LocalCluster, proxy: FaultProxy, groups: AppGroups
) -> None:
    for name in ("stays", "changes", "goes"):
        await in_thread(apply, groups, name)
    room = Room(APP_GROUPS)
    async with world(proxy.kubeconfig, room):
        await until(lambda: len(room.seen) == 3 and not room.checks.ready(), what="the first list")
        rule = proxy.add(Fault.RESET, method="GET", path=WATCH)
        await in_thread(proxy.cut_watches)
        await in_thread(proxy.wait_hits, rule)
        await in_thread(groups.delete, "goes")
        await in_thread(apply, groups, "changes", "web", "cart")
        # The watch cache of a fresh API server does not reach back to what the watch has seen: 410 Gone.
        await in_thread(own_cluster.restart_apiserver)
        groups.reconnect()
        await in_thread(proxy.release, rule)
        await until(lambda: room.seen == {"stays": 1, "changes": 2}, what="the vanished object")
        await in_thread(apply, groups, "comes")
        await until(lambda: "comes" in room.seen, what="the watch goes on")


async def test_a_silent_watch_makes_health_fail(
    proxy: FaultProxy, groups: AppGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "WATCH_SECONDS", 2)
    monkeypatch.setattr(subject, "SILENT_SECONDS", 4.0)
    monkeypatch.setattr(subject, "STALE_SECONDS", 7.0)
    await in_thread(apply, groups, "early")
    room = Room(APP_GROUPS)
    async with world(proxy.kubeconfig, room):
        await until(lambda: not room.checks.ready(), what="ready")
        quiet = asyncio.get_running_loop().time() + 8.0
        await until(
            lambda: asyncio.get_running_loop().time() > quiet or bool(room.checks.health()), what="a quiet while"
        )
        assert room.checks.health() == {}, "nothing happens, which is no reason for alarm"
        # The server accepts every watch and says nothing more, as behind a dead load balancer.
        rule = proxy.add(Fault.SILENCE, method="GET", path=WATCH)
        await in_thread(proxy.wait_hits, rule)
        await in_thread(apply, groups, "unseen")
        await until(lambda: "watch appgroups" in room.checks.health(), what="health fails")
        assert "no response from the API server for" in room.checks.health()["watch appgroups"]
        assert "unseen" not in room.seen
        await in_thread(proxy.release, rule)
        await until(lambda: "unseen" in room.seen, what="the object that the watch owed")
        await until(lambda: not room.checks.health(), what="healthy again")


async def test_who_joins_later_sees_what_is_there(own_cluster: LocalCluster, groups: AppGroups) -> None:
    await in_thread(apply, groups, "early")
    manifest = raw_topology(name="net", namespace="default")
    del manifest["metadata"]["uid"], manifest["metadata"]["generation"]
    await in_thread(Kubectl(own_cluster, "default").apply, manifest)
    first, second = Room(APP_GROUPS), Room(NETWORK_TOPOLOGIES)
    async with world(own_cluster.kubeconfig, first) as (operator, client):
        await until(lambda: first.seen == {"early": 1}, what="the first to join is at work")
        async with running(second.run(operator, client)):
            await until(lambda: second.seen == {"net": 1}, what="the second to join is at work")
            await in_thread(apply, groups, "late")
            await until(lambda: first.seen == {"early": 1, "late": 1}, what="the first is not forgotten")


def remove_kind(cluster: LocalCluster) -> None:
    cluster.kubectl("delete", "crd", f"{APP_GROUPS.plural}.{APP_GROUPS.group}", "--wait=true")


async def test_a_kind_that_goes_and_comes_back_is_followed_again(
    own_cluster: LocalCluster, groups: AppGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "RETRY_KIND", 0.2)
    await in_thread(apply, groups, "early")
    first, second = Room(APP_GROUPS), Room(NETWORK_TOPOLOGIES)
    async with world(own_cluster.kubeconfig, first, second):
        await until(lambda: first.seen == {"early": 1} and not second.checks.ready(), what="the first lists")
        try:
            await in_thread(remove_kind, own_cluster)
            told = "apply the manifests in crds/"
            await until(lambda: told in first.checks.ready().get("sync appgroups", ""), what="word of the missing kind")
            assert first.checks.health() == {}, "no restart brings a kind back"
            await until(lambda: not second.checks.ready(), what="the other kind is still followed")
        finally:
            await in_thread(install_crds, own_cluster, CRDS)
        await in_thread(apply, groups, "late")
        await until(lambda: first.seen == {"late": 1}, what="what there is now, and what went with the kind")
        await until(lambda: not first.checks.ready() and not second.checks.ready(), what="ready again")
        await in_thread(apply, groups, "late", "web", "cart")
        await until(lambda: first.seen == {"late": 2}, what="the watch goes on")


@pytest.mark.parametrize("status", [403, 404])
async def test_a_kind_that_is_refused_for_a_while_is_followed_again(
    proxy: FaultProxy, groups: AppGroups, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(subject, "RETRY_KIND", 0.2)
    await in_thread(apply, groups, "early")
    room = Room(APP_GROUPS)
    async with world(proxy.kubeconfig, room):
        await until(lambda: room.seen == {"early": 1} and not room.checks.ready(), what="ready")
        rule = proxy.add(Fault.ANSWER, method="GET", path=WATCH, status=status)
        await in_thread(proxy.cut_watches)
        await until(lambda: f"cannot be listed ({status}" in room.checks.ready().get("sync appgroups", ""), what="why")
        await in_thread(apply, groups, "late")
        await in_thread(groups.delete, "early")
        await in_thread(proxy.release, rule)
        await until(lambda: room.seen == {"late": 1}, what="what happened meanwhile")
        await until(lambda: not room.checks.ready(), what="ready again")


async def test_a_kind_that_is_announced_late_is_followed_too(
    proxy: FaultProxy, groups: AppGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "RETRY_KIND", 0.2)
    monkeypatch.setattr(subject, "ASK_SECONDS", 2.0)
    await in_thread(apply, groups, "early")
    # What a kind that was just installed looks like: it can be listed before the group's version tells of it.
    rule = proxy.add(Fault.ANSWER, method="GET", path=f"/apis/{APP_GROUPS.api_version}", status=404, times=1)
    room = Room(APP_GROUPS)
    async with world(proxy.kubeconfig, room):
        await in_thread(proxy.wait_hits, rule)
        await until(lambda: "does not announce" in room.checks.ready().get("sync appgroups", ""), what="why")
        await until(lambda: room.seen == {"early": 1} and not room.checks.ready(), what="followed after all")


async def test_a_watch_that_fails_for_any_other_reason_is_begun_anew(proxy: FaultProxy, groups: AppGroups) -> None:
    room = Room(APP_GROUPS)
    async with world(proxy.kubeconfig, room):
        await until(lambda: not room.checks.ready(), what="ready")
        rule = proxy.add(Fault.ANSWER, method="GET", path=WATCH, status=400, times=1)
        await in_thread(proxy.cut_watches)
        await in_thread(proxy.wait_hits, rule)
        await in_thread(apply, groups, "late")
        await until(lambda: room.seen == {"late": 1}, what="the new object")
