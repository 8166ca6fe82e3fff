"""How much memory a process may have, and who goes before it is used up."""

from __future__ import annotations

import asyncio
import gc
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from berth.runtime.proxy import memory
from berth.runtime.proxy.memory import (
    FLOOR_BYTES,
    GOAL,
    LEAST_BYTES,
    LOOK_BYTES,
    SHARE,
    Keeper,
    memory_limit,
    memory_used,
    who_goes,
)

LIMIT = 1_000_000_000


@pytest.fixture(autouse=True)
def _few_objects() -> Iterator[None]:
    """What other tests have left is not looked through, which takes seconds: a process that serves has fewer."""
    gc.freeze()
    yield
    gc.unfreeze()


@dataclass(eq=False)
class Client:
    held: int
    is_cut: bool = False

    def cut(self) -> None:
        self.is_cut, self.held = True, 0


@pytest.mark.parametrize(
    ("lines", "files", "limit"),
    [
        pytest.param("0::/\n", {"memory.max": "268435456\n"}, 268_435_456, id="version 2, as a container sees it"),
        pytest.param("0::/pods/a\n", {"pods/a/memory.max": "5\n", "memory.max": "7\n"}, 5, id="version 2"),
        pytest.param("0::/pods/a\n", {"pods/a/memory.max": "max\n", "memory.max": "7\n"}, 7, id="of all together"),
        pytest.param(
            "0::/pods/a/b\n", {"pods/a/b/memory.max": "9\n", "pods/a/memory.max": "5\n"}, 5, id="of one in between"
        ),
        pytest.param(
            "0::/\n", {"memory.max": "9\n", "memory.high": "5\n"}, 5, id="from which on the kernel slows it down"
        ),
        pytest.param("0::/../b\n", {"memory.max": "9\n"}, 9, id="outside of what is seen"),
        pytest.param("0::/\n", {"memory.max": "max\n", "memory.high": "max\n"}, None, id="none"),
        pytest.param("0::/\n", {}, None, id="nothing is said"),
        pytest.param(
            "4:memory:/pods/a\n0::/\n", {"memory/pods/a/memory.limit_in_bytes": "5\n"}, 5, id="version 1, of the host"
        ),
        pytest.param(
            "4:memory:/pods/a\n",
            {"memory/pods/a/memory.limit_in_bytes": "9\n", "memory/pods/memory.limit_in_bytes": "5\n"},
            5,
            id="version 1, of one in between",
        ),
        pytest.param(
            "4:cpu,memory:/pods/a\n", {"memory/memory.limit_in_bytes": "5\n"}, 5, id="version 1, as a container sees it"
        ),
        pytest.param(
            "4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None, id="version 1, none"
        ),
        pytest.param("3:cpuset:/\n", {"memory/memory.limit_in_bytes": "5\n"}, None, id="of another controller"),
    ],
)
def test_the_limit_is_that_of_the_cgroup(tmp_path: Path, lines: str, files: dict[str, str], limit: int | None) -> None:
    proc = tmp_path / "cgroup"
    proc.write_text(lines)
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert memory_limit(proc, tmp_path / "root") == limit


def test_without_cgroups_there_is_none(tmp_path: Path) -> None:
    assert memory_limit(tmp_path / "cgroup", tmp_path) is None


def test_what_is_used_is_what_was_taken() -> None:
    before = memory_used()
    taken = b"x" * 100_000_000
    assert memory_used() - before > 0.9 * len(taken)


def test_what_is_used_is_known_where_no_more_files_may_be_opened() -> None:
    before = memory_used()
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, most))
    try:
        taken = b"x" * 100_000_000
        after = memory_used()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))
    assert after - before > 0.9 * len(taken)


@pytest.mark.parametrize(
    ("held", "excess", "going"),
    [
        pytest.param([100_000, 300_000, 200_000], 250_000, [300_000], id="the largest is enough"),
        pytest.param([100_000, 300_000, 200_000], 400_000, [300_000, 200_000], id="two"),
        pytest.param([100_000, LEAST_BYTES - 1], 400_000, [100_000], id="not who holds little, where it is not enough"),
        pytest.param(
            [9000, 12_000, 100_000, 8000], 112_000, [100_000, 12_000], id="who holds little, where it is enough"
        ),
        pytest.param([FLOOR_BYTES - 1] * 100, 1000, [], id="never who holds next to nothing"),
        pytest.param([100_000], 0, [], id="enough is there"),
    ],
)
def test_those_go_that_hold_most(held: list[int], excess: int, going: list[int]) -> None:
    assert [each.held for each in who_goes(map(Client, held), excess)] == going


