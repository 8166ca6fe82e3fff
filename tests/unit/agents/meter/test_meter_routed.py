"""A meter behind a router: whatever keys the two have, the way between them is no user's; without its application.

Left out: what the router itself tells of its users (tests/unit/agents/router).
"""

from __future__ import annotations

import asyncio
import socket

import pytest
from prometheus_client import REGISTRY

from agents.router.endpoints import Backend
from berth.api.latency_exchange import hash_identity
from berth.runtime.proxy.body import REMEMBERED_BYTES
from berth.runtime.proxy.mark import MARK_HEADER
from berth.runtime.proxy.upstream import Address
from tests.support.proxying import (
    Application,
    Script,
    Visit,
    answering,
    application,
    get,
    post,
    proxy,
    read_body,
    status_of,
)
from tests.unit.agents.meter.test_meter import KEY, OK, Stand, metering
from tests.unit.agents.router.test_routing import router

OLD, NEW = b"o" * 32, b"n" * 32


def total(name: str) -> float:
    return REGISTRY.get_sample_value(name) or 0.0


@pytest.mark.parametrize(
    ("router_key", "meter_key", "proven"),
    [
        pytest.param(NEW, NEW, True, id="both have the key"),
        pytest.param(OLD, NEW, False, id="a router that has the key of before"),
        pytest.param(NEW, OLD, False, id="a meter that has the key of before"),
        pytest.param(b"", NEW, False, id="a router without a key"),
        pytest.param(NEW, None, False, id="a meter without a key"),
        pytest.param(b"", None, False, id="none has a key"),
    ],
)
async def test_the_way_from_a_router_is_no_users(router_key: bytes, meter_key: bytes | None, proven: bool) -> None:
    before = total("berth_meter_routed_total"), total("berth_meter_unproven_marks_total")
    async with application(answering(OK)) as app, metering(app) as stand:
        if meter_key is not None:
            stand.follow(key=meter_key)
        pod = Backend(Address("127.0.0.1", stand.server.port), "a", "pod")
        async with router(pod) as under_test:
            under_test.knowledge.key = router_key
            for _ in range(2):
                assert status_of(await under_test.ask(get("/", "X-User: ann"))) == 200
        assert (list(stand.table), stand.came) == ([], [])
        assert b"berth-router:" not in app.heads[0].lower()
    routed, unproven = (
        total("berth_meter_routed_total") - before[0],
        total("berth_meter_unproven_marks_total") - before[1],
    )
    assert (routed, unproven) == ((2, 0) if proven else (0, 2))


def refusing() -> Application:
    """One that is not there: nobody listens at its port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return Application(answering(OK), address=Address(*taken.getsockname()))


async def asked(stand: Stand, fields: tuple[str, ...]) -> bytes:
    """All that a meter answers to a request with such fields."""
    async with stand.client() as client:
        client.writer.write(get("/", *fields))
        return await client.reader.read()


def pod_of(stand: Stand, node: str) -> Backend:
    return Backend(Address("127.0.0.1", stand.server.port), node, f"pod-{node}")


async def live(visit: Visit) -> None:
    while True:
        head = await visit.head()
        if not head.startswith(b"GET"):
            await read_body(visit, head)
        await visit.say(OK)


def ends_when_asked(listening: list[asyncio.Server]) -> Script:
    """It reads the head of a request, and is gone."""

    async def script(visit: Visit) -> None:
        await visit.head()
        listening[0].close()
        visit.reset()

    return script


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(get("/", "X-User: ann"), 200, id="read"),
        pytest.param(post("ab", "X-User: ann"), 200, id="written"),
        pytest.param(post("ab", "X-User: ann", chunked=True), 200, id="written in chunks"),
        pytest.param(post("ab", "X-User: ann", "Expect: 100-continue"), 200, id="asked for the body"),
    ],
)
async def test_who_has_lost_the_application_sends_routers_elsewhere(request_: bytes, status: int) -> None:
    async with (
        application(live) as app,
        metering(refusing()) as lost,
        metering(app) as kept,
        router(pod_of(lost, "a"), pod_of(kept, "b")) as under_test,
    ):
        under_test.knowledge.nodes = {hash_identity(KEY, "ann"): "a"}
        answer = await under_test.ask(request_)
        assert under_test.balancer.load(pod_of(lost, "a").address) == 0
    final = answer[answer.rindex(b"HTTP/1.1 ") :]
    assert status_of(final) == status
    assert len(app.heads) == 1


@pytest.mark.parametrize(
    ("request_", "status", "asked"),
    [
        pytest.param(get("/", "X-User: ann"), 200, 1, id="what may be done twice"),
        pytest.param(post("ab", "X-User: ann"), 502, 0, id="what may have been done"),
    ],
)
async def test_what_the_application_may_have_read_goes_elsewhere_where_it_may_be_done_twice(
    request_: bytes, status: int, asked: int
) -> None:
    gone = Application(live)
    listening: list[asyncio.Server] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ends_when_asked(listening)(Visit(reader, writer, 0))

    listening.append(await asyncio.start_server(serve, "127.0.0.1", 0))
    gone.address = Address(*listening[0].sockets[0].getsockname())
    async with (
        application(live) as app,
        metering(gone) as ending,
        metering(app) as kept,
        router(pod_of(ending, "a"), pod_of(kept, "b")) as under_test,
    ):
        under_test.knowledge.nodes = {hash_identity(KEY, "ann"): "a"}
        assert status_of(await under_test.ask(request_)) == status
    assert len(app.heads) == asked


async def test_where_nobody_has_an_application_the_client_hears_so_alone() -> None:
    async with (
        metering(refusing()) as one,
        metering(refusing()) as other,
        router(pod_of(one, "a"), pod_of(other, "b")) as under_test,
    ):
        answer = await under_test.ask(get("/"))
        direct, routed = [await asked(one, fields) for fields in ((), (f"{MARK_HEADER}: unnamed",))]
    assert [status_of(each) for each in (answer, direct, routed)] == [503] * 3
    assert [b"berth-unanswered" in each.lower() for each in (answer, direct, routed)] == [False, False, True]


async def test_an_application_cannot_say_so_itself() -> None:
    forged = b"HTTP/1.1 503 No\r\nBerth-Unanswered: application\r\nContent-Length: 2\r\n\r\nno"
    async with (
        application(answering(forged)) as app,
        metering(app) as stand,
        router(pod_of(stand, "a")) as under_test,
    ):
        answer = await under_test.ask(get("/"))
    assert (status_of(answer), len(app.heads)) == (503, 1)
    assert b"berth-unanswered" not in answer.lower()


async def test_a_body_that_is_not_remembered_is_not_sent_elsewhere() -> None:
    async def lost(visit: Visit) -> None:
        await read_body(visit, await visit.head())
        await visit.say(b"HTTP/1.1 503 No\r\nBerth-Unanswered: application\r\nContent-Length: 2\r\n\r\nno")

    async with (
        application(lost) as meter,
        application(live) as other,
        proxy(meter.address, other.address, elsewhere=True) as under_test,
    ):
        answer = await under_test.ask(post("x" * (REMEMBERED_BYTES + 1)))
    assert (status_of(answer), len(meter.heads), len(other.heads)) == (503, 1, 0)
    assert b"berth-unanswered" not in answer.lower()
