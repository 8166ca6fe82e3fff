"""The kernel's figures of a connection: their places in its structure, and one round trip out of the smoothed one."""

from __future__ import annotations

import select
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.runtime.tcp_info import TcpInfo, last_round_trip, segments_acknowledged, tcp_info

MICROSECONDS = st.integers(min_value=1, max_value=2_000_000)


@pytest.mark.parametrize(
    ("before", "after", "elapsed", "expected"),
    [
        pytest.param(TcpInfo(100, 0), TcpInfo(100, 0), 500, 100, id="as before"),
        pytest.param(TcpInfo(100, 0), TcpInfo(200, 0), 5000, 900, id="an eighth of the new one"),
        pytest.param(TcpInfo(100, 0), TcpInfo(90, 0), 500, 20, id="shorter"),
        pytest.param(TcpInfo(100, 0), TcpInfo(200, 0), 850, 850, id="no longer than the program saw"),
        pytest.param(TcpInfo(40, 0), TcpInfo(30, 0), 500, 1, id="rounding never makes it 0"),
        pytest.param(TcpInfo(100, 2), TcpInfo(100, 3), 500, None, id="sent again"),
    ],
)
def test_last_round_trip(before: TcpInfo, after: TcpInfo, elapsed: int, expected: int | None) -> None:
    assert last_round_trip(before, after, elapsed) == expected


@given(smoothed=MICROSECONDS, eighths=st.integers(min_value=0, max_value=7), last=MICROSECONDS)
def test_undoing_the_kernels_smoothing_is_within_8_microseconds(smoothed: int, eighths: int, last: int) -> None:
    srtt = 8 * smoothed + eighths  # what tcp_rtt_estimator keeps
    after = srtt + last - (srtt >> 3)
    found = last_round_trip(TcpInfo(srtt >> 3, 0), TcpInfo(after >> 3, 0), elapsed=last + 100)
    assert found is not None
    assert abs(found - last) <= 8


def test_the_kernel_states_a_round_trip() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        found = tcp_info(connection)
    assert 0 < found.round_trip < 1_000_000
    assert found.retransmissions == 0
    assert found.least_round_trip == found.round_trip, "there was one, that of the handshake"


def test_the_kernel_counts_what_has_come_read_or_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        accepted, _ = server.accept()
        with accepted:
            accepted.send(b"abc")
            assert connection.recv(1) == b"a"
            assert tcp_info(connection).received == 3


def test_a_closed_connection_has_none() -> None:
    connection = socket.socket()
    connection.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        tcp_info(connection)


def test_what_was_taken_is_acknowledged_and_what_came_too_late_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        other, _ = server.accept()
        before = segments_acknowledged(client)
        client.sendall(b"in time")
        assert other.recv(100) == b"in time"
        other.close()
        assert client.recv(1) == b""
        taken = segments_acknowledged(client)
        assert taken == before + 1
        client.sendall(b"too late")
        ends = select.poll()
        ends.register(client, 0)
        assert ends.poll(60_000), "the other side says that nobody is there"
        assert segments_acknowledged(client) == taken
    assert segments_acknowledged(client) == 0
