"""Reports on their way: a real HTTPS server in the controller's place, and what happens while it fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from berth.api.latency_exchange import (
    MAX_USERS,
    ROUND_TRIPS_PATH,
    Identity,
    IdentitySource,
    Instructions,
    naming_of,
)
from berth.kube.lease import boot_clock
from berth.runtime.measuring.calls import (
    PAUSES,
    ControllerCalls,
    Endpoint,
    RefusedError,
    ReportServer,
    open_session,
    pause_after,
)
from berth.runtime.measuring.reporter import Reporter, waits_after
from berth.runtime.measuring.reports import Reports
from berth.runtime.measuring.users import UserTable
from tests.support.latency_controller import CERTIFICATE, KEY, LatencyController, instructions, latency_controller


@dataclass
class Stand:
    """A reporter with what belongs to it."""

    directory: Path
    url: str
    table: UserTable = field(default_factory=UserTable)
    instructed: list[tuple[Instructions, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.token, self.ca = self.directory / "token", self.directory / "ca.crt"
        self.token.write_text("first\n")
        self.ca.write_bytes((CERTIFICATE / "server.crt").read_bytes())
        self.reports = Reports(self.table)
        self.server = ReportServer(self.url, self.token, self.ca)
        self.reporter = Reporter(
            self.server, self.reports, lambda *told: self.instructed.append(told), pauses=(0.01, 0.05), least=0.01
        )

    def measured(self, *microseconds: int, user: str = "a") -> None:
        found = self.table.seen(user, boot_clock())
        for value in microseconds:
            self.table.record(found, value, boot_clock())

    async def call(self) -> bytes:
        """Send one message by itself."""
        async with open_session() as session:
            return await ControllerCalls(self.server, session).post(
                ROUND_TRIPS_PATH, b'{"instance":"i","sequence":1}', bytes, seconds=30, most=99
            )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.reporter.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()


@pytest.fixture
async def controller() -> AsyncIterator[LatencyController]:
    async with latency_controller() as found:
        yield found


@pytest.fixture
def stand(controller: LatencyController, tmp_path: Path) -> Stand:
    return Stand(tmp_path, controller.url)


async def test_the_first_message_asks_and_the_next_tells(controller: LatencyController, stand: Stand) -> None:
    identity = Identity(IdentitySource.COOKIE, "session")
    controller.says(instructions(identity=identity))
    stand.measured(20, 21)
    async with stand.running():
        first, second = await controller.message(0), await controller.message(1)
    assert first.users == ()
    assert [(user.user, user.microseconds) for user in second.users] == [("a", (20, 21))]
    assert (first.sequence, second.sequence, first.instance) == (1, 2, second.instance)
    assert controller.tokens[0] == "Bearer first"
    assert stand.instructed[0] == (instructions(identity=identity), KEY)


async def test_what_was_measured_before_the_machine_was_suspended_is_not_told_as_of_now(
    controller: LatencyController, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock that stands still meanwhile would have it be news."""
    real = time.clock_gettime
    controller.says(instructions())
    stand.measured(20, 21)
    monkeypatch.setattr(time, "clock_gettime", lambda which: real(which) + 3600 * (which == time.CLOCK_BOOTTIME))
    async with stand.running():
        assert [(await controller.message(number)).users for number in range(3)] == [(), (), ()]


async def test_a_message_says_how_its_users_are_named(controller: LatencyController, stand: Stand) -> None:
    """A controller with another key knows that they are none of its users."""
    former, renewed = instructions(), instructions(key=b"another of 32 bytes, at random..")
    controller.says(former)
    stand.measured(20)
    async with stand.running():
        first, second = await controller.message(0), await controller.message(1)
        controller.says(renewed)
        while not stand.instructed or stand.instructed[-1][0].key != renewed.key:
            await asyncio.sleep(0.01)
        third = await controller.message(len(controller.messages))
    namings = [naming_of(each.key, each.identity) for each in (former, renewed)]
    assert (first.naming, second.naming, third.naming) == ("", *namings)
    assert namings[0] != namings[1]


async def test_a_new_user_is_told_at_once(controller: LatencyController, stand: Stand) -> None:
    controller.says(instructions(interval=300.0))
    async with stand.running():
        await controller.message(0)
        stand.measured(20)
        stand.reporter.hurry()
        message = await controller.message(1)
    assert len(message.users) == 1


