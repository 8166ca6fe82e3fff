"""The Lease is kept apart from the work, and nothing is written without it.

On a real API server, with rivals: tests/integration/test_kube_lease.py.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.kube import lease as lease_module
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.http_pool import HttpPool
from berth.kube.leader_election import LeaderElection
from berth.kube.lease import LeadershipLost, LeaseTiming
from berth.kube.resources import CONFIGMAPS
from tests.support.api_server import Answer, ApiServer, Request, api_server, refusal
from tests.support.kube import until

TIMING = LeaseTiming(duration=60.0, renew_deadline=40.0, retry_period=0.02)


class StoredLease:
    """The one object of the server."""

    def __init__(self) -> None:
        self.document: dict[str, object] | None = None
        self.version = 0
        self.refusing = False
        self.forbidden = ""
        self.no_namespace = False

    def answer(self, request: Request) -> Answer:
        if self.refusing:
            return refusal(503, "ServiceUnavailable")
        if request.method == self.forbidden:
            return refusal(403, "Forbidden")
        if self.no_namespace:
            return refusal(404, "NotFound")
        if request.method == "GET":
            return Answer(200, self.document) if self.document else refusal(404, "NotFound")
        self.version += 1
        document = json.loads(request.body)
        document["metadata"]["resourceVersion"] = str(self.version)
        if "leases" in request.path:
            self.document = document
        return Answer(201 if request.method == "POST" else 200, document)


@pytest.fixture
def stored() -> StoredLease:
    return StoredLease()


@pytest.fixture
def server(stored: StoredLease) -> Iterator[ApiServer]:
    with api_server(stored.answer) as running:
        yield running


async def election_on(server: ApiServer, tmp_path: Path, timing: LeaseTiming = TIMING) -> LeaderElection:
    connection = await load_connection(kubeconfig=server.kubeconfig(tmp_path))
    return LeaderElection(connection, name="berth-test", namespace="ns", identity="me", timing=timing)


async def test_the_lease_is_renewed_while_the_event_loop_is_blocked(server: ApiServer, tmp_path: Path) -> None:
    election = await election_on(server, tmp_path)

    async def work() -> None:
        seen = server.count("PUT")
        assert server.wait(lambda: server.count("PUT") >= seen + 3)  # blocks this event loop
        assert election.is_leader
        assert 0 < election.check() <= TIMING.renew_deadline

    await election.run(work)
    assert not election.is_leader


async def test_the_thread_ends_with_the_leadership(server: ApiServer, stored: StoredLease, tmp_path: Path) -> None:
    election = await election_on(server, tmp_path)
    threads: list[threading.Thread] = []

    async def work() -> None:
        threads.extend(thread for thread in threading.enumerate() if thread.name == "lease")

    await election.run(work)
    assert threads
    for thread in threads:
        await asyncio.to_thread(thread.join, 10.0)
        assert not thread.is_alive()
    assert stored.document is not None
    assert stored.document["spec"]["holderIdentity"] == ""  # type: ignore[index]


async def test_whoever_stood_still_beyond_the_deadline_writes_nothing_and_steps_down(
    server: ApiServer, stored: StoredLease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine was suspended: the boot clock has gone on, the Lease cannot be renewed, the work goes on first."""
    election = await election_on(server, tmp_path)
    connection = await load_connection(kubeconfig=server.kubeconfig(tmp_path))
    real = lease_module.boot_clock
    outcomes: list[str] = []

    async def work() -> None:
        await client.create(CONFIGMAPS, {"metadata": {"name": "before"}}, namespace="ns")
        stored.refusing = True
        monkeypatch.setattr(lease_module, "boot_clock", lambda: real() + TIMING.renew_deadline)
        try:
            await client.create(CONFIGMAPS, {"metadata": {"name": "after"}}, namespace="ns")
        except LeadershipLost:
            outcomes.append("refused")
            raise

    async with ApiClient(connection, before_write=election.check) as client:
        with pytest.raises(LeadershipLost):
            await election.run(work)
    assert outcomes == ["refused"]
    assert [json.loads(r.body)["metadata"]["name"] for r in server.requests if "configmaps" in r.path] == ["before"]


RIGHTS = "(403 Forbidden: words); allow this account to get, create and update leases in ns"
NAMESPACE = "(404 NotFound: words); create the namespace ns, or name another one"


