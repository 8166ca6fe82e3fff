"""Events as people see them with kubectl."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from berth.api.text import on_one_line
from berth.kube import events as events_module
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.errors import ApiError
from berth.kube.event_series import FIRST_INTERVAL
from berth.kube.events import EventRecorder, Note, Reference
from berth.kube.objects import ConfigMap, Namespace
from berth.kube.precedence import Precedence
from berth.kube.resources import CONFIGMAPS, EVENTS, NAMESPACES
from hack.harness.cluster import Kubectl
from hack.localcluster import LocalCluster
from hack.localcluster.components import Options
from tests.support.kube import client_of, config_map, running, until
from tests.support.placement import Clock


def recorder(client: ApiClient, **arguments: Any) -> EventRecorder:
    return EventRecorder(
        client, **{"controller": "berth.dev/test", "instance": "test_1", "gives_way_to": Precedence(), **arguments}
    )


async def subject(client: ApiClient, namespace: str, name: str = "web") -> Reference:
    await client.create(CONFIGMAPS, config_map(name), namespace=namespace)
    made: ConfigMap = await client.get(CONFIGMAPS, name, namespace=namespace)
    return Reference.of(made.metadata, kind="ConfigMap")


def dropped(reason: str) -> float:
    return REGISTRY.get_sample_value("berth_events_dropped_total", {"reason": reason}) or 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The recorder's time."""
    made = Clock()
    monkeypatch.setattr(events_module, "monotonic", made)
    return made


async def written(subject: EventRecorder) -> None:
    """Wait until nothing waits."""
    await subject._queue.join()


async def test_kubectl_shows_the_note(cluster: LocalCluster, namespace: str, kubectl: Kubectl) -> None:
    async with client_of(cluster) as client:
        events = recorder(client)
        async with running(events.run()):
            about = await subject(client, namespace)
            events.record(
                Note(about, "FailedScheduling", "0/24 nodes fit: 24 Insufficient cpu", "Scheduling", warning=True)
            )
            await written(events)
    described = await asyncio.to_thread(kubectl, "describe", "configmap", "web")
    assert "Warning" in described
    assert "FailedScheduling" in described
    assert "0/24 nodes fit: 24 Insufficient cpu" in described
    (event,) = kubectl.get("events.events.k8s.io")["items"]
    assert (event["reportingController"], event["reportingInstance"]) == ("berth.dev/test", "test_1")
    assert (event["action"], event["regarding"]["uid"]) == ("Scheduling", about.uid)


async def test_events_of_objects_outside_namespaces_lie_in_default(cluster: LocalCluster, namespace: str) -> None:
    async with client_of(cluster) as client:
        events = recorder(client)
        made: Namespace = await client.get(NAMESPACES, namespace)
        async with running(events.run()):
            events.record(Note(Reference.of(made.metadata, kind="Namespace"), "Ordered", "11 workloads", "Ordering"))
            await written(events)
        found = await client.list_all(EVENTS, namespace="default", field_selector=f"regarding.name={namespace}")
    assert [event["note"] for event in found] == ["11 workloads"]


async def test_repeats_are_counted_in_the_series(
    cluster: LocalCluster, namespace: str, kubectl: Kubectl, clock: Clock
) -> None:
    async with client_of(cluster) as client:
        events = recorder(client)
        async with running(events.run()):
            about = await subject(client, namespace)
            note = Note(about, "FailedScheduling", "does not fit", "Scheduling", warning=True)
            events.record(note)
            await written(events)
            clock.now += FIRST_INTERVAL
            events.record(note)
            await written(events)
            for _ in range(5):
                events.record(note)  # counted, not due
            clock.now += 2 * FIRST_INTERVAL
            events.record(note)
            await written(events)
    (event,) = kubectl.get("events.events.k8s.io")["items"]
    assert event["series"]["count"] == 8
    assert "x8" in kubectl("events", "--for", "configmap/web")


