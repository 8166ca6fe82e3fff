"""Round trips of users who ask the router, told to a controller over HTTPS, and its answers obeyed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from agents.router.knowledge import Knowledge
from agents.router.measuring import Measuring
from agents.router.settings import RouterSettings
from berth.api.latency_exchange import Identity, IdentitySource, Instructions, hash_identity
from berth.runtime.measuring.users import User
from berth.runtime.proxy.server import ProxyServer
from tests.support.latency_controller import CERTIFICATE, KEY, LatencyController, instructions, latency_controller
from tests.support.proxying import get

BY_HEADER = Identity(IdentitySource.HEADER, "X-User")


@dataclass
class Stand:
    """A server whose requests are measured."""

    knowledge: Knowledge
    server: ProxyServer
    measuring: Measuring
    go: asyncio.Event
    """what a request for /long waits for"""

    @property
    def users(self) -> dict[str, User]:
        return {user.name: user for user in self.measuring._users}

    @asynccontextmanager
    async def long_request(self, user: str) -> AsyncIterator[None]:
        """One whose answer has begun and goes on."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        try:
            writer.write(get("/long", f"X-User: {user}"))
            await reader.readuntil(b"begun")
            yield
            self.go.set()
            assert b"over" in await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def measuring(
    controller: LatencyController, tmp_path: Path, **more: str
) -> AsyncIterator[tuple[Knowledge, ProxyServer]]:
    """The two that most tests need."""
    async with measured(controller, tmp_path, **more) as stand:
        yield stand.knowledge, stand.server


@asynccontextmanager
async def measured(controller: LatencyController, tmp_path: Path, **more: str) -> AsyncIterator[Stand]:
    """A server whose requests are measured, users as the controller says."""
    token = tmp_path / "token"
    await asyncio.to_thread(token.write_text, "a-token")
    settings = RouterSettings(
        policy="near", controller=controller.url, ca_file=CERTIFICATE / "server.crt", token_file=token, **more
    )
    knowledge = Knowledge()
    under_test = Measuring(settings, knowledge)

    go = asyncio.Event()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        under_way = under_test.begin(request)
        try:
            answer = web.StreamResponse()
            await answer.prepare(request)
            if request.path == "/long":
                await answer.write(b"begun")
                await go.wait()
            await answer.write(b"over")
            await answer.write_eof()
            return answer
        finally:
            under_test.end(under_way)

    server = ProxyServer(handle, host="127.0.0.1", port=0)
    await server.start()
    running = asyncio.create_task(under_test.run())
    try:
        yield Stand(knowledge, server, under_test, go)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.stop(seconds=0)


async def ask(server: ProxyServer, user: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(get("/", f"X-User: {user}"))
    await reader.read()
    writer.close()


async def heard(knowledge: Knowledge, key: bytes) -> None:
    async with asyncio.timeout(30):
        while knowledge.key != key:
            await asyncio.sleep(0.01)


async def test_users_are_told_with_their_round_trips_and_the_policy(tmp_path: Path) -> None:
    async with latency_controller() as controller:
        controller.says(instructions(identity=BY_HEADER, steer={"u": "b"}))
        async with measuring(controller, tmp_path) as (knowledge, server):
            await heard(knowledge, KEY)
            assert knowledge.instructions.steer == {"u": "b"}
            await ask(server, "ann")
            number = 0
            while not (await controller.message(number)).users:
                number += 1
            message = await controller.message(number)
    assert message.policy == "near"
    assert [user.user for user in message.users] == [hash_identity(KEY, "ann")]
    assert 0 < message.users[0].microseconds[0] < 1_000_000
    assert message.users[0].address == "", "addresses are told when the policy wants that"
    assert controller.tokens[0] == "Bearer a-token"


async def test_ages_are_by_the_clock_that_goes_on_while_a_machine_is_suspended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda which: real(which) + 3600 * (which == time.CLOCK_BOOTTIME))
    async with latency_controller() as controller:
        controller.says(instructions(identity=BY_HEADER))
        async with measuring(controller, tmp_path) as (knowledge, server):
            await heard(knowledge, KEY)
            await ask(server, "ann")
            number = 0
            while not (await controller.message(number)).users:
                number += 1
            [user] = (await controller.message(number)).users
    assert 0 <= user.age < 60


