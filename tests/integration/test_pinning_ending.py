"""An agent that ends gives back what is pinned, whenever it is told to: in real cgroups, with a scripted API server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from agents.node.pinning.agent import PinningAgent
from agents.node.pinning.cpuset import allowed, write_cpuset
from agents.node.pinning.hierarchy import Version
from agents.node.pinning.settings import PinningSettings
from agents.node.pinning.status_writer import SOCKET_STATUSES
from berth.kube.client import ApiClient
from berth.kube.events import EventRecorder
from berth.kube.precedence import Precedence
from berth.kube.reflector import Reflector
from berth.runtime.component import ComponentContext
from berth.runtime.health import Checks
from hack.harness.cluster import PATIENCE
from tests.support.api_server import Answer, ApiServer, Request, api_server
from tests.support.cpusets import everything, pod_uid
from tests.support.pinning_rounds import Rounds, rounds, wish
from tests.support.pinning_stand import CLASS, SOCKETS, two_sockets
from tests.support.sysfs import write_sysfs

ALL = everything()
ONE, _ = SOCKETS
NODE = "n1"
POD = {
    "metadata": {"name": "web-0", "namespace": "shop", "uid": pod_uid(0), "labels": {CLASS: "B"}},
    "status": {"phase": "Running"},
}
STATUS = {
    "metadata": {"name": NODE, "uid": "s"},
    "spec": {"assignments": [{"uid": pod_uid(0), "namespace": "shop", "name": "web-0", "socket": 0}]},
}


def answer(request: Request) -> Answer:
    """Lists with one pod that is assigned; watches that end at once."""
    path, _, query = request.path.partition("?")
    if request.method != "GET" or "watch=" in query:
        return Answer(200, {} if request.method != "GET" else b"")
    items = [STATUS if path.endswith(SOCKET_STATUSES.plural) else POD]
    return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": items})


def away(_: Request) -> Answer:
    return Answer(503, {"kind": "Status", "status": "Failure", "reason": "ServiceUnavailable", "code": 503})


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Rounds]:
    async with rounds("ending", tmp_path) as found:
        write_sysfs(tmp_path / "sys", two_sockets())
        (tmp_path / "kubelet").mkdir()
        (tmp_path / "kubelet" / "cpu_manager_state").write_text(json.dumps({"policyName": "none"}))
        yield found


@pytest.fixture
def plane() -> Iterator[ApiServer]:
    with api_server(answer) as server:
        yield server


@asynccontextmanager
async def running(server: ApiServer, node: Rounds) -> AsyncIterator[Checks]:
    """An agent, under way; it is told to end afterwards, and has ended then."""
    checks = Checks()
    settings = PinningSettings(
        name=NODE,
        runtime=node.runtime.socket,
        sysfs=node.directory / "sys",
        kubelet=node.directory / "kubelet",
        journal=node.directory / "journal",
    )
    async with ApiClient(server.connection()) as client:
        recorder = EventRecorder(client, controller="berth.dev/test", instance="i", gives_way_to=Precedence())
        context = ComponentContext(server.connection(), client, recorder, checks, identity="i")
        work = asyncio.create_task(PinningAgent(context, settings).run())
        try:
            yield checks
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work


async def has(node: Rounds, cpus: frozenset[int]) -> None:
    """Wait until the container's process may use these CPUs."""
    (known,) = node.runtime.containers.values()
    async with asyncio.timeout(PATIENCE):
        while allowed(known.pid) != cpus:
            await asyncio.sleep(0.02)


async def test_what_is_pinned_is_given_back(node: Rounds, plane: ApiServer) -> None:
    web = node.container(0)
    async with running(plane, node):
        await has(node, ONE)
    assert web.cpus == ALL


async def test_what_the_kubelet_has_come_to_manage_is_left_as_it_is(node: Rounds, plane: ApiServer) -> None:
    """Its state is another at once, and the agent may end before its next look."""
    web = node.container(0)
    state = node.directory / "kubelet" / "cpu_manager_state"
    async with running(plane, node):
        await has(node, ONE)
        state.write_text(json.dumps({"policyName": "static"}))
    assert web.cpus == ONE
    node.agent()
    assert node.journal.entries.keys() == {web.id}


async def test_a_write_to_a_cgroup_that_is_under_way_is_waited_for(
    node: Rounds, plane: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread goes on when nobody waits for it; it would pin what was given back."""
    web = node.container(0)
    node.runtime.refuses["UpdateContainerResources"] = GRPCError(Status.NOT_FOUND, "no")
    loop, arrived, release = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def write(cgroup: Path, version: Version, cpus: frozenset[int], mems: frozenset[int]) -> None:
        if cpus == ONE:  # as one that moves pages, for seconds
            loop.call_soon_threadsafe(arrived.set)
            release.wait(PATIENCE)
        write_cpuset(cgroup, version, cpus, mems)

    monkeypatch.setattr("agents.node.pinning.writer.write_cpuset", write)
    async with running(plane, node):
        await arrived.wait()
        loop.call_later(0.3, release.set)
    assert release.is_set()
    assert web.cpus == ALL
    node.agent()
    assert not node.journal.entries


async def test_an_update_that_is_under_way_is_waited_for(node: Rounds, plane: ApiServer) -> None:
    web = node.container(0)
    node.runtime.gate.clear()
    async with running(plane, node):
        await node.runtime.updating.wait()
        asyncio.get_running_loop().call_later(0.2, node.runtime.gate.set)
    await node.runtime.settle()
    assert web.cpus == ALL
    node.agent()
    assert not node.journal.entries


async def test_a_write_that_comes_through_too_late_is_in_the_journal(node: Rounds, plane: ApiServer) -> None:
    web = node.container(0)
    node.runtime.gate.clear()
    async with running(plane, node):
        await node.runtime.updating.wait()
    assert web.cpus == ALL
    await node.runtime.settle()
    assert web.cpus == ONE
    await node.agent().restore_all()
    assert web.cpus == ALL
    assert not node.journal.entries


async def test_one_that_ends_before_it_knows_what_is_wanted_gives_back_what_was_left(node: Rounds) -> None:
    web = node.container(0)
    await node.agent().round([wish(0)], observe=False)
    node.leave()
    with api_server(away) as server:
        async with running(server, node) as checks:
            await asyncio.to_thread(server.wait, lambda: len(server.requests) > 2, seconds=PATIENCE)
            assert web.cpus == ONE
            assert checks.health() == {}
            assert checks.ready().keys() == {"watch pods", "watch socketstatuses", "watch workloadprofiles"}
    assert web.cpus == ALL


async def test_an_api_server_that_is_away_is_no_reason_to_start_the_agent_again(
    node: Rounds, plane: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.container(0)
    async with running(plane, node) as checks:
        await has(node, ONE)
        assert (checks.health(), checks.ready()) == ({}, {})
        monkeypatch.setattr(Reflector, "healthy", False)
        assert checks.health() == {}
        assert checks.ready().keys() == {"watch pods", "watch socketstatuses", "watch workloadprofiles"}
        assert "no response from the API server for" in checks.ready()["watch pods"]
