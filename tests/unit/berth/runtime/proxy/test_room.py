"""Who makes room for one more client; with a server: test_server_full.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from berth.runtime.proxy import room as room_module
from berth.runtime.proxy.room import Room


@dataclass(eq=False)
class Waiter:
    """What aiohttp waits by for a request."""

    over: bool = False

    def done(self) -> bool:
        return self.over


@dataclass(eq=False)
class Wire:
    """A transport."""

    left: int = 0
    unread: int = 0
    closing: bool = False

    def get_write_buffer_size(self) -> int:
        return self.left

    def is_closing(self) -> bool:
        return self.closing


@dataclass(eq=False)
class Connection:
    """One of aiohttp's."""

    transport: Wire | None = field(default_factory=Wire)
    _waiter: Waiter | None = field(default_factory=Waiter)
    _task_handler: None = None
    closed: bool = False

    def force_close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket is behind these."""
    monkeypatch.setattr(room_module, "_unread", lambda wire: wire.unread)


async def handle(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response()


def room_of(*connections: Any) -> Room:
    """With connections that came in this order."""
    room = Room(handle)
    for each in connections:
        room.connection_made(each, each.transport)
    return room


@pytest.mark.parametrize(
    ("connections", "closed"),
    [
        pytest.param([Connection(), Connection()], 0, id="who has waited longest"),
        pytest.param([Connection(_waiter=Waiter(over=True)), Connection()], 1, id="not one whose request has come"),
        pytest.param([Connection(_waiter=None), Connection()], 1, id="nor one whose answer is to begin, or not over"),
        pytest.param([Connection(Wire(left=1)), Connection()], 1, id="nor one whose answer is not sent"),
        pytest.param([Connection(Wire(unread=1)), Connection()], 1, id="nor one from which more has come"),
        pytest.param([Connection(Wire(closing=True)), Connection()], 1, id="nor one that ends, which is there"),
        pytest.param([Connection(None), Connection(_waiter=None)], None, id="nobody"),
    ],
)
async def test_one_by_which_nothing_is_asked_is_closed(connections: list[Connection], closed: int | None) -> None:
    assert room_of(*connections).make() == (closed is not None)
    assert [each.closed for each in connections] == [number == closed for number in range(len(connections))]


async def test_who_is_gone_is_not_closed_again() -> None:
    connection: Any = Connection()
    room = room_of(connection)
    room.connection_lost(connection)
    assert not room.make()
    assert not connection.closed


@dataclass
class Request:
    """One that came by a connection."""

    protocol: Connection


async def test_who_was_answered_last_goes_last_and_nobody_meanwhile() -> None:
    first, second = Connection(), Connection()
    room = room_of(first, second)
    answered: list[bool] = []

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        answered.append(room.make())
        return web.Response()

    room._handler = answer
    request: Any = Request(first)
    await room._answer(request)
    assert (answered, first.closed, second.closed) == ([True], False, True)
    second._waiter = None
    assert room.make()
    assert first.closed