async def test_with_another_key_users_begin_anew(tmp_path: Path) -> None:
    other = b"another key of 32 bytes, as well"
    async with latency_controller() as controller:
        controller.says(instructions(identity=BY_HEADER))
        async with measuring(controller, tmp_path) as (knowledge, server):
            await heard(knowledge, KEY)
            await ask(server, "ann")
            controller.says(instructions(key=other, identity=BY_HEADER))
            await heard(knowledge, other)
            before = len(controller.messages)
            await ask(server, "bob")
            number = before
            while not (await controller.message(number)).users:
                number += 1
            message = await controller.message(number)
    assert [user.user for user in message.users] == [hash_identity(other, "bob")], "ann's old name is not told any more"


async def test_a_controller_that_has_just_begun_takes_nobody_from_his_node(tmp_path: Path) -> None:
    """It may know of no policy yet; users keep their names, and nobody is sent away meanwhile."""
    identity = BY_HEADER
    async with latency_controller() as controller:
        controller.says(instructions(identity=identity, steer={"u": "b"}))
        async with measuring(controller, tmp_path) as (knowledge, _):
            await heard(knowledge, KEY)
            controller.says(Instructions(interval=0.5))
            async with asyncio.timeout(30):
                while knowledge.instructions.steer:
                    await asyncio.sleep(0.01)
            assert (knowledge.key, knowledge.instructions.identity) == (KEY, identity)


async def test_a_controller_that_is_away_changes_nothing(tmp_path: Path) -> None:
    async with latency_controller() as controller:
        controller.says(instructions(steer={"u": "b"}))
        async with measuring(controller, tmp_path) as (knowledge, server):
            await heard(knowledge, KEY)
            controller.says(b"", status=503)
            await controller.message(len(controller.messages))
            await ask(server, "ann")
            assert (knowledge.key, knowledge.instructions.steer) == (KEY, {"u": "b"})


async def test_who_is_answered_for_long_is_seen_all_the_while(tmp_path: Path) -> None:
    async with latency_controller() as controller:
        controller.says(instructions(identity=BY_HEADER))
        async with measured(controller, tmp_path) as stand:
            await heard(stand.knowledge, KEY)
            async with stand.long_request("ann"):
                user = stand.users[hash_identity(KEY, "ann")]
                last = user.last
                stand.measuring.look()
                assert user.last > last
            last = user.last
            assert stand.measuring._under_way == set()
            stand.measuring.look()
            assert user.last == last


async def test_a_request_from_before_the_policy_was_heard_of_is_measured_as_it_says(tmp_path: Path) -> None:
    async with latency_controller() as controller:
        controller.says(Instructions(interval=0.5))
        async with measured(controller, tmp_path) as stand, stand.long_request("ann"):
            stand.measuring.look()
            assert stand.users == {}, "nobody can be told from others"
            controller.says(instructions(identity=BY_HEADER))
            await heard(stand.knowledge, KEY)
            stand.measuring.look()
            assert list(stand.users) == [hash_identity(KEY, "ann")]
            number = 0
            while not (await controller.message(number)).users:
                number += 1
    [told] = controller.messages[number].users
    assert 0 < told.microseconds[0] < 1_000_000


@pytest.mark.parametrize(
    ("more", "steers"),
    [
        pytest.param({"steer_service": "routers", "steer_url": "http://{address}", "node": "a"}, True, id="all stated"),
        pytest.param({"steer_service": "routers", "steer_url": "http://{address}"}, False, id="no node"),
        pytest.param({}, False, id="nothing stated"),
    ],
)
async def test_the_controller_is_told_whether_users_can_be_steered(
    tmp_path: Path, more: dict[str, str], steers: bool
) -> None:
    async with latency_controller() as controller, measuring(controller, tmp_path, **more):
        assert (await controller.message(0)).steers is steers
