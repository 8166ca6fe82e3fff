"""The duty of throughput: off by default, one peer after another, results of present peers alone."""

from __future__ import annotations

from typing import Any

from agents.node.settings import NodeSettings
from agents.node.throughput.duty import ThroughputDuty
from agents.node.throughput.ledger import HOUR
from tests.support.probing import free_port
from tests.support.throughput import running_receiver


def settings(**changes: Any) -> NodeSettings:
    return NodeSettings(address="127.0.0.1", **changes)


async def test_by_default_it_neither_listens_nor_sends() -> None:
    port = free_port()
    duty = ThroughputDuty(settings(throughput_port=port), lambda: {"n1": "127.0.0.1"})
    await duty.run()
    assert duty.found() == {}
    # The port is free: another may have it.
    ThroughputDuty(settings(throughput_port=port, throughput_megabytes=1), dict)


async def test_peers_are_measured_in_turn_and_forgotten_when_they_go() -> None:
    peers = {"n1": "127.0.0.1", "n2": "127.0.0.2"}
    async with running_receiver(5_000_000, "") as receiver:
        duty = ThroughputDuty(settings(), lambda: peers)
        duty._port, duty._limit = receiver.port, 1_000_000
        for now in (0.0, 1.0, 2.0):
            await duty.measure_next(now)
    found = duty.found()
    assert found.keys() == {"n1", "n2"}
    assert all(result.bits_per_second > 1_000_000 for result in found.values())
    del peers["n1"]
    assert duty.found().keys() == {"n2"}


async def test_a_peer_that_cannot_be_measured_keeps_its_last_result_and_waits_for_its_next_turn() -> None:
    async with running_receiver(1_000_000) as receiver:
        duty = ThroughputDuty(settings(), lambda: {"n1": "127.0.0.1"})
        duty._port, duty._limit = receiver.port, 1_000_000
        await duty.measure_next(0.0)
        first = duty.found()["n1"]
        await duty.measure_next(HOUR)  # refused: its share is used up
        assert duty.found()["n1"] == first
    await duty.measure_next(2 * HOUR)  # nobody listens
    assert duty.found()["n1"] == first
