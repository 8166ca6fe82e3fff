"""A Lease on an API server that takes its time: it is kept while answers come in time, and nobody else has it too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube import lease as lease_module
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.lease import LeadershipLost, LeaseLock, LeaseTiming
from tests.support.virtual_time import run_in_virtual_time

TIMING = LeaseTiming()
REQUEST_SECONDS = TIMING.renew_deadline / 2
"""What a request of an election may take."""


class Server:
    """One Lease; requests arrive late and are answered late, also when nobody waits for the answer any more."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.requests = 0
        self.broken = False

    def read(self) -> dict[str, Any]:
        if self.lease is None:
            raise ApiError(status=404, reason="NotFound", message="none")
        return self.lease

    def write(self, body: dict[str, Any]) -> bytes:
        known = (self.lease or {}).get("metadata", {}).get("resourceVersion")
        if body["metadata"].get("resourceVersion") != known:
            raise ApiError(status=409, reason="Conflict", message="changed")
        self.version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.version)}
        self.lease = {**body, "kind": "Lease", "metadata": metadata}
        return json.dumps(self.lease).encode()

    async def take(self, call: Callable[[], Any], late: float, slow: float) -> Any:
        self.requests += 1
        if self.broken:
            raise ConnectionRefusedError

        async def serve() -> Any:
            await asyncio.sleep(late)
            try:
                return call()
            finally:
                await asyncio.sleep(slow)

        async with asyncio.timeout(REQUEST_SECONDS):
            return await asyncio.shield(asyncio.ensure_future(serve()))


class Client:
    """A candidate's way to it, with the seconds of each request there and back."""

    def __init__(self, server: Server, ways: Iterator[tuple[float, float]]) -> None:
        self._server, self._ways = server, ways

    async def get(self, *_: Any, **__: Any) -> Any:
        return await self._server.take(self._server.read, *next(self._ways))

    async def create(self, _: Any, body: Any, **__: Any) -> Any:
        return await self._server.take(lambda: self._server.write(body), *next(self._ways))

    async def replace(self, _: Any, __: str, body: Any, **___: Any) -> Any:
        return await self._server.take(lambda: self._server.write(body), *next(self._ways))


def candidate(server: Server, identity: str, ways: Iterator[tuple[float, float]]) -> LeaseLock:
    client = cast("ApiClient", Client(server, ways))
    return LeaseLock(client, name="berth", namespace="ns", identity=identity, timing=TIMING)


@pytest.mark.parametrize("before", ["nobody's", "another's"])
@pytest.mark.parametrize("seconds", [0.01, 1.0, 2.5, 3.0, 4.0, 4.9])
def test_a_lease_is_kept_while_each_answer_comes_in_time(
    seconds: float, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lead(clock: Callable[[], float]) -> None:
        monkeypatch.setattr(lease_module, "boot_clock", clock)
        server = Server()
        if before == "another's":
            server.write({"metadata": {}, "spec": {"holderIdentity": "", "leaseDurationSeconds": 1}})
        lock = candidate(server, "me", repeat((seconds / 2, seconds / 2)))
        await lock.acquire()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(120):
                await lock.keep()

    run_in_virtual_time(lead)


def test_a_server_that_is_away_is_not_asked_more_often_than_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lead(clock: Callable[[], float]) -> int:
        monkeypatch.setattr(lease_module, "boot_clock", clock)
        server = Server()
        lock = candidate(server, "me", repeat((0.0, 0.0)))
        await lock.acquire()
        server.broken, server.requests = True, 0
        with pytest.raises(LeadershipLost, match="could not be renewed for 10 s"):
            await lock.keep()
        assert clock() == pytest.approx(TIMING.renew_deadline)
        return server.requests

    assert run_in_virtual_time(lead) <= TIMING.renew_deadline / TIMING.retry_period


def test_another_history_ends_leadership_as_soon_as_a_renewal_is_missing_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """etcd was restored from a backup that is a few writes old, and may be beyond them by the time that it is asked."""

    async def lead(clock: Callable[[], float]) -> float:
        monkeypatch.setattr(lease_module, "boot_clock", clock)
        server = Server()
        lock = candidate(server, "me", repeat((0.0, 0.0)))
        await lock.acquire()
        backup = server.lease
        keeper = asyncio.ensure_future(lock.keep())
        await asyncio.sleep(5)
        server.lease, server.version, restored = backup, 100, clock()
        with pytest.raises(LeadershipLost, match="the API server shows lease ns/berth at version 1, after version 3"):
            await keeper
        assert not lock.held
        return clock() - restored

    assert run_in_virtual_time(lead) <= 2 * TIMING.retry_period


def test_a_lease_that_goes_back_before_it_is_held_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def take(clock: Callable[[], float]) -> bool:
        monkeypatch.setattr(lease_module, "boot_clock", clock)
        server = Server()
        server.version = 50
        server.write({"metadata": {}, "spec": {"holderIdentity": "another", "leaseDurationSeconds": 15}})
        lock = candidate(server, "me", repeat((0.0, 0.0)))
        waiting = asyncio.ensure_future(lock.acquire())
        await asyncio.sleep(5)
        server.lease, server.version = None, 10
        server.write({"metadata": {}, "spec": {"holderIdentity": "another", "leaseDurationSeconds": 15}})
        await waiting
        return lock.held

    assert run_in_virtual_time(take)


WAYS = st.lists(st.tuples(st.floats(0, 4), st.floats(0, 4)), max_size=30)


@given(WAYS, WAYS)
def test_two_never_hold_it_however_long_requests_take(
    ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]]
) -> None:
    async def compete(lock: LeaseLock) -> None:
        while True:
            await lock.acquire()
            try:
                await lock.keep()
            except LeadershipLost:
                continue

    async def watch(clock: Callable[[], float]) -> None:
        patch.setattr(lease_module, "boot_clock", clock)
        server = Server()
        locks = [
            candidate(server, name, chain(ways, repeat((0.1, 0.1)))) for name, ways in (("a", ours), ("b", theirs))
        ]
        tasks = [asyncio.ensure_future(compete(lock)) for lock in locks]
        while clock() < 200:
            await asyncio.sleep(0.25)
            assert sum(lock.held for lock in locks) <= 1
        assert any(lock.held for lock in locks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with pytest.MonkeyPatch.context() as patch:
        run_in_virtual_time(watch)