@pytest.mark.parametrize(
    ("said", "more", "waits"),
    [
        pytest.param(instructions(interval=5.0), False, (1.0, 4.0), id="somebody new may come"),
        pytest.param(instructions(interval=5.0), True, (1.0, 0.0), id="a flood makes no flood of messages"),
        pytest.param(instructions(interval=0.5), False, (0.5, 0.0), id="more often"),
        pytest.param(Instructions(interval=5.0), False, (5.0, 0.0), id="nobody wants to hear who is new"),
    ],
)
def test_what_is_waited_for(said: Instructions, more: bool, waits: tuple[float, float]) -> None:
    assert waits_after(said, more=more, least=1.0) == waits


async def test_many_users_are_told_before_the_next_interval(controller: LatencyController, stand: Stand) -> None:
    controller.says(instructions(interval=300.0))
    for number in range(MAX_USERS + 5):
        stand.measured(20, user=str(number))
    async with stand.running():
        await controller.message(0)
        stand.reporter.hurry()
        first, second = await controller.message(1), await controller.message(2)
    assert (len(first.users), len(second.users)) == (MAX_USERS, 5)


REFUSALS = [
    pytest.param(lambda c: c.says(b"", status=503), id="unavailable"),
    pytest.param(lambda c: c.says(b"", status=401), id="not known"),
    pytest.param(lambda c: c.says(b"", status=307), id="sent elsewhere"),
    pytest.param(lambda c: c.says(b"<html>"), id="a page"),
    pytest.param(lambda c: c.says(b'{"x": ' + b"[" * 100_000), id="nested without end"),
    pytest.param(lambda c: c.says(b" " * (2**20 + 1)), id="without end"),
]


@pytest.mark.parametrize("refuse", REFUSALS)
async def test_a_message_without_an_answer_is_repeated(
    controller: LatencyController, stand: Stand, refuse: Callable[[LatencyController], None]
) -> None:
    controller.says(instructions())
    stand.measured(20)
    async with stand.running():
        await controller.message(0)
        refuse(controller)
        count = len(controller.messages)
        failed = await controller.message(count)
        again = await controller.message(count + 2)
        controller.says(instructions())
        stand.measured(30)
        following = again
        for number in range(count, count + 1000):
            following = await controller.message(number)
            if following.sequence > failed.sequence and following.users:
                break
    assert again.sequence == failed.sequence
    assert [user.microseconds for user in again.users] == [user.microseconds for user in failed.users]
    assert [user.microseconds for user in following.users] == [(30,)]
    assert stand.instructed[-1][1] == KEY


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        pytest.param("7", 7.0, id="seconds"),
        pytest.param("86400", 60.0, id="a day"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", 0.0, id="a date"),
        pytest.param("", 0.0, id="nothing"),
    ],
)
async def test_who_is_told_to_come_later_does(
    controller: LatencyController, stand: Stand, asked: str, seconds: float
) -> None:
    controller.says(b"", status=429)
    controller.retry_after = asked
    with pytest.raises(RefusedError) as refused:
        await stand.call()
    assert refused.value.retry_after == seconds
    assert pause_after(refused.value, 1, PAUSES) >= seconds
    with capture_logs() as logs:
        async with stand.running():
            while not logs:
                await asyncio.sleep(0.01)
    [pause] = [line["pause"] for line in logs if line["event"] == "the latency controller was not told"][:1]
    assert pause >= seconds
    assert pause <= max(seconds, 0.05)


async def test_what_a_controller_hears_that_knows_of_no_policy_yet_is_told_again(
    controller: LatencyController, stand: Stand
) -> None:
    controller.says(instructions())
    async with stand.running():
        await controller.message(0)
        controller.says(Instructions(interval=0.5))
        stand.measured(20)
        unheard = await controller.message(1)
        empty = await controller.message(2)
        controller.says(instructions())
        again = [(await controller.message(number)).users for number in (3, 4, 5)]
    assert [len(unheard.users), len(empty.users)] == [1, 0]
    assert [user.microseconds for users in again for user in users] == [(20,)]


