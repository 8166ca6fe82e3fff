"""The duty of probing with a real prober process on loopback and a scripted API server: what is reported, and when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.node import boot_clock
from agents.node.probing.duty import SILENCE_SECONDS, ProbingDuty
from agents.node.probing.messages import Order
from agents.node.probing.process import ProberProcess
from agents.node.probing.report import MeasuredThroughput
from agents.node.settings import NodeSettings
from berth.api.probereport import BandwidthReport
from berth.kube.client import ApiClient
from berth.kube.events import EventRecorder
from berth.kube.precedence import Precedence
from berth.runtime.component import ComponentContext
from berth.runtime.health import Checks
from tests.support.api_server import Answer, ApiServer, Request, api_server, refusal
from tests.support.probing import free_port

LINK = BandwidthReport(interface="eth0", capacity_bits_per_second=10**10, samples=0)
TESTED = {"n2": MeasuredThroughput(10**9, datetime(2026, 1, 31, 12, 0, tzinfo=UTC))}
STATUS = "/apis/berth.dev/v1alpha1/probereports/n1/status"


class Plane:
    """An API server with EndpointSlices of three agents, one of which nobody answers for; it may have a fourth come."""

    def __init__(self, port: int, *, refuses: int = 0, grows: bool = False) -> None:
        self.grows = grows
        addresses = {"n1": "127.0.0.1", "n2": "127.0.0.1", "n3": "127.0.0.3"}
        self.slices = [
            {
                "metadata": {"name": node, "namespace": "berth-system", "resourceVersion": "1"},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [address], "nodeName": node, "zone": f"zone-{node}"}],
                "ports": [{"port": port if node != "n3" else free_port()}],
            }
            for node, address in addresses.items()
        ]
        self.comes = {
            "type": "ADDED",
            "object": {
                "metadata": {"name": "n4", "namespace": "berth-system", "resourceVersion": "2"},
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["127.0.0.4"], "nodeName": "n4"}],
            },
        }
        self.refuses = refuses
        self.reports: list[dict[str, Any]] = []

    def __call__(self, request: Request) -> Answer:
        path, _, query = request.path.partition("?")
        if path.endswith("/endpointslices"):
            if "watch=true" in query:
                return Answer(200, json.dumps(self.comes).encode() + b"\n" if self.grows else b"")
            return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": self.slices})
        assert path == STATUS
        if len(self.reports) < self.refuses:
            self.reports.append({})
            return refusal(403, "Forbidden")
        (operation,) = json.loads(request.body)
        self.reports.append(operation["value"])
        return Answer(200, {})


@asynccontextmanager
async def running(server: ApiServer, port: int, *, interval: float = 0.5) -> AsyncIterator[tuple[ProbingDuty, Checks]]:
    """The duty of n1, under way."""
    checks, settings = Checks(), NodeSettings(address="127.0.0.1", port=port, interval=interval, rate=200.0)
    async with ApiClient(server.connection()) as client:
        recorder = EventRecorder(client, controller="berth.dev/test", instance="i", gives_way_to=Precedence())
        context = ComponentContext(server.connection(), client, recorder, checks, identity="i")
        duty = ProbingDuty(context, settings, "n1", lambda: LINK, lambda: TESTED, lambda _found: None)
        work = asyncio.create_task(duty.run())
        try:
            yield duty, checks
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


async def reached(server: ApiServer, condition: Callable[[], bool]) -> None:
    assert await asyncio.to_thread(server.wait, condition, seconds=60.0)


async def test_peers_are_reported_after_their_first_rounds() -> None:
    port = free_port()
    plane = Plane(port)
    with api_server(plane) as server:
        async with running(server, port) as (duty, checks):
            await reached(server, lambda: bool(plane.reports))
            assert duty.addresses == {"n2": "127.0.0.1", "n3": "127.0.0.3"}
            assert checks.health() == {}
    (report,) = plane.reports
    assert report["zone"] == "zone-n1"
    assert report["bandwidth"] == {"interface": "eth0", "capacityBitsPerSecond": 10**10, "samples": 0}
    answering, other = report["peers"]
    assert (answering["node"], answering["zone"], answering["method"]) == ("n2", "zone-n2", "TCP")
    assert answering["p90Microseconds"] > 0
    assert answering["samples"] >= 10
    assert answering["throughputBitsPerSecond"] == 10**9
    assert other["node"] == "n3"
    assert "throughputBitsPerSecond" not in other


async def test_a_report_that_is_refused_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.node.probing.publication.WRITE_SECONDS", 0.1)
    port = free_port()
    plane = Plane(port, refuses=2)
    with api_server(plane) as server:
        async with running(server, port):
            await reached(server, lambda: len(plane.reports) > 2)
    assert plane.reports[:2] == [{}, {}]
    assert plane.reports[2]["peerCount"] == 2


async def test_a_node_that_wakes_writes_with_its_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it wrote before it slept is as old as the sleep was long."""
    port = free_port()
    plane = Plane(port)
    with api_server(plane) as server:
        async with running(server, port):
            await reached(server, lambda: bool(plane.reports))
            monkeypatch.setattr(boot_clock, "now", lambda now=boot_clock.now: now() + 3600)
            await reached(server, lambda: len(plane.reports) == 2)
    assert plane.reports[1]["peers"] == [], "it took what it had measured before for news"


async def test_it_is_not_healthy_without_rounds() -> None:
    port = free_port()
    with api_server(Plane(port)) as server:
        async with running(server, port) as (duty, checks):
            duty._last_round -= SILENCE_SECONDS + 1
            assert checks.health().keys() == {"prober"}


async def test_it_is_not_started_again_because_the_api_server_is_away() -> None:
    """It measures on with the peers that it knows; another agent would know none until the API server is back."""
    port = free_port()
    with api_server(Plane(port)) as server:
        async with running(server, port) as (duty, checks):
            await reached(server, duty._endpoints.synced.is_set)
            assert checks.ready() == {}
            duty._endpoints._stale_after = 0.0
            assert checks.health() == {}
            assert checks.ready().keys() == {"watch endpointslices"}


async def test_a_process_that_hangs_is_found_before_the_agent_is_not_healthy() -> None:
    """With many peers and a low rate a round takes minutes."""
    port = free_port()
    with api_server(Plane(port)) as server:
        async with running(server, port) as (duty, checks):
            duty._process.silence = 400.0
            duty._last_round -= 1100.0
            assert checks.health() == {}
            duty._last_round -= 101.0
            assert checks.health().keys() == {"prober"}


async def test_an_agent_that_comes_is_a_peer_at_once_however_long_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    given: asyncio.Queue[Order] = asyncio.Queue()
    monkeypatch.setattr(ProberProcess, "give", lambda _, order: given.put_nowait(order))
    port = free_port()
    with api_server(Plane(port, grows=True)) as server:
        async with running(server, port, interval=60.0), asyncio.timeout(60):
            orders = [await given.get()]
            while len(orders[-1].targets) < 3:
                orders.append(await given.get())
    assert {target.name for target in orders[-1].targets} == {"n2", "n3", "n4"}