def keeper(*clients: Client, used: list[float], limit: int | None = LIMIT) -> Keeper:
    """One of a process that uses such shares of its memory, one after the other."""
    return Keeper(limit, lambda: clients, lambda: round(LIMIT * (used.pop(0) if len(used) > 1 else used[0])))


def test_who_holds_most_is_cut_until_enough_is_free() -> None:
    clients = [Client(round(share * LIMIT)) for share in (0.02, 0.15, 0.1)]
    keeper(*clients, used=[SHARE + 0.01]).look()
    assert [each.is_cut for each in clients] == [False, True, False]
    assert SHARE + 0.01 - 0.15 < GOAL


@pytest.mark.parametrize(
    ("used", "first", "more"),
    [
        pytest.param(0.65, 3, 0, id="enough were cut"),
        pytest.param(0.95, 9, 5, id="so much that it may not be free"),
    ],
)
def test_nobody_goes_for_what_was_cut_and_is_not_given_back_yet(used: float, first: int, more: int) -> None:
    clients = [Client(LIMIT // 20) for _ in range(20)]
    subject = keeper(*clients, used=[used])
    for expected in (first, first + more):
        subject.look()
        assert sum(each.is_cut for each in clients) == expected


async def test_what_is_used_once_free_memory_was_given_back_is_really_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "GIVE_BACK_SECONDS", 0.0)
    clients = [Client(LIMIT // 20) for _ in range(20)]
    running = asyncio.ensure_future(keeper(*clients, used=[0.65]).run(every=0.0))
    async with asyncio.timeout(30):
        while not all(each.is_cut for each in clients):
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("used", "short"), [pytest.param(0.91, False, id="a little"), pytest.param(0.97, True, id="much")]
)
def test_what_the_process_takes_itself_is_no_reason(used: float, short: bool) -> None:
    subject = Keeper(LIMIT, tuple, lambda: round(used * LIMIT), base=round(0.9 * LIMIT))
    subject.look()
    assert subject.short is short


@pytest.mark.parametrize("limit", [pytest.param(LIMIT, id="as much"), pytest.param(LIMIT // 2, id="more")])
def test_nobody_goes_where_the_process_itself_has_all_there_is(limit: int) -> None:
    client = Client(LIMIT)
    subject = Keeper(limit, lambda: [client], lambda: LIMIT, base=LIMIT)
    subject.look()
    assert (subject.short, client.is_cut) == (False, False)


@pytest.mark.parametrize(
    ("first", "later", "short"),
    [
        pytest.param(LIMIT, LIMIT // 2, True, id="less"),
        pytest.param(LIMIT // 2, LIMIT, False, id="more"),
        pytest.param(None, LIMIT // 2, True, id="there was none"),
        pytest.param(LIMIT // 2, None, True, id="it cannot be read any more"),
    ],
)
async def test_the_limit_may_change(
    first: int | None, later: int | None, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "LIMIT_SECONDS", 0.0)
    asked = 0

    def limits() -> int | None:
        nonlocal asked
        asked += 1
        return later

    subject = Keeper(first, tuple, lambda: LIMIT // 2, limits=limits)
    running = asyncio.ensure_future(subject.run(every=0.0))
    async with asyncio.timeout(30):
        while asked < 2:
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert subject.short is short


@pytest.mark.parametrize(
    ("used", "limit"), [pytest.param(SHARE, LIMIT, id="enough"), pytest.param(5.0, None, id="no limit")]
)
def test_nobody_is_cut_without_need(used: float, limit: int | None) -> None:
    client = Client(LIMIT)
    subject = keeper(client, used=[used], limit=limit)
    assert not subject.came(LOOK_BYTES)
    assert not client.is_cut


def test_what_comes_at_once_is_looked_at_before_the_event_loop_is_round() -> None:
    client = Client(LIMIT)
    subject = keeper(client, used=[0.9])
    assert not subject.came(LOOK_BYTES - 1)
    assert not client.is_cut
    assert subject.came(1)
    assert client.is_cut


def test_it_is_told_when_memory_is_short_and_when_it_is_not() -> None:
    told: list[bool] = []
    subject = keeper(used=[0.1, 0.9, 0.9, 0.1, 0.1])
    subject.turned = told.append
    for _ in range(5):
        subject.look()
    assert told == [True, False]


async def test_it_looks_time_and_again_and_says_so_once() -> None:
    client, looks = Client(LIMIT), 0

    def used() -> int:
        nonlocal looks
        looks += 1
        client.held = LIMIT
        return LIMIT

    with capture_logs() as logs:
        running = asyncio.ensure_future(Keeper(LIMIT, lambda: [client], used).run(every=0.0))
        async with asyncio.timeout(30):
            while looks < 5:
                await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert client.is_cut
    assert [(each["log_level"], each["connections"]) for each in logs] == [("warning", 1)]
