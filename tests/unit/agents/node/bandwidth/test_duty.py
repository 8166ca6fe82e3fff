"""The duty of bandwidth on files as the kernel shows them: what is advertised and reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from agents.node import boot_clock
from agents.node.bandwidth.duty import BandwidthDuty
from agents.node.settings import NodeSettings
from berth.api.probereport import BandwidthReport
from berth.kube.client import ApiClient
from tests.support.api_server import Answer, ApiServer, api_server, refusal

ROUTES = """\
Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
eth0 00000000 0 0003 0 0 0 00000000 0 0 0
"""


class Machine:
    """A node with the link eth0."""

    def __init__(self, directory: Path) -> None:
        self.classes, self.routes = directory / "class", directory / "net"
        self.routes.mkdir()
        (self.routes / "route").write_text(ROUTES)
        self.link("eth0", "10000")

    def link(self, name: str, speed: str) -> None:
        directory = self.classes / name
        (directory / "device").mkdir(parents=True, exist_ok=True)
        (directory / "statistics").mkdir(exist_ok=True)
        (directory / "speed").write_text(speed)
        self.carry(name, 0)

    def carry(self, name: str, octets: int) -> None:
        for counter in ("rx_bytes", "tx_bytes"):
            (self.classes / name / "statistics" / counter).write_text(str(octets))

    def duty(self, client: ApiClient, **settings: Any) -> BandwidthDuty:
        return BandwidthDuty(client, NodeSettings(**settings), "n1", classes=self.classes, routes=self.routes)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server(lambda _: Answer(200, {})) as running:
        yield running


def advertised(server: ApiServer) -> list[str]:
    bodies = [json.loads(request.body)["status"] for request in server.requests]
    return [body["capacity"]["network.aware.com/bandwidth"] for body in bodies]


@pytest.mark.parametrize(
    ("settings", "speed", "expected"),
    [
        pytest.param({}, "10000", ["10000000000"], id="what the driver says"),
        pytest.param({}, "-1", [], id="unknown is not advertised"),
        pytest.param({"bandwidth": "25G"}, "-1", ["25000000000"], id="configured"),
        pytest.param({"bandwidth": "5G"}, "10000", ["5000000000"], id="configured, and said otherwise"),
        pytest.param({"interface": "gone"}, "10000", [], id="no such interface"),
        pytest.param({"interface": "gone", "bandwidth": "1G"}, "10000", ["1000000000"], id="configured without a link"),
    ],
)
async def test_what_is_advertised(
    machine: Machine, server: ApiServer, settings: dict[str, str], speed: str, expected: list[str]
) -> None:
    machine.link("eth0", speed)
    async with ApiClient(server.connection()) as client:
        duty = machine.duty(client, **settings)
        for now in (0.0, 10.0):
            duty.sample(now)
            await duty.advertise(now)
    assert advertised(server) == expected


async def test_a_cable_that_is_out_for_a_moment_changes_nothing(machine: Machine, server: ApiServer) -> None:
    async with ApiClient(server.connection()) as client:
        duty = machine.duty(client)
        for now, speed in [(0.0, "10000"), (10.0, "-1"), (320.0, "-1"), (350.0, "1000")]:
            (machine.classes / "eth0" / "speed").write_text(speed)
            duty.sample(now)
            await duty.advertise(now)
    assert advertised(server) == ["10000000000", "10000000000", "1000000000"]


async def test_a_refused_patch_ends_nothing(machine: Machine) -> None:
    with api_server(lambda _: refusal(403, "Forbidden")) as server:
        async with ApiClient(server.connection()) as client:
            duty = machine.duty(client)
            duty.sample(0.0)
            await duty.advertise(0.0)
            duty.sample(30.0)
            await duty.advertise(30.0)
    assert len(server.requests) == 2


async def test_report_and_metrics(machine: Machine, server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot_clock, "now", lambda: 20.0)
    async with ApiClient(server.connection()) as client:
        duty = machine.duty(client)
        assert duty.report() is None
        duty.sample(0.0)
        assert duty.report() == BandwidthReport(interface="eth0", capacity_bits_per_second=10**10, samples=0)
        for now, octets in [(10.0, 1000), (20.0, 3000)]:
            machine.carry("eth0", octets)
            duty.sample(now)
        expected = BandwidthReport(
            interface="eth0",
            capacity_bits_per_second=10**10,
            mean_bits_per_second=1200,
            deviation_bits_per_second=400,
            samples=2,
        )
        assert duty.report() == expected
    names = ("capacity", "utilisation_mean", "utilisation_deviation")
    values = [REGISTRY.get_sample_value(f"berth_link_{name}_bits_per_second", {"interface": "eth0"}) for name in names]
    assert values == [10**10, 1200, 400]


async def test_another_default_route_is_another_link(machine: Machine, server: ApiServer) -> None:
    machine.link("eth1", "-1")
    async with ApiClient(server.connection()) as client:
        duty = machine.duty(client)
        duty.sample(0.0)
        (machine.routes / "route").write_text(ROUTES.replace("eth0", "eth1"))
        duty.sample(10.0)
        assert duty.report() == BandwidthReport(interface="eth1", samples=0)
        (machine.routes / "route").write_text("")
        duty.sample(20.0)
        assert duty.report() == BandwidthReport(interface="eth1", samples=0)


async def test_an_interface_whose_name_is_no_text_is_measured_and_shown(machine: Machine, server: ApiServer) -> None:
    machine.link("e\udcff0", "1000")
    (machine.routes / "route").write_text(ROUTES.replace("eth0", "e\udcff0"), errors="surrogateescape")
    async with ApiClient(server.connection()) as client:
        duty = machine.duty(client)
        duty.sample(0.0)
        assert duty.report() == BandwidthReport(interface="e\ufffd0", capacity_bits_per_second=10**9, samples=0)
    assert REGISTRY.get_sample_value("berth_link_capacity_bits_per_second", {"interface": "e\ufffd0"}) == 10**9
