"""When the status is written, and what is asked of an API server that has no such object yet."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from agents.node.pinning.status_writer import INTERVAL_SECONDS, LATE_SECONDS, REPEAT_SECONDS, StatusWriter, told_lately
from berth.api.socketstatus import PodReport, SocketReport, SocketStatusStatus
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from tests.support.api_server import Answer, ApiServer, Request, api_server, refusal

STATUS = SocketStatusStatus(socket_count=2, pinned="1/1", time=datetime(2026, 1, 31, tzinfo=UTC))
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
LATER = STATUS.model_copy(update={"time": datetime(2026, 2, 1, tzinfo=UTC)})
OTHER = STATUS.model_copy(update={"pinned": "0/1"})


def echo(request: Request) -> Answer:
    """An API server whose object is what is written."""
    return Answer(200, json.loads(request.body) if request.body else {})


@pytest.mark.parametrize(
    ("status", "there", "after", "due"),
    [
        pytest.param(LATER, STATUS, INTERVAL_SECONDS, False, id="nothing but the time is new"),
        pytest.param(OTHER, STATUS, INTERVAL_SECONDS, True, id="something is new"),
        pytest.param(OTHER, STATUS, INTERVAL_SECONDS - 0.1, False, id="something is new, too soon"),
        pytest.param(LATER, OTHER, INTERVAL_SECONDS, True, id="somebody has edited it"),
        pytest.param(LATER, SocketStatusStatus(), INTERVAL_SECONDS, True, id="it is gone"),
        pytest.param(LATER, STATUS, REPEAT_SECONDS, True, id="the last write is long ago"),
    ],
)
async def test_when_it_is_written(
    status: SocketStatusStatus, there: SocketStatusStatus, after: float, due: bool
) -> None:
    with api_server(echo) as server:
        async with ApiClient(server.connection()) as client:
            writer = StatusWriter(client, "n1")
            assert writer.due(status, there, 100.0)
            await writer.write(STATUS, 100.0)
            assert writer.due(status, there, 100.0 + after) is due
    (request,) = server.requests
    assert request.path == ("/apis/berth.dev/v1alpha1/socketstatuses/n1/status?fieldManager=berth-pinning&force=true")
    body = json.loads(request.body)
    assert body["metadata"] == {"name": "n1"}
    assert body["status"] == STATUS.to_api()
    assert "spec" not in body


@pytest.mark.parametrize(
    ("passed", "seconds", "step"),
    [
        pytest.param(300.0, 300.2, 0, id="as much as has passed"),
        pytest.param(300.0, 298.4, 0, id="a little less"),
        pytest.param(300.0, 3900.3, 3600, id="set ahead"),
        pytest.param(300.0, -3300.4, -3600, id="set back"),
    ],
)
async def test_by_how_much_the_clock_was_set(passed: float, seconds: float, step: int) -> None:
    boot = [1000.0]
    with api_server(echo) as server:
        async with ApiClient(server.connection()) as client:
            writer = StatusWriter(client, "n1", boot=lambda: boot[-1])
            assert writer.step(NOON) == timedelta()
            await writer.write(STATUS.model_copy(update={"time": NOON}), 0.0)
    boot.append(1000.0 + passed)
    assert writer.step(NOON + timedelta(seconds=seconds)) == timedelta(seconds=step)


async def test_times_are_set_once_with_the_clock_where_a_write_failed_that_has_arrived() -> None:
    boot, lost = [1000.0], list[bool]()
    with api_server(lambda request: refusal(403, "Forbidden") if lost else echo(request)) as server:
        async with ApiClient(server.connection()) as client:
            writer = StatusWriter(client, "n1", boot=lambda: boot[-1])
            web = PodReport(uid="u", namespace="shop", name="web", since=NOON - timedelta(minutes=5))
            said = STATUS.model_copy(update={"time": NOON, "pods": (web,)})
            await writer.write(said, 0.0)
            boot.append(1010.0)
            later = NOON + timedelta(hours=1, seconds=10)
            arrived = writer.last(said, later).model_copy(update={"time": later})
            lost.append(True)
            with pytest.raises(ApiError, match="403"):
                await writer.write(arrived, 10.0)
    (now,) = writer.last(arrived, later).pods
    assert now.since == NOON + timedelta(minutes=55)


class Missing:
    """An API server that has no SocketStatus until one is made; `node` is whether it has the node."""

    def __init__(self, *, node: bool) -> None:
        self._made, self._node = False, node

    def __call__(self, request: Request) -> Answer:
        if request.method == "GET":
            return Answer(200, {"metadata": {"name": "n1", "uid": "u"}}) if self._node else refusal(404, "NotFound")
        self._made |= request.path.startswith("/apis/berth.dev/v1alpha1/socketstatuses/n1?")
        return echo(request) if self._made else refusal(404, "NotFound")


async def test_one_that_is_not_there_is_made_first() -> None:
    with api_server(Missing(node=True)) as server:
        async with ApiClient(server.connection()) as client:
            await StatusWriter(client, "n1").write(STATUS, 0.0)
    bodies = [json.loads(request.body) for request in server.requests if request.method == "PATCH"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}
    assert [body.get("status") for body in bodies] == [STATUS.to_api(), None, STATUS.to_api()]
    assert bodies[1]["metadata"] == {"name": "n1", "ownerReferences": [owner]}


async def test_of_a_node_that_is_gone_none_is_made() -> None:
    with api_server(Missing(node=False)) as server:
        async with ApiClient(server.connection()) as client:
            with pytest.raises(ApiError, match="404"):
                await StatusWriter(client, "n1").write(STATUS, 0.0)
    assert [request.method for request in server.requests] == ["PATCH", "GET"]


async def test_a_refusal_is_the_callers_business_and_is_not_repeated_at_once() -> None:
    with api_server(lambda _: refusal(403, "Forbidden")) as server:
        async with ApiClient(server.connection()) as client:
            writer = StatusWriter(client, "n1")
            with pytest.raises(ApiError, match="403"):
                await writer.write(STATUS, 10.0)
            assert not writer.due(STATUS, SocketStatusStatus(), 10.0 + INTERVAL_SECONDS - 0.1)
            assert writer.due(STATUS, SocketStatusStatus(), 10.0 + INTERVAL_SECONDS)


async def test_an_answer_that_cannot_be_read_is_the_callers_business_as_well() -> None:
    with api_server(lambda _: Answer(200, {"metadata": []})) as server:
        async with ApiClient(server.connection()) as client:
            with pytest.raises(ApiError, match="metadata"):
                await StatusWriter(client, "n1").write(STATUS, 0.0)


class Shared:
    """An API server whose object has a socket of somebody else, until lists are set; `full`: there is no room then."""

    def __init__(self, *, full: bool) -> None:
        self.theirs, self._full = True, full

    def __call__(self, request: Request) -> Answer:
        body = json.loads(request.body)
        if "force=true" not in request.path:
            self.theirs = False
        elif self.theirs and self._full:
            return refusal(422, "Invalid", "status.sockets: Too many: 65: must have at most 64 items")
        elif self.theirs:
            body["status"]["sockets"] = [{"socket": 7, "cpus": "0-99", "cpuCount": 100}]
        return Answer(200, body)


@pytest.mark.parametrize(
    ("full", "kinds"),
    [
        pytest.param(False, ["apply", "merge"], id="beside its own"),
        pytest.param(True, ["apply", "merge", "merge", "apply"], id="so much that there is no room"),
    ],
)
async def test_what_others_have_written_is_taken_out(full: bool, kinds: list[str]) -> None:
    with api_server(Shared(full=full)) as server:
        async with ApiClient(server.connection(), retries=0) as client:
            writer = StatusWriter(client, "n1")
            await writer.write(STATUS, 0.0)
            assert [request.headers["content-type"].split("/")[1].split("-")[0] for request in server.requests] == kinds
            status = json.loads(server.requests[1].body)["status"]
            assert {name: value for name, value in status.items() if value is not None} == {
                name: value for name, value in STATUS.to_api().items() if name != "conditions"
            }
            assert "conditions" not in status, "others have their own"
            await writer.write(LATER, INTERVAL_SECONDS)
    assert len(server.requests) == len(kinds) + 1, "once they are out, it is applied as before"


class OldDefinition:
    """An API server whose definition of the kind has no caches, until another one is applied."""

    def __init__(self) -> None:
        self.replaced = False

    def __call__(self, request: Request) -> Answer:
        if self.replaced or not any(name in request.body for name in (b"pinnedCaches", b"coreCount")):
            return echo(request)
        text = (
            "failed to create typed patch object: .status.sockets[socket=0].pinnedCaches: field not declared in schema"
        )
        return refusal(500, "", text)


DIVIDED = STATUS.model_copy(
    update={
        "sockets": (SocketReport(socket=0, cpus=frozenset({0, 1}), cpu_count=2, pinned_caches=2, core_count=1),),
        "pods": (PodReport(uid="u", namespace="shop", name="web", cache=1),),
    }
)


def told(server: ApiServer) -> list[tuple[object, object]]:
    """Numbers of caches, and caches of pods, that were written."""
    bodies = [json.loads(request.body)["status"] for request in server.requests]
    return [(body["sockets"][0].get("pinnedCaches"), body["pods"][0].get("cache")) for body in bodies]


async def test_a_definition_of_before_is_told_what_it_has_fields_for() -> None:
    definition = OldDefinition()
    with api_server(definition) as server:
        async with ApiClient(server.connection(), retries=0) as client:
            writer = StatusWriter(client, "n1")
            await writer.write(DIVIDED, 0.0)
            assert told(server) == [(2, 1), (None, None)]
            there = SocketStatusStatus.model_validate(json.loads(server.requests[-1].body)["status"])
            assert not writer.due(DIVIDED, there, INTERVAL_SECONDS), "what it has no fields for is nothing new"
            assert writer.due(DIVIDED.model_copy(update={"pinned": "0/1"}), there, INTERVAL_SECONDS)
            await writer.write(DIVIDED, INTERVAL_SECONDS)
            assert told(server)[2:] == [(None, None)], "it is not asked each time"
            definition.replaced = True
            await writer.write(DIVIDED, INTERVAL_SECONDS + REPEAT_SECONDS)
            assert told(server)[3:] == [(2, 1)], "but now and then"
            assert not writer.due(DIVIDED, DIVIDED, 2 * INTERVAL_SECONDS + REPEAT_SECONDS)


async def test_a_definition_that_lacks_other_fields_refuses() -> None:
    with api_server(lambda _: refusal(500, "", ".status.pinned: field not declared in schema")) as server:
        async with ApiClient(server.connection(), retries=0) as client:
            with pytest.raises(ApiError, match="not declared"):
                await StatusWriter(client, "n1").write(DIVIDED, 0.0)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("ago", "lately"),
    [
        pytest.param(None, False, id="never"),
        pytest.param(0.0, True, id="just now"),
        pytest.param(REPEAT_SECONDS + LATE_SECONDS - 1, True, id="a little late"),
        pytest.param(REPEAT_SECONDS + LATE_SECONDS, False, id="long ago"),
        pytest.param(-1.0, False, id="by a clock that was put back since"),
    ],
)
def test_whether_somebody_else_writes_it(ago: float | None, lately: bool) -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    time = None if ago is None else now - timedelta(seconds=ago)
    assert told_lately(STATUS.model_copy(update={"time": time}), now) is lately