async def test_nobody_can_change_the_text_of_an_event(cluster: LocalCluster, namespace: str) -> None:
    """Why another text is another Event."""
    async with client_of(cluster) as client:
        events = recorder(client)
        async with running(events.run()):
            note = Note(await subject(client, namespace), "FailedScheduling", "0/1 nodes fit", "Scheduling")
            events.record(note)
            await written(events)
        with pytest.raises(ApiError, match="field is immutable") as refused:
            await client.merge_patch(EVENTS, events._name(note), {"note": "0/2 nodes fit"}, namespace=namespace)
    assert refused.value.status == 422


async def test_a_text_that_comes_back_is_counted_in_its_event(cluster: LocalCluster, namespace: str) -> None:
    async with client_of(cluster) as client:
        events = recorder(client)
        async with running(events.run()):
            about = await subject(client, namespace)
            for text in ("0/1 nodes fit", "0/2 nodes fit", "0/1 nodes fit"):
                events.record(Note(about, "FailedScheduling", text, "Scheduling"))
                await written(events)
        found = await client.list_all(EVENTS, namespace=namespace)
    assert {event["note"]: event.get("series", {}).get("count") for event in found} == {
        "0/1 nodes fit": 3,
        "0/2 nodes fit": None,
    }


async def test_an_event_that_ran_out_is_written_again(
    cluster: LocalCluster, namespace: str, kubectl: Kubectl, clock: Clock
) -> None:
    async with client_of(cluster) as client:
        events = recorder(client)
        async with running(events.run()):
            about = await subject(client, namespace)
            note = Note(about, "FailedScheduling", "does not fit", "Scheduling")
            events.record(note)
            await written(events)
            await client.delete(EVENTS, events._name(note), namespace=namespace)
            clock.now += FIRST_INTERVAL
            events.record(note)
            await written(events)
    (event,) = kubectl.get("events.events.k8s.io")["items"]
    assert event["note"] == "does not fit"


async def test_a_process_that_forgot_its_event_is_not_refused(cluster: LocalCluster, namespace: str) -> None:
    before = dropped("refused")
    async with client_of(cluster) as client:
        about = await subject(client, namespace)
        for _ in range(2):
            events = recorder(client)
            async with running(events.run()):
                events.record(Note(about, "Bound", "to n1", "Binding"))
                await written(events)
        assert len(await client.list_all(EVENTS, namespace=namespace)) == 1
    assert dropped("refused") == before


@pytest.mark.parametrize(
    ("message", "reason", "instance"),
    [
        pytest.param("ü" * 5000, "Bound", "i", id="message beyond the limit, in bytes"),
        pytest.param("fits", "R" * 500, "i", id="reason beyond the limit"),
        pytest.param("fits", "Bound", "pod-" + "x" * 249 + "_0011", id="instance of a pod with the longest name"),
        pytest.param("", "Bound", "i", id="empty message"),
        pytest.param('quote " newline \n tab \t nul \\u0000 emoji 🛥', "Bound", "i", id="characters"),
    ],
)
async def test_whatever_is_noted_is_accepted(
    cluster: LocalCluster, namespace: str, message: str, reason: str, instance: str
) -> None:
    async with client_of(cluster) as client:
        events = recorder(client, instance=instance)
        before = dropped("refused")
        async with running(events.run()):
            events.record(Note(await subject(client, namespace), reason, message, "Binding"))
            await written(events)
        (event,) = await client.list_all(EVENTS, namespace=namespace)
    shown = event.get("note", "").rstrip("…")
    written_out = on_one_line(message)
    assert written_out.startswith(shown)
    assert len(shown.encode()) >= min(len(written_out.encode()), 1020)
    assert dropped("refused") == before


async def test_a_namespace_that_is_gone(cluster: LocalCluster) -> None:
    before = dropped("refused")
    async with client_of(cluster) as client:
        events = recorder(client)
        async with running(events.run()):
            events.record(Note(Reference("v1", "Pod", "no-such-namespace", "web", "u1"), "Bound", "to n1", "Binding"))
            await written(events)
            assert dropped("refused") == before + 1
            # The writers live on.
            found: Namespace = await client.get(NAMESPACES, "default")
            events.record(Note(Reference.of(found.metadata, kind="Namespace"), "After", "goes on", "Testing"))
            await written(events)
        assert any(e["reason"] == "After" for e in await client.list_all(EVENTS, namespace="default"))