async def test_a_token_that_was_renewed_is_shown(controller: LatencyController, stand: Stand) -> None:
    async with stand.running():
        await controller.message(0)
        stand.token.write_text("second")
        stand.reporter.hurry()
        await controller.message(len(controller.messages))
        await controller.message(len(controller.messages))
    assert controller.tokens[-1] == "Bearer second"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("token", b"", id="no token"),
        pytest.param("token", b"two\nlines", id="a token of two lines"),
        pytest.param("token", b"x" * 20_000, id="a token without end"),
        pytest.param("ca.crt", b"", id="no certificates"),
        pytest.param("ca.crt", b"-----BEGIN CERTIFICATE-----", id="half a certificate"),
        pytest.param("ca.crt", None, id="no file of certificates"),
        pytest.param("token", None, id="no file of the token"),
    ],
)
async def test_unusable_files_are_waited_for(
    controller: LatencyController, stand: Stand, name: str, content: bytes | None
) -> None:
    file = stand.directory / name
    right = file.read_bytes()
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises((OSError, ValueError)):
        await stand.call()
    async with stand.running():
        file.write_bytes(right)
        await controller.message(0)
    assert len(set(controller.tokens)) == 1


async def test_nobody_else_is_told(controller: LatencyController, tmp_path: Path) -> None:
    stand = Stand(tmp_path, controller.url.replace("127.0.0.1", "localhost"))  # a name that the certificate has not
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await stand.call()
    assert controller.messages == []


@dataclass
class Elsewhere:
    """Says where the controller is, by another name than that of the URL."""

    token_file: Path
    said: Endpoint
    asked: list[bool] = field(default_factory=list)
    comes: Endpoint | None = None
    waited: list[float] = field(default_factory=list)

    async def endpoint(self, *, again: bool) -> Endpoint:
        self.asked.append(again)
        return self.said

    async def another_within(self, seconds: float) -> bool:
        """Whoever waits long gets there by that: another one has come."""
        self.waited.append(seconds)
        if seconds < 1.0:
            await asyncio.sleep(seconds)
            return False
        if self.comes is not None:
            self.said, self.comes = self.comes, None
            return True
        await asyncio.sleep(seconds)
        return False


@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param("127.0.0.1", True, id="the name of the certificate"),
        pytest.param("berth-latency", False, id="another name"),
    ],
)
async def test_the_name_to_expect_is_not_that_of_the_url(
    controller: LatencyController, stand: Stand, name: str, told: bool
) -> None:
    certificates = await asyncio.to_thread(stand.ca.read_bytes)
    url = controller.url.replace("127.0.0.1", "localhost")
    where = Elsewhere(stand.token, Endpoint(url, certificates, name))
    stand.reporter._server = where
    async with stand.running():
        while len(where.asked) < 2:
            await asyncio.sleep(0.01)
    assert (len(controller.messages) > 0) is told
    assert where.asked[:2] == [False, not told]  # who does not answer is looked for again


async def test_another_controller_is_told_once_it_is_heard_of(controller: LatencyController, tmp_path: Path) -> None:
    controller.says(instructions())
    stand = Stand(tmp_path, "")
    certificates = await asyncio.to_thread(stand.ca.read_bytes)
    gone, comes = (Endpoint(url, certificates, None) for url in ("https://127.0.0.1:1", controller.url))
    where = Elsewhere(stand.token, gone, comes=comes)
    # Without being told of it, the reporter would not try again for an hour and more.
    stand.reporter = Reporter(where, stand.reports, lambda *_: None, pauses=(40_000.0, 40_000.0), spread=0.01)
    async with stand.running():
        await controller.message(0)
    assert len(where.waited) == 1


@pytest.mark.parametrize(
    ("status", "looked_for"),
    [
        pytest.param(429, False, id="there, and asked too often"),
        pytest.param(503, True, id="cut off, and another may lead"),
    ],
)
async def test_a_controller_that_wants_to_be_left_alone_is_not_looked_for(
    controller: LatencyController, stand: Stand, status: int, looked_for: bool
) -> None:
    certificates = await asyncio.to_thread(stand.ca.read_bytes)
    where = Elsewhere(stand.token, Endpoint(controller.url, certificates, None))
    stand.reporter._server = where
    controller.says(b"", status=status)
    controller.retry_after = "0.01"
    async with stand.running():
        while len(where.asked) < 3:
            await asyncio.sleep(0.01)
    assert where.asked[:3] == [False, looked_for, looked_for]
    assert bool(where.waited) is looked_for


async def test_a_controller_that_comes_later_is_told_all_that_is_kept(tmp_path: Path) -> None:
    async with latency_controller() as gone:
        port = gone.port
    stand = Stand(tmp_path, f"https://127.0.0.1:{port}")
    stand.measured(*range(1, 21))
    async with stand.running(), latency_controller(port) as controller:
        controller.says(instructions())
        message = await controller.message(1)
    assert message.users[0].microseconds == tuple(range(6, 21))