@pytest.mark.parametrize(
    ("forbidden", "no_namespace", "told"),
    [
        pytest.param("GET", False, RIGHTS, id="get"),
        pytest.param("POST", False, RIGHTS, id="create"),
        pytest.param("PUT", False, RIGHTS, id="update"),
        pytest.param("", True, NAMESPACE, id="namespace"),
    ],
)
async def test_what_is_missing_is_told_until_it_is_there(
    server: ApiServer, stored: StoredLease, tmp_path: Path, forbidden: str, no_namespace: bool, told: str
) -> None:
    if forbidden == "PUT":  # one that its holder has given back
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
        stored.document = {"kind": "Lease", "metadata": {"name": "berth-test", "resourceVersion": "0"}, "spec": spec}
    stored.forbidden, stored.no_namespace = forbidden, no_namespace
    election = await election_on(server, tmp_path)

    async def work() -> None:
        assert election.problem() is None

    run = asyncio.ensure_future(election.run(work))
    await until(lambda: election.problem() is not None, what="the problem is told")
    assert election.problem() == f"lease ns/berth-test cannot be had {told}"
    stored.forbidden, stored.no_namespace = "", False
    await run


async def test_an_api_server_in_trouble_is_no_problem_of_one_candidate(
    server: ApiServer, stored: StoredLease, tmp_path: Path
) -> None:
    stored.refusing = True
    election = await election_on(server, tmp_path)

    async def work() -> None: ...

    run = asyncio.ensure_future(election.run(work))
    await until(lambda: server.count("GET") >= 2, what="two attempts")
    assert election.problem() is None
    stored.refusing = False
    await run


async def test_a_write_that_waited_too_long_for_its_turn_is_not_sent() -> None:
    held = True

    def answer(request: Request) -> Answer:
        nonlocal held
        held = False  # while the first is under way and the second waits for the only connection
        return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": []} if request.method == "GET" else {})

    def check() -> float:
        if not held:
            raise LeadershipLost("gone")
        return 60.0

    with api_server(answer) as server:
        async with ApiClient(server.connection(), max_connections=1, before_write=check) as client:
            writes = [client.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="ns") for name in "ab"]
            first, second = await asyncio.gather(*writes, return_exceptions=True)
            assert first == b"{}"
            assert isinstance(second, LeadershipLost)
            assert await client.list_all(CONFIGMAPS.raw) == []  # reads need no leadership
        assert server.count("POST") == 1


async def test_a_write_is_given_up_before_anybody_else_may_lead() -> None:
    answered = threading.Event()

    def answer(request: Request) -> Answer:
        if request.method != "GET":
            assert answered.wait(30)
        return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": []})

    with api_server(answer) as server:
        # The client itself would wait for thirty seconds.
        async with ApiClient(server.connection(), before_write=lambda: 0.05) as client:
            begun = time.monotonic()
            with pytest.raises(TimeoutError):
                await client.create(CONFIGMAPS, {"metadata": {"name": "late"}}, namespace="ns")
            assert time.monotonic() - begun < 10
            # Reads may take their time: the server answers one request after another.
            asyncio.get_running_loop().call_later(0.5, answered.set)
            assert await client.list_all(CONFIGMAPS.raw) == []
            assert answered.is_set()


@pytest.mark.parametrize(
    ("left", "seconds"),
    [
        pytest.param(7.3, 7.3, id="less-than-a-request-may-take"),
        pytest.param(40.0, 30.0, id="more-than-a-request-may-take"),
    ],
)
async def test_a_write_may_take_no_longer_than_the_lease_lasts(
    left: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def refuse(_pool: HttpPool, *_: object, seconds: float, **__: object) -> None:
        asked.append(seconds)
        raise OSError("no server here")

    monkeypatch.setattr(HttpPool, "request", refuse)
    with api_server(lambda _: Answer()) as server:
        async with ApiClient(server.connection(), before_write=lambda: left, timeout=30.0, retries=0) as client:
            with pytest.raises(OSError, match="no server here"):
                await client.merge_patch(CONFIGMAPS, "c", {}, namespace="ns")
            with pytest.raises(OSError, match="no server here"):
                await client.get(CONFIGMAPS, "c", namespace="ns")
    assert asked == [seconds, 30.0]


async def test_before_it_was_leader_nothing_may_be_written(server: ApiServer, tmp_path: Path) -> None:
    election = await election_on(server, tmp_path)
    with pytest.raises(LeadershipLost, match="lease ns/berth-test is not held, nothing is written"):
        election.check()


async def test_work_that_fails_is_told_as_it_is(server: ApiServer, tmp_path: Path) -> None:
    async def work() -> None:
        raise LookupError("broken")

    election = await election_on(server, tmp_path)
    with pytest.raises(LookupError, match="broken"):
        await election.run(work)
