"""Who makes room for one more client; with a server: test_server_full.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from berth.runtime.proxy.room import make_room


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
    closed: bool = False

    def force_close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("connections", "closed"),
    [
        pytest.param([Connection(), Connection()], 0, id="the oldest"),
        pytest.param([Connection(_waiter=Waiter(over=True)), Connection()], 1, id="not one whose request has come"),
        pytest.param([Connection(_waiter=None), Connection()], 1, id="nor one whose answer is to begin, or not over"),
        pytest.param([Connection(Wire(left=1)), Connection()], 1, id="nor one whose answer is not sent"),
        pytest.param([Connection(Wire(closing=True)), Connection()], 1, id="nor one that ends, which is there"),
        pytest.param([Connection(None), Connection(_waiter=None)], None, id="nobody"),
    ],
)
def test_one_by_which_nothing_is_asked_is_closed(connections: list[Connection], closed: int | None) -> None:
    assert make_room(cast("Any", connections)) == (closed is not None)
    assert [each.closed for each in connections] == [number == closed for number in range(len(connections))]
