"""Which notes are queued, how they are cut and named. Writing itself: tests/integration/test_kube_events.py."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY

from berth.kube import events, precedence
from berth.kube.client import ApiClient
from berth.kube.event_series import Series
from berth.kube.events import NAME_LIMIT, NOTE_LIMIT, EventRecorder, Note, Reference
from berth.kube.objects import ObjectMeta
from berth.kube.precedence import Precedence
from tests.support.kube import running, until
from tests.support.virtual_time import run_in_virtual_time

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
    return EventRecorder(
        client, **{"controller": "berth.dev/test", "instance": "me_1", "gives_way_to": Precedence(), **arguments}
    )


def waiting(subject: EventRecorder) -> int:
    return len(subject._queue)


def taken(subject: EventRecorder) -> tuple[Note, Series]:
    """The next note to write, as a writer takes it that is done with it at once."""
    turn = subject._queue.take()
    assert turn is not None
    subject._queue.done(turn)
    note, series, _ = turn.item
    return note, series


async def test_the_same_note_is_queued_once_and_counted(closed_client: ApiClient) -> None:
    subject = recorder(closed_client)
    for _ in range(50):
        subject.record(note())
    assert waiting(subject) == 1
    _, series = taken(subject)
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
    queued = [taken(subject) for _ in range(waiting(subject))]
    assert [noted for noted, _ in queued] == [note(), other]
    assert [series.count for _, series in queued] == [1, 1]
    assert len({series.event_name for _, series in queued}) == 2


async def test_another_text_is_another_event_of_the_same_series(closed_client: ApiClient) -> None:
    subject = recorder(closed_client)
    subject.record(note("0/3 nodes fit"))
    subject.record(note("0/4 nodes fit"))
    (first, one), (second, other) = (taken(subject) for _ in range(2))
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
    subject.record(note(uid="u0"))  # dropped above, so it does not wait for its series' interval
    assert [taken(subject)[0].regarding.uid for _ in range(waiting(subject))] == ["u4", "u0"]


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
    queued, series = taken(subject)
    body = subject._body(queued, name=series.event_name, namespace="shop", now="2026-01-01T00:00:00.000000Z")
    assert len(body["note"].encode()) <= NOTE_LIMIT
    assert body["note"].endswith("ü…")
    assert len(body["reportingInstance"].encode()) <= NAME_LIMIT
    assert body["type"] == "Warning"
    assert body["regarding"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "u1"}


async def test_what_a_note_quotes_forges_no_line_and_commands_no_terminal(closed_client: ApiClient) -> None:
    subject = recorder(closed_client)
    subject.record(note('no "a\nb\x1b[2J\u202e"'))
    queued, _ = taken(subject)
    assert queued.message == 'no "a\\nb\\x1b[2J\\u202e"'


def test_reference_of_an_object() -> None:
    metadata = ObjectMeta(name="boutique", namespace="shop", uid="u9")
    made = Reference.of(metadata, kind="AppGroup", api_version="appgroup.diktyo.x-k8s.io/v1alpha1")
    assert made == Reference("appgroup.diktyo.x-k8s.io/v1alpha1", "AppGroup", "shop", "boutique", "u9")


class Server:
    """An API server that keeps the Events it is sent; those of some namespaces are never answered."""

    def __init__(self, *, hangs: str = "never") -> None:
        self.hangs = hangs
        self.hanging = 0
        self.written: list[str] = []

    async def create(self, _kind: Any, body: dict[str, Any], *, namespace: str, repeat: bool) -> bytes:
        assert repeat
        if namespace.startswith(self.hangs):
            self.hanging += 1
            await asyncio.Event().wait()
        self.written.append(f"{namespace}/{body['regarding']['name']}")
        return b""


def about(namespace: str, number: int) -> Note:
    return Note(Reference("v1", "Pod", namespace, f"p{number}", f"{namespace}-{number}"), "Failed", "none fits", "Plan")


async def test_a_flood_of_one_namespace_neither_delays_nor_drops_the_notes_of_another() -> None:
    server = Server()
    subject = recorder(cast("ApiClient", server))
    for number in range(3):
        subject.record(about("early", number))
    for number in range(20_000):
        subject.record(about("flood", number))
    for number in range(3):
        subject.record(about("late", number))
    assert waiting(subject) == events.CAPACITY
    async with running(subject.run()):
        await until(lambda: len(server.written) > 20, what="notes are written")
    first = server.written[:20]
    others = {f"{who}/p{number}" for who in ("early", "late") for number in range(3)}
    assert {name for name in first if "flood" not in name} == others
    flood = [int(name.removeprefix("flood/p")) for name in server.written if "flood" in name]
    assert flood == sorted(flood), "in their order"
    assert flood[0] == 20_000 - (events.CAPACITY - 6), "the oldest are dropped"


async def test_namespaces_whose_events_hang_leave_writers_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("berth.kube.fair_queue.SLOW_SECONDS", 0.02)
    server = Server(hangs="hang")
    subject = recorder(cast("ApiClient", server))
    for number in range(10):
        for namespace in range(3 * events.WRITERS):
            subject.record(about(f"hang-{namespace}", number))
    subject.record(about("good", 0))
    async with running(subject.run()):
        await until(lambda: server.written == ["good/p0"], what="the other one is written", seconds=5.0)


async def test_the_events_of_one_namespace_are_written_side_by_side() -> None:
    """A write takes as long as etcd takes to store it, whoever else writes: four at a time were told long after."""
    server = Server(hangs="shop")
    subject = recorder(cast("ApiClient", server))
    subject._queue._note_prompt("shop")
    for number in range(100):
        subject.record(about("shop", number))
    async with running(subject.run()):
        await until(lambda: server.hanging == 18, what="three quarters of the writers are at work")
        assert waiting(subject) == 100 - 18


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes first may take a minute, and is given way to for as long."""
    monkeypatch.setattr(precedence, "HOLD_SECONDS", 60.0)
    monkeypatch.setattr(events, "GIVE_WAY_SECONDS", 60.0)


async def test_events_are_written_once_other_writes_have_ended(patient: None) -> None:
    server, others = Server(), Precedence()
    subject = recorder(cast("ApiClient", server), gives_way_to=others)
    async with running(subject.run()):
        with others.taken():
            for number in range(5):
                subject.record(about("shop", number))
            await until(lambda: not waiting(subject), what="writers have taken all of them")
            assert server.written == []
        await until(lambda: len(server.written) == 5, what="all are written", seconds=5.0)


def test_events_give_way_for_a_while_from_when_they_were_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "HOLD_SECONDS", 10**6)

    async def stream(clock: Callable[[], float]) -> float:
        monkeypatch.setattr(events, "monotonic", clock)
        others, told, late = Precedence(), [clock()], [0.0]

        class SlowServer:
            async def create(self, *_: Any, **__: Any) -> bytes:
                await asyncio.sleep(0.005)
                late.append(clock() - told[len(late)])
                return b"{}"

        subject = recorder(cast("ApiClient", SlowServer()), gives_way_to=others)
        async with running(subject.run()):
            with others.taken():
                for number in range(48 * 30):
                    told.append(clock())
                    subject.record(about("shop", number))
                    await asyncio.sleep(1 / 48)
        assert len(late) > 48 * 20
        return max(late)

    longest = run_in_virtual_time(stream)
    assert events.GIVE_WAY_SECONDS <= longest < events.GIVE_WAY_SECONDS + 0.5
