"""Which conditions are queued for writing. What is written, tests/integration/test_pod_conditions.py shows."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from berth.kube import fair_queue
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import Pod, PodCondition
from controllers.placement import pod_conditions
from controllers.placement.pod_conditions import CONDITION, UNSCHEDULABLE, PodConditions
from tests.support.kube import running, until
from tests.support.placement import lone


@pytest.fixture
def conditions() -> PodConditions:
    return PodConditions(cast("ApiClient", None))


def queued(conditions: PodConditions) -> list[tuple[str, str]]:
    return [(pod.metadata.name, why.message) for pod, why in filter(None, conditions._waiting.values())]


def having(pod: Pod, status: str, message: str) -> Pod:
    pod.status.conditions = [PodCondition(type=CONDITION, status=status, reason=UNSCHEDULABLE, message=message)]
    return pod


def test_the_newest_message_of_a_pod_counts_and_keeps_its_turn(conditions: PodConditions) -> None:
    for name, message in (("a", "no cpu"), ("b", "no cpu"), ("a", "no memory")):
        conditions.unschedulable(lone(name), message)
    assert queued(conditions) == [("a", "no memory"), ("b", "no cpu")]


@pytest.mark.parametrize(
    ("pod", "written"),
    [
        pytest.param(having(lone("a"), "False", "no cpu"), False, id="says-the-same"),
        pytest.param(having(lone("a"), "False", "no memory"), True, id="says-something-else"),
        pytest.param(having(lone("a"), "True", "no cpu"), True, id="is-true"),
        pytest.param(lone("a"), True, id="none"),
    ],
)
def test_what_is_there_already_is_not_written(conditions: PodConditions, pod: Pod, written: bool) -> None:
    conditions.unschedulable(pod, "no cpu")
    assert bool(queued(conditions)) is written


def test_what_a_message_quotes_forges_no_line_and_commands_no_terminal(conditions: PodConditions) -> None:
    conditions.waiting(lone("a"), reason="WaitingForMembers", message='no pod of "a\nb\x1b[2J"')
    assert queued(conditions) == [("a", 'no pod of "a\\nb\\x1b[2J"')]


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        pytest.param(lone("a"), lone("a"), False, id="not shown yet"),
        pytest.param(lone("a"), having(lone("a"), "False", "no cpu"), False, id="shown"),
        pytest.param(having(lone("a"), "False", "no memory"), lone("a"), False, id="another before"),
        pytest.param(having(lone("a"), "False", "no cpu"), lone("a"), True, id="lost in a restore of etcd"),
        pytest.param(having(lone("a"), "False", "no cpu"), having(lone("a"), "False", "x"), True, id="replaced"),
    ],
)
def test_what_was_written_and_is_no_longer_there_is_written_again(
    conditions: PodConditions, old: Pod, new: Pod, again: bool
) -> None:
    conditions.unschedulable(old, "no cpu")
    why = pod_conditions._Why(UNSCHEDULABLE, "no cpu")
    conditions._waiting.clear()
    conditions._written[new.metadata.uid] = why
    conditions.changed(old, new)
    conditions.unschedulable(new, "no cpu")
    assert bool(queued(conditions)) is again


def test_what_was_written_is_not_written_again_until_forgotten(conditions: PodConditions) -> None:
    pod = lone("a")
    conditions.unschedulable(pod, "no cpu")
    (_, why), *_ = filter(None, conditions._waiting.values())
    conditions._waiting.clear()
    conditions._written[pod.metadata.uid] = why
    conditions.unschedulable(pod, "no cpu")
    assert queued(conditions) == []
    conditions.unschedulable(pod, "no memory")
    assert queued(conditions) == [("a", "no memory")]
    conditions.unschedulable(pod, "no cpu")
    assert queued(conditions) == []
    conditions.unschedulable(pod, "no memory")
    conditions.forget(pod.metadata.uid)
    assert queued(conditions) == []
    conditions.unschedulable(pod, "no cpu")
    assert queued(conditions) == [("a", "no cpu")]


@pytest.mark.parametrize(("reason", "written"), [("WaitingForMembers", True), (UNSCHEDULABLE, False)])
def test_another_reason_with_the_same_message_is_written(conditions: PodConditions, reason: str, written: bool) -> None:
    conditions.waiting(having(lone("a"), "False", "no cpu"), reason=reason, message="no cpu")
    assert bool(queued(conditions)) is written


class Answering:
    """A client whose writes are refused with a Conflict; reads show this pod."""

    def __init__(self, current: Pod) -> None:
        self.current = current
        self.asked = asyncio.Event()

    async def strategic_patch(self, *_: object, **__: object) -> None:
        raise ApiError(status=409, reason="Conflict", message="changed")

    async def get(self, *_: object, **__: object) -> Pod:
        self.asked.set()
        return self.current


class Taking:
    """A client that refuses the first write with a Conflict, shows this pod, and takes the next."""

    def __init__(self, current: Pod) -> None:
        self.current = current
        self.written: list[dict[str, str]] = []

    async def strategic_patch(self, *arguments: Any, **_: object) -> None:
        self.written.append(arguments[2]["status"]["conditions"][0])
        if len(self.written) == 1:
            raise ApiError(status=409, reason="Conflict", message="changed")

    async def get(self, *_: object, **__: object) -> Pod:
        return self.current


@pytest.mark.parametrize(
    ("before", "current", "timed"),
    [
        pytest.param(lone("a"), lone("a"), [True, True], id="the first"),
        pytest.param(
            having(lone("a"), "False", "no memory"), having(lone("a"), "False", "x"), [False] * 2, id="another"
        ),
        pytest.param(having(lone("a"), "True", "x"), lone("a"), [True, True], id="it was true"),
        pytest.param(lone("a"), having(lone("a"), "False", "x"), [True, False], id="there by now"),
    ],
)
async def test_the_time_of_a_condition_is_that_of_its_status(before: Pod, current: Pod, timed: list[bool]) -> None:
    """How long a pod has been waiting is read from it."""
    client = Taking(current)
    conditions = PodConditions(cast("ApiClient", client))
    conditions.unschedulable(before, "no cpu")
    async with running(conditions.run()):
        await until(lambda: len(client.written) == 2, what="the second write")
    assert ["lastTransitionTime" in written for written in client.written] == timed


def namesake() -> Pod:
    pod = lone("a")
    pod.metadata.uid = "another"
    return pod


@pytest.mark.parametrize(
    "current",
    [
        pytest.param(namesake(), id="a namesake"),
        pytest.param(lone("a", on="n1"), id="bound"),
        pytest.param(lone("a"), id="changes all the time"),
    ],
)
async def test_what_could_not_be_written_is_not_remembered(current: Pod) -> None:
    client = Answering(current)
    conditions = PodConditions(cast("ApiClient", client))
    conditions.unschedulable(lone("a"), "no cpu")
    async with running(conditions.run()):
        async with asyncio.timeout(60):
            await client.asked.wait()
            while conditions._written:
                await asyncio.sleep(0)
    assert (conditions._waiting, conditions._written) == ({}, {})


class Server:
    """Keeps the pods whose conditions it is sent; those of namespaces whose name begins with ``hang`` get no answer."""

    def __init__(self) -> None:
        self.written: list[str] = []

    async def strategic_patch(self, _kind: object, name: str, body: Any, *, namespace: str, **_: object) -> bytes:
        if namespace.startswith("hang"):
            await asyncio.Event().wait()
        self.written.append(f"{namespace}/{name}")
        return b""


async def test_a_flood_of_one_namespace_does_not_delay_the_others() -> None:
    server = Server()
    conditions = PodConditions(cast("ApiClient", server))
    for number in range(5000):
        conditions.unschedulable(lone(f"p{number}", namespace="flood"), "no cpu")
    conditions.unschedulable(lone("one", namespace="good"), "no cpu")
    async with running(conditions.run()):
        await until(lambda: len(server.written) > 10, what="conditions are written")
    assert "good/one" in server.written[:5]


async def test_namespaces_whose_writes_hang_leave_writers_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "SLOW_SECONDS", 0.02)
    server = Server()
    conditions = PodConditions(cast("ApiClient", server))
    for number in range(150):
        conditions.unschedulable(lone(f"p{number}", namespace=f"hang-{number % 50}"), "no cpu")
    conditions.unschedulable(lone("one", namespace="good"), "no cpu")
    async with running(conditions.run()):
        await until(lambda: server.written == ["good/one"], what="the other one is written", seconds=10.0)


class Holding(Server):
    """Keeps the messages that it is sent; the first is answered when it may be, whatever the others are."""

    def __init__(self, *, odd: str = "") -> None:
        super().__init__()
        self.sent: list[str] = []
        self.may_answer = asyncio.Event()
        self.odd = odd

    async def strategic_patch(self, _kind: object, name: str, body: Any, *, namespace: str, **_: object) -> bytes:
        if name == self.odd:
            raise ValueError("no text that can be sent")
        (condition,) = body["status"]["conditions"]
        self.sent.append(condition["message"])
        if len(self.sent) == 1:
            await self.may_answer.wait()
        self.written.append(condition["message"])
        return b""


async def test_an_older_condition_of_a_pod_is_never_written_last() -> None:
    server = Holding()
    conditions = PodConditions(cast("ApiClient", server))
    async with running(conditions.run()):
        conditions.unschedulable(lone("a"), "no cpu")
        await until(lambda: server.sent == ["no cpu"], what="the first is on its way")
        for message in ("no memory", "no disk"):
            conditions.unschedulable(lone("a"), message)
        conditions.unschedulable(lone("b"), "other")
        await until(lambda: "other" in server.written, what="those of other pods pass it")
        assert server.sent == ["no cpu", "other"]
        server.may_answer.set()
        await until(lambda: not conditions._waiting, what="the newest has its turn")
        await until(lambda: len(server.written) == 3, what="it is written")
    assert server.written == ["other", "no cpu", "no disk"]
    assert not conditions._at_work


async def test_what_is_forgotten_while_an_older_one_is_written_is_not_written() -> None:
    server = Holding()
    conditions = PodConditions(cast("ApiClient", server))
    async with running(conditions.run()):
        conditions.unschedulable(lone("a"), "no cpu")
        await until(lambda: server.sent == ["no cpu"], what="the first is on its way")
        conditions.unschedulable(lone("a"), "no memory")
        conditions.forget(lone("a").metadata.uid)
        server.may_answer.set()
        await until(lambda: not conditions._waiting, what="both are done with")
    assert server.written == ["no cpu"]
    assert (conditions._written, len(conditions._queue)) == ({}, 0)


async def test_a_pod_whose_condition_cannot_be_written_does_not_stop_the_others() -> None:
    server = Holding(odd="odd")
    server.may_answer.set()
    conditions = PodConditions(cast("ApiClient", server))
    async with running(conditions.run()):
        for number in range(10):
            conditions.unschedulable(lone("odd", namespace=f"n{number}"), "no cpu")
        conditions.unschedulable(lone("a"), "no memory")
        await until(lambda: server.written == ["no memory"], what="the others are written")
        await until(lambda: not conditions._waiting, what="all had their turn")
    assert [why.message for why in conditions._written.values()] == ["no memory"]


async def test_what_is_forgotten_is_not_written() -> None:
    server = Server()
    conditions = PodConditions(cast("ApiClient", server))
    pods = [lone(f"p{number}") for number in range(50)]
    for pod in pods:
        conditions.unschedulable(pod, "no cpu")
    for pod in pods[:-1]:
        conditions.forget(pod.metadata.uid)
    async with running(conditions.run()):
        await until(lambda: not conditions._waiting, what="all had their turn")
    assert server.written == ["default/p49"]


def test_pods_that_come_and_go_while_nothing_is_written_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_conditions, "CAPACITY", 10, raising=False)
    conditions = PodConditions(cast("ApiClient", None))
    conditions.unschedulable(lone("one", namespace="good"), "no cpu")
    for number in range(100):
        pod = lone(f"p{number}", namespace="flood")
        conditions.unschedulable(pod, "no cpu")
        conditions.forget(pod.metadata.uid)
    assert len(conditions._waiting) == len(conditions._queue) == 10
    assert queued(conditions) == [("one", "no cpu")]
