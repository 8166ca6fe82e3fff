"""Readings of a user's connection: which of them tell a round trip. Far users are those of the integration tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.runtime.measuring.kernel import AcceptedConnection, fresh_round_trip
from berth.runtime.tcp_info import TcpInfo

SECOND = 1_000_000


def reading(smoothed: int, delivered: int, least: int = 20_000, again: int = 0) -> TcpInfo:
    return TcpInfo(smoothed, again, least_round_trip=least, delivered=delivered)


STEADY = reading(20_000, 10)


@pytest.mark.parametrize(
    ("before", "after", "elapsed", "expected"),
    [
        pytest.param(None, reading(21_000, 1), 0, 21_000, id="the handshake"),
        pytest.param(None, reading(0, 1), 0, None, id="a handshake that was not timed"),
        pytest.param(STEADY, STEADY, SECOND, None, id="nothing new"),
        pytest.param(STEADY, reading(20_125, 11), SECOND, 21_000, id="one more, an eighth longer"),
        pytest.param(STEADY, reading(19_000, 11, least=12_000), SECOND, 12_000, id="shorter"),
        pytest.param(STEADY, reading(19_000, 11), SECOND, 20_000, id="not shorter than the least one"),
        pytest.param(STEADY, reading(25_000, 11), SECOND, None, id="acknowledged after 40 ms"),
        pytest.param(STEADY, reading(25_000, 11), 22_000, 22_000, id="no longer than the time that went by"),
        pytest.param(STEADY, reading(20_000, 11, again=1), SECOND, None, id="sent again"),
        pytest.param(STEADY, reading(21_000, 30), SECOND, 21_000, id="many"),
        pytest.param(STEADY, reading(30_000, 30), SECOND, None, id="many, and slow"),
        pytest.param(reading(20_000, 2**32 - 1), reading(20_000, 0), SECOND, 20_000, id="the count begins anew"),
        pytest.param(reading(200, 1, 150), reading(250, 2, 150), SECOND, 600, id="near, on a busy machine"),
        pytest.param(reading(100_000, 1, 100_000), reading(105_000, 2, 100_000), SECOND, None, id="far, put off"),
        pytest.param(reading(100_000, 1, 100_000), reading(102_000, 2, 100_000), SECOND, 116_000, id="far, and jitter"),
    ],
)
def test_fresh_round_trip(before: TcpInfo | None, after: TcpInfo, elapsed: int, expected: int | None) -> None:
    assert fresh_round_trip(before, after, elapsed) == expected


NUMBERS = st.integers(0, 2**32 - 1)
READINGS = st.builds(TcpInfo, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS)


@given(before=READINGS, after=READINGS, elapsed=st.integers(0, 2**40))
def test_no_round_trip_is_far_from_the_least(before: TcpInfo, after: TcpInfo, elapsed: int) -> None:
    found = fresh_round_trip(before, after, elapsed)
    least = after.least_round_trip
    assert found is None or least <= found <= max(least + 21_000, least)


@contextmanager
def accepted() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's socket and the one that was accepted for it."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        connection, _ = server.accept()
        with connection:
            yield client, connection


def test_the_handshake_is_the_first_round_trip_and_then_there_is_none_without_an_answer() -> None:
    with accepted() as (client, connection):
        read = AcceptedConnection(connection)
        client.send(b"request")
        connection.recv(10)
        found = read.round_trip()
        assert found is not None
        assert 0 < found < SECOND
        assert 0 < read.least <= found
        client.send(b"another")
        connection.recv(10)
        assert read.round_trip() is None


def test_the_count_of_what_was_acknowledged_goes_up_with_answers() -> None:
    with accepted() as (client, connection):
        read = AcceptedConnection(connection)
        read.round_trip()
        before = read._before
        assert before is not None
        for _ in range(3):
            connection.send(b"answer")
            client.recv(10)
            client.send(b"request")
            connection.recv(10)
        read.round_trip()
        assert read._before is not None
        assert (read._before.delivered - before.delivered) % 2**32 == 3


def test_a_closed_connection_tells_nothing() -> None:
    with accepted() as (_, connection):
        read = AcceptedConnection(connection)
        connection.close()
        assert read.round_trip() is None
