"""The order and time of delayed packets. That they arrive: end-to-end tests."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.localcluster.kubelets import delay
from hack.localcluster.kubelets.delay import DelayLine, Delays


def header(version: int, target: str = "10.250.7.13") -> bytes:
    """An IP header without options."""
    return bytes([version << 4 | 5]) + bytes(15) + socket.inet_aton(target)


@given(st.lists(st.floats(0, 10), max_size=30).map(sorted), st.floats(0, 1))
def test_packets_leave_in_their_order_and_none_too_early(arrivals: Sequence[float], seconds: float) -> None:
    line = DelayLine(seconds)
    for number, arrival in enumerate(arrivals):
        line.put(bytes([number]), arrival)
    left: list[int] = []
    for now in sorted({arrival + seconds for arrival in arrivals}):
        assert line.wait(now) == 0
        packets = [packet[0] for packet in line.due(now)]
        assert all(arrivals[number] + seconds <= now for number in packets)
        left += packets
    assert left == list(range(len(arrivals)))
    assert line.wait(100) is None


def test_the_next_packet_is_waited_for() -> None:
    line = DelayLine(0.5)
    line.put(b"a", 10.0)
    line.put(b"b", 10.25)
    assert line.due(10.25) == []
    assert line.wait(10.25) == 0.25
    assert line.due(10.5) == [b"a"]
    assert line.wait(10.5) == 0.25


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        pytest.param(header(4), "10.250.7.13", id="IPv4"),
        pytest.param(header(4) + b"data", "10.250.7.13", id="with data"),
        pytest.param(header(6), None, id="IPv6"),
        pytest.param(header(4)[:19], None, id="cut off"),
    ],
)
def test_destination(packet: bytes, expected: str | None) -> None:
    assert delay.destination(packet) == expected


def test_each_peer_gets_a_route_by_the_device_with_the_address_of_the_link() -> None:
    up, *others = delay.routes(Delays(["127.0.0.1=40", "127.1.0.0/16=5"]).peers)
    assert up[:4] == ["ip", "link", "set", delay.DEVICE]
    assert [command[2:] for command in others] == [
        ["prepend", "127.0.0.1/32", "dev", delay.DEVICE, "src", "127.0.0.1"],
        ["prepend", "127.1.0.0/16", "dev", delay.DEVICE, "src", "127.0.0.1"],
    ]


def test_each_peer_has_its_own_time() -> None:
    delays = Delays(["10.250.7.13=500", "10.244.1.0/24=250"])
    far, near = (header(4, target) for target in ("10.250.7.13", "10.244.1.9"))
    for packet in (far, near, header(4, "10.244.2.9"), header(6)):
        delays.put(packet, 10.0)
    assert delays.wait(10.0) == 0.25
    assert (delays.due(10.25), delays.due(10.5)) == ([near], [far])
    assert delays.wait(11.0) is None


def test_another_time_is_that_of_packets_that_come_from_then_on() -> None:
    delays = Delays(["10.250.7.13=500", "10.244.1.0/24=250"])
    before, after = header(4) + b"before", header(4) + b"after"
    delays.put(before, 10.0)
    delays.change(["10.250.7.13=1000"])
    delays.put(after, 10.0)
    assert (delays.due(10.5), delays.due(11.0)) == ([before], [after])
    with pytest.raises(KeyError):
        delays.change(["10.250.7.14=1000"])
