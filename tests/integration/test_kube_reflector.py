"""The reflector's copy against a real API server: following, and everything that breaks a watch."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import urllib.request
from collections.abc import Callable

import msgspec
import pytest
from prometheus_client import REGISTRY

from berth.kube.client import ApiClient
from berth.kube.objects import ConfigMap
from berth.kube.page_size import LARGEST_PAGE
from berth.kube.reflector import Reflector
from berth.kube.resources import APP_GROUPS, CONFIGMAPS, NAMESPACES, PODS, Resource
from hack.harness.cluster import bound_pod
from hack.localcluster import LocalCluster
from hack.localcluster.components import Options
from tests.support.kube import ChangeType, client_of, config_map, followed, paused, running, until

ADDED, MODIFIED, DELETED = ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED


@pytest.fixture(scope="module")
def own_cluster(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """An API server that these tests may stop, pause and compact, with bookmarks as everywhere."""
    return module_cluster(crds=False, kwok=False, options=Options(controller_manager=False))


async def make(client: ApiClient, namespace: str, *names: str) -> None:
    for name in names:
        await client.create(CONFIGMAPS, config_map(name), namespace=namespace)


async def make_namespace(client: ApiClient, name: str) -> str:
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


def compact(cluster: LocalCluster) -> None:
    """Forget all history of etcd up to now, as happens by itself every five minutes."""
    (etcd,) = (component for component in cluster.status() if component.name == "etcd")

    def call(path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        url = f"http://127.0.0.1:{etcd.port}/v3/{path}"
        request = urllib.request.Request(url, data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, dict[str, str]] = json.load(answer)
            return found

    revision = call("kv/range", {"key": "AA=="})["header"]["revision"]
    call("kv/compaction", {"revision": revision, "physical": True})


class TestFollowing:
    async def test_adds_changes_and_deletions(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            await make(client, namespace, "old")
            reflector = Reflector(
                client, CONFIGMAPS, namespace=namespace, field_selector="metadata.name!=kube-root-ca.crt"
            )
            seen, batches = followed(reflector), []
            reflector.add_batch_handler(lambda: batches.append(len(reflector.objects)))
            async with running(reflector.run()):
                await reflector.synced.wait()
                assert seen == [(ADDED, f"{namespace}/old")]
                assert batches == [1]
                await make(client, namespace, "new")
                await client.merge_patch(CONFIGMAPS, "old", {"data": {"k": "v"}}, namespace=namespace)
                await client.delete(CONFIGMAPS, "new", namespace=namespace)
                await until(lambda: len(seen) == 4, what="three changes seen")
                assert seen[1:] == [
                    (ADDED, f"{namespace}/new"),
                    (MODIFIED, f"{namespace}/old"),
                    (DELETED, f"{namespace}/new"),
                ]
                assert reflector.objects[f"{namespace}/old"].data == {"k": "v"}
                assert reflector.healthy
                assert REGISTRY.get_sample_value("berth_cached_objects", {"resource": "configmaps"}) == 1

    async def test_more_objects_than_a_page_holds(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            names = [f"c{number:04d}" for number in range(1203)]
            for start in range(0, len(names), 40):
                await asyncio.gather(*(make(client, namespace, name) for name in names[start : start + 40]))
            reflector = Reflector(
                client, CONFIGMAPS, namespace=namespace, field_selector="metadata.name!=kube-root-ca.crt"
            )
            seen = followed(reflector)
            async with running(reflector.run()):
                await reflector.synced.wait()
                assert sorted(key for _, key in seen) == [f"{namespace}/{name}" for name in names]
                sizes = [len(page.items or ()) async for page in client.list_pages(CONFIGMAPS, namespace=namespace)]
                assert sizes[:2] == [500, 500]
                assert len(sizes) == 3

    async def test_objects_of_a_megabyte_come_a_few_at_a_time(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            names = [f"c{number:02d}" for number in range(20)]
            for name in names:
                await client.create(
                    CONFIGMAPS, config_map(name) | {"data": {"k": "x" * 1_000_000}}, namespace=namespace
                )
            found, sizes = list[str](), list[int]()
            selector = "metadata.name!=kube-root-ca.crt"
            async for page in client.list_pages(CONFIGMAPS, namespace=namespace, field_selector=selector):
                found += [msgspec.json.decode(item)["metadata"]["name"] for item in page.items or ()]
                sizes.append(sum(len(bytes(item)) for item in page.items or ()))
        assert found == names
        assert max(sizes) < LARGEST_PAGE < sum(sizes)

    async def test_selectors(self, cluster: LocalCluster, namespace: str) -> None:
        async with client_of(cluster) as client:
            labelled = config_map("in")
            labelled["metadata"]["labels"] = {"part": "yes"}
            await client.create(CONFIGMAPS, labelled, namespace=namespace)
            await make(client, namespace, "out")
            reflector = Reflector(client, CONFIGMAPS, namespace=namespace, label_selector="part=yes")
            seen = followed(reflector)
            async with running(reflector.run()):
                await reflector.synced.wait()
                await client.merge_patch(CONFIGMAPS, "in", {"metadata": {"labels": None}}, namespace=namespace)
                await until(lambda: len(seen) == 2, what="the object leaves the selection")
        assert seen == [(ADDED, f"{namespace}/in"), (DELETED, f"{namespace}/in")]

    async def test_pods_of_a_real_server_are_read(
        self, cluster: LocalCluster, namespace: str, simulated_nodes: list[str]
    ) -> None:
        async with client_of(cluster) as client:
            reflector = Reflector(client, PODS, namespace=namespace)
            async with running(reflector.run()):
                await client.create(PODS, bound_pod("web", simulated_nodes[0]), namespace=namespace)
                await until(
                    lambda: (
                        f"{namespace}/web" in reflector.objects
                        and reflector.objects[f"{namespace}/web"].status.phase == "Running"
                    ),
                    what="the pod is Running in the copy",
                )
                assert reflector.objects[f"{namespace}/web"].spec.node_name == simulated_nodes[0]

    async def test_a_kind_that_is_not_installed_is_waited_for(self, own_cluster: LocalCluster) -> None:
        def errors() -> float:
            labels = {"resource": "appgroups", "reason": "error"}
            return REGISTRY.get_sample_value("berth_watch_restarts_total", labels) or 0.0

        async with client_of(own_cluster) as client:
            reflector = Reflector(client, APP_GROUPS)
            before = errors()
            async with running(reflector.run()):
                await until(lambda: errors() >= before + 2, what="two attempts")
                assert not reflector.synced.is_set()


class TestBrokenWatches:
    async def test_a_restart_of_the_server(self, own_cluster: LocalCluster) -> None:
        async with client_of(own_cluster) as client:
            namespace = await make_namespace(client, "restart")
            await make(client, namespace, "a")
            reflector = Reflector(client, CONFIGMAPS, namespace=namespace)
            seen = followed(reflector)
            async with running(reflector.run()):
                await reflector.synced.wait()
                await asyncio.to_thread(own_cluster.restart_apiserver)
                await make(client, namespace, "b")
                await until(lambda: (ADDED, f"{namespace}/b") in seen, what="a change after the restart")
        assert seen == [(ADDED, f"{namespace}/a"), (ADDED, f"{namespace}/b")]

    async def test_what_happened_in_a_gap_is_reported(self, own_cluster: LocalCluster) -> None:
        """Deleted, changed, made anew: reported once each after 410, exactly as if they had been watched."""
        async with client_of(own_cluster) as client:
            namespace = await make_namespace(client, "gap")
            await make(client, namespace, "deleted", "changed", "anew", "same")
            reflector = Reflector(client, CONFIGMAPS, namespace=namespace)
            seen = followed(reflector)
            async with running(reflector.run()):
                await reflector.synced.wait()
            uid = reflector.objects[f"{namespace}/anew"].metadata.uid
            # Nobody follows now; the copy and its version stay.
            await client.delete(CONFIGMAPS, "deleted", namespace=namespace)
            await client.merge_patch(CONFIGMAPS, "changed", {"data": {"k": "v"}}, namespace=namespace)
            await client.delete(CONFIGMAPS, "anew", namespace=namespace)
            await make(client, namespace, "anew", "new")
            await asyncio.to_thread(compact, own_cluster)
            await asyncio.to_thread(own_cluster.restart_apiserver)  # its cache begins at the compacted revision
            seen.clear()
            labels = {"resource": "configmaps", "reason": "expired"}
            before = REGISTRY.get_sample_value("berth_watch_restarts_total", labels) or 0.0
            async with running(reflector.run()):
                await until(lambda: (ADDED, f"{namespace}/new") in seen, what="the gap is made up for")
            assert (REGISTRY.get_sample_value("berth_watch_restarts_total", labels) or 0.0) > before
            assert seen[0] == (DELETED, f"{namespace}/deleted")
            assert sorted(seen[1:], key=lambda each: each[1]) == [
                (DELETED, f"{namespace}/anew"),
                (ADDED, f"{namespace}/anew"),
                (MODIFIED, f"{namespace}/changed"),
                (ADDED, f"{namespace}/new"),
            ]
            assert reflector.objects[f"{namespace}/anew"].metadata.uid != uid
            assert f"{namespace}/same" in reflector.objects

    async def test_deleted_and_made_again_under_the_watch(self, own_cluster: LocalCluster) -> None:
        async with client_of(own_cluster) as client:
            namespace = await make_namespace(client, "anew")
            await make(client, namespace, "a")
            reflector = Reflector(client, CONFIGMAPS, namespace=namespace)
            seen = followed(reflector)
            async with running(reflector.run()):
                await reflector.synced.wait()
                await client.delete(CONFIGMAPS, "a", namespace=namespace)
                await make(client, namespace, "a")
                await until(lambda: len(seen) == 3, what="both changes")
        assert [change for change, _ in seen] == [ADDED, DELETED, ADDED]

    @pytest.mark.parametrize("version", ["1", "0", "999999999", "nonsense"])
    async def test_a_version_that_the_server_does_not_have(self, own_cluster: LocalCluster, version: str) -> None:
        """Ancient after a long pause, from the future after etcd was restored: the copy becomes right again."""
        async with client_of(own_cluster, retries=0) as client:
            namespace = await make_namespace(client, f"version-{version}")
            await make(client, namespace, "a")
            reflector = Reflector(client, CONFIGMAPS, namespace=namespace, silence_seconds=2.0)
            seen = followed(reflector)
            reflector._version = version
            async with running(reflector.run()):
                await until(lambda: (ADDED, f"{namespace}/a") in seen, what="the object is found")
                await make(client, namespace, "b")
                await until(lambda: f"{namespace}/b" in reflector.objects, what="following goes on")

    async def test_bookmarks_move_the_version(self, own_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        """Other namespaces change, ours does not: without bookmarks its version would grow old."""
        # The server sends one every minute and one shortly before the end of a watch.
        monkeypatch.setattr("berth.kube.reflector.jitter", lambda *_: 5.0)
        async with client_of(own_cluster) as client:
            quiet, busy = await make_namespace(client, "quiet"), await make_namespace(client, "busy")
            await make(client, quiet, "a")
            reflector = Reflector(client, CONFIGMAPS, namespace=quiet)
            seen = followed(reflector)
            async with running(reflector.run()):
                await reflector.synced.wait()
                first = int(reflector._version)
                await make(client, busy, *(f"c{number}" for number in range(5)))
                await until(lambda: int(reflector._version) >= first + 5, what="a bookmark")
        assert seen == [(ADDED, f"{quiet}/a")]

    async def test_silence_is_noticed_and_health_follows(self, own_cluster: LocalCluster) -> None:
        async with client_of(own_cluster) as client, client_of(own_cluster, retries=0, timeout=2.0) as hasty:
            namespace = await make_namespace(client, "silent")
            await make(client, namespace, "a")
            reflector = Reflector(hasty, CONFIGMAPS, namespace=namespace, stale_after=4.0, silence_seconds=2.0)
            async with running(reflector.run()):
                await reflector.synced.wait()
                assert reflector.healthy
                with paused(own_cluster):
                    await until(lambda: not reflector.healthy, what="silence makes it unhealthy")
                    assert reflector.age >= 4.0
                    age = REGISTRY.get_sample_value("berth_watch_age_seconds", {"resource": "configmaps"})
                    assert age is not None
                    assert age >= 4.0
                await until(lambda: reflector.healthy, what="healthy again")
                await make(client, namespace, "b")
                await until(lambda: f"{namespace}/b" in reflector.objects, what="following goes on")

    async def test_a_server_that_is_away_is_not_hammered(self, own_cluster: LocalCluster) -> None:
        async with client_of(own_cluster) as client:
            namespace = await make_namespace(client, "away")
            reflector = Reflector(client, CONFIGMAPS, namespace=namespace)
            async with running(reflector.run()):
                await reflector.synced.wait()
                await asyncio.to_thread(own_cluster.kill_apiserver)
                try:
                    await until(lambda: reflector.failures >= 6, what="six failures in a row")
                finally:
                    await asyncio.to_thread(own_cluster.start_component, "kube-apiserver")
                await make(client, namespace, "a")
                await until(lambda: f"{namespace}/a" in reflector.objects, what="following goes on")
                async with asyncio.timeout(120):
                    # Failures count until a watch that is a second old brings something; bookmarks take a minute.
                    for number in itertools.takewhile(lambda _: reflector.failures, itertools.count()):
                        await make(client, namespace, f"b{number}")

    async def test_cancellation_closes_the_connection(self, own_cluster: LocalCluster) -> None:
        resource: Resource[ConfigMap] = CONFIGMAPS
        async with client_of(own_cluster) as client:
            reflector = Reflector(client, resource)
            task = asyncio.create_task(reflector.run())
            await reflector.synced.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            connector = client._transport._open().connector
            assert connector is not None
            assert not connector._acquired
            assert reflector.age == 0.0
