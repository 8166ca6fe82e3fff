"""Request-response with real responders on loopback: round trips, and what counts as lost."""

from __future__ import annotations

import contextlib
import statistics

import pytest

from agents.node.probing import request_response as module
from agents.node.probing.request_response import RequestResponse
from tests.support.probing import (
    free_port,
    hasty_server,
    responder_process,
    running_responder,
    silent_server,
    stopped,
    talkative_server,
)


def test_round_trips_over_loopback() -> None:
    with running_responder() as responder, contextlib.closing(RequestResponse("127.0.0.1", responder.port)) as peer:
        found = [peer.probe() for _ in range(20)]
        assert peer.connected
    measured = [value for value in found if value is not None]
    assert len(measured) >= 18
    assert sorted(measured)[10] < 100_000


def test_how_long_a_peers_program_waits_for_a_processor_is_no_part_of_round_trips() -> None:
    """After sixteen bytes without a pause its kernel waits for the program, or 40 ms."""
    with responder_process() as (port, process), contextlib.closing(RequestResponse("127.0.0.1", port, 60.0)) as peer:
        peer.probe()
        found = []
        for _ in range(33):
            with stopped(process, 0.06):
                found.append(peer.probe())
    measured = [value for value in found if value is not None]
    assert len(measured) >= 30
    assert statistics.median(measured[15:]) < 20_000


@pytest.mark.parametrize(
    ("pause", "connections"),
    [
        pytest.param(float("inf"), 3, id="in a row"),
        pytest.param(0.0, 1, id="each after a pause"),
    ],
)
def test_a_connection_has_no_more_probes_in_a_row_than_are_acknowledged_at_once(
    monkeypatch: pytest.MonkeyPatch, pause: float, connections: int
) -> None:
    monkeypatch.setattr(module, "PAUSE_SECONDS", pause)
    with (
        running_responder() as responder,
        contextlib.closing(RequestResponse("127.0.0.1", responder.port, 60.0)) as peer,
    ):
        ports = set()
        for _ in range(2 * module.PROBES_IN_A_ROW + 1):
            peer.probe()
            assert peer._connection is not None
            ports.add(peer._connection.getsockname()[1])
    assert len(ports) == connections


def test_nobody_listens() -> None:
    peer = RequestResponse("127.0.0.1", free_port())
    assert peer.probe() is None
    assert not peer.connected


def test_no_answer_is_lost_and_its_connection_given_up() -> None:
    with silent_server() as port:
        peer = RequestResponse("127.0.0.1", port, timeout=0.05)
        assert peer.probe() is None
        assert not peer.connected


def test_a_server_that_is_no_responder_is_not_measured() -> None:
    with talkative_server() as port:
        peer = RequestResponse("127.0.0.1", port)
        assert [peer.probe(), peer.probe()] == [None, None]
        assert not peer.connected


def test_answers_that_are_there_before_the_question_are_no_round_trips() -> None:
    with hasty_server() as (port, taken), contextlib.closing(RequestResponse("127.0.0.1", port)) as peer:
        for _ in range(3):
            peer.probe()
        assert len(taken) == 3, "a round trip that began with the connection is as long as the way"


def test_a_responder_that_restarts_loses_no_probe() -> None:
    with running_responder() as responder:
        peer = RequestResponse("127.0.0.1", responder.port)
        assert peer.probe() is not None
    with running_responder(port=responder.port), contextlib.closing(peer):
        assert peer.probe() is not None


def test_one_that_does_not_come_back_is_lost() -> None:
    with running_responder() as responder:
        peer = RequestResponse("127.0.0.1", responder.port)
        assert peer.probe() is not None
    assert peer.probe() is None
    assert not peer.connected