async def test_without_the_right_to_write_them_the_log_says_so_once_a_minute(
    cluster: LocalCluster, namespace: str, tmp_path: Path, clock: Clock
) -> None:
    kubeconfig = cluster.service_account_kubeconfig(namespace, "default", path=tmp_path / "kubeconfig")
    async with ApiClient(await load_connection(kubeconfig=str(kubeconfig))) as client:
        events = recorder(client)
        with capture_logs() as lines:
            async with running(events.run()):
                for minute in range(2):
                    for number in range(5):
                        about = Reference("v1", "Pod", namespace, f"web-{number}", f"u{minute}-{number}")
                        events.record(Note(about, "Bound", "to n1", "Binding"))
                    await written(events)
                    clock.advance(60.0)
    refusals = [line for line in lines if line["event"] == "event refused"]
    assert [line["log_level"] for line in refusals] == ["warning"] * 2
    assert 'cannot create resource "events"' in refusals[0]["error"]


async def test_a_namespace_that_is_being_deleted_is_nothing_to_tell(cluster: LocalCluster, namespace: str) -> None:
    ending = f"{namespace}-ending"
    held = config_map("held")
    held["metadata"]["finalizers"] = ["test.berth.dev/held"]
    before = dropped("refused")
    async with client_of(cluster) as client:
        await client.create(NAMESPACES, {"metadata": {"name": ending}})
        await client.create(CONFIGMAPS, held, namespace=ending)
        await client.delete(NAMESPACES, ending)
        events = recorder(client)
        with capture_logs() as lines:
            async with running(events.run()):
                events.record(Note(Reference("v1", "Pod", ending, "web", "u1"), "Bound", "to n1", "Binding"))
                await written(events)
        await client.merge_patch(CONFIGMAPS, "held", {"metadata": {"finalizers": None}}, namespace=ending)
    assert dropped("refused") == before + 1
    assert lines == []


async def test_what_waits_is_written_at_shutdown(
    cluster: LocalCluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "SHUTDOWN_SECONDS", 120.0)
    async with client_of(cluster) as client:
        about = await subject(client, namespace)
        events = recorder(client)
        task = asyncio.create_task(events.run())
        await asyncio.sleep(0)
        for number in range(60):
            events.record(Note(about, f"Noted{number}", "something", "Testing"))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert len(await client.list_all(EVENTS, namespace=namespace)) == 60


async def test_more_notes_than_the_queue_holds(
    cluster: LocalCluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "CAPACITY", 10)
    before = dropped("queue_full")
    async with client_of(cluster) as client:
        about = await subject(client, namespace)
        events = recorder(client)
        for number in range(25):
            events.record(Note(about, f"Noted{number}", "something", "Testing"))
        assert dropped("queue_full") == before + 15
        async with running(events.run()):
            await written(events)
        assert len(await client.list_all(EVENTS, namespace=namespace)) == 10


async def test_a_server_that_is_away(fresh_cluster: Callable[..., LocalCluster]) -> None:
    cluster = fresh_cluster(crds=False, kwok=False, options=Options(controller_manager=False))
    async with client_of(cluster, retries=1) as hasty, client_of(cluster, retries=40) as patient:
        about = await subject(hasty, "default")
        lossy, tenacious = recorder(hasty), recorder(patient, instance="test_2")
        async with running(lossy.run(), tenacious.run()):
            await asyncio.to_thread(cluster.kill_apiserver)
            before = dropped("unreachable")
            for events in (lossy, tenacious):
                events.record(Note(about, "Noted", "while the server is away", "Testing"))
            await until(lambda: dropped("unreachable") == before + 1, what="the first note is given up")
            await asyncio.to_thread(cluster.start_component, "kube-apiserver")
            await written(tenacious)
        found = await patient.list_all(EVENTS, namespace="default")
    assert [event["reportingInstance"] for event in found] == ["test_2"]
