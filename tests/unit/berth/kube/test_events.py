"""Which notes are queued, how they are cut and named. Writing itself: tests/integration/test_kube_events.py."""

from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client import REGISTRY

from berth.kube import events
from berth.kube.client import ApiClient
from berth.kube.events import NAME_LIMIT, NOTE_LIMIT, EventRecorder, Note, Reference
from berth.kube.objects import ObjectMeta

DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def note(
    message: str = "0/3 nodes fit",
    *,
    name: str = "web-0",
    uid: str = "u1",
    reason: str = "Failed",
    action: str = "Scheduling",
) -> Note:
    return Note(Reference("v1", "Pod", "shop", name, uid), reason, message, action, warning=True)


def recorder(client: ApiClient, **arguments: Any) -> EventRecorder:
    return EventRecorder(client, **{"controller": "berth.dev/test", "instance": "me_1", **arguments})


def waiting(subject: EventRecorder) -> int:
    return subject._queue.qsize()


async def test_the_same_note_is_queued_once_and_counted(closed_client: ApiClient) -> None:
    subject = recorder(closed_client)
    for _ in range(50):
        subject.record(note())
    assert waiting(subject) == 1
    _, series = subject._queue.get_nowait()
    assert series.count == 50


@pytest.mark.parametrize(
    "other",
    [note(uid="u2"), note(reason="Bound"), note(action="Binding")],
    ids=["object", "reason", "action"],
)
async def test_a_note_of_another_key_is_another_series(closed_client: ApiClient, other: Note) -> None:
    subject = recorder(closed_client)
    subject.record(note())
    subject.record(other)
    queued = [subject._queue.get_nowait() for _ in range(waiting(subject))]
    assert [noted for noted, _ in queued] == [note(), other]
    assert [series.count for _, series in queued] == [1, 1]
    assert len({series.event_name for _, series in queued}) == 2


async def test_another_text_is_another_event_of_the_same_series(closed_client: ApiClient) -> None:
    subject = recorder(closed_client)
    subject.record(note("0/3 nodes fit"))
    subject.record(note("0/4 nodes fit"))
    (first, one), (second, other) = (subject._queue.get_nowait() for _ in range(2))
    assert one is other
    assert one.count == 2
    assert subject._name(first) != subject._name(second) == one.event_name


async def test_texts_that_change_all_the_time_are_not_all_written(closed_client: ApiClient) -> None:
    subject = recorder(closed_client)
    for number in range(20_000):
        subject.record(note(f"AppGroup shop has {number} of 20000 pods"))
    assert waiting(subject) <= 10
    assert len(subject._series) == 1


async def test_overflow_is_counted_and_does_not_silence_the_note(
    closed_client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "CAPACITY", 2)
    subject = recorder(closed_client)
    before = REGISTRY.get_sample_value("berth_events_dropped_total", {"reason": "queue_full"}) or 0.0
    for number in range(5):
        subject.record(note(uid=f"u{number}"))
    assert waiting(subject) == 2
    assert REGISTRY.get_sample_value("berth_events_dropped_total", {"reason": "queue_full"}) == before + 3
    subject._queue.get_nowait()
    subject.record(note(uid="u4"))  # dropped above, so it must not wait for its series' interval
    assert waiting(subject) == 2


@pytest.mark.parametrize(
    "name",
    ["web-0", "a" * 253, "a" * 199 + "-" + "b" * 53, "a" * 198 + ".-" + "b" * 53, "x.y.z"],
    ids=["short", "longest", "cut at a dash", "cut at a dot and a dash", "dots"],
)
async def test_event_names_are_valid_and_stable(closed_client: ApiClient, name: str) -> None:
    subject = recorder(closed_client)
    made = subject._name(note(name=name))
    assert DNS_SUBDOMAIN.fullmatch(made)
    assert len(made) <= 253
    assert made == subject._name(note(name=name))
    assert made != recorder(closed_client, instance="me_2")._name(note(name=name))


async def test_body_keeps_to_the_limits_of_the_api(closed_client: ApiClient) -> None:
    subject = recorder(closed_client, instance="i" * 300)
    subject.record(note("ü" * 2000))
    queued, series = subject._queue.get_nowait()
    body = subject._body(queued, name=series.event_name, namespace="shop", now="2026-01-01T00:00:00.000000Z")
    assert len(body["note"].encode()) <= NOTE_LIMIT
    assert body["note"].endswith("ü…")
    assert len(body["reportingInstance"].encode()) <= NAME_LIMIT
    assert body["type"] == "Warning"
    assert body["regarding"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "u1"}


def test_reference_of_an_object() -> None:
    metadata = ObjectMeta(name="boutique", namespace="shop", uid="u9")
    made = Reference.of(metadata, kind="AppGroup", api_version="appgroup.diktyo.x-k8s.io/v1alpha1")
    assert made == Reference("appgroup.diktyo.x-k8s.io/v1alpha1", "AppGroup", "shop", "boutique", "u9")
