"""The benchmark of time per pod: a line for each choice, over a cluster whose sockets are known."""

from __future__ import annotations

import random

import pytest

from bench.interference import scale
from berth.scheduling.interference.policy import InterferencePolicy


def test_a_line_for_each_choice(capsys: pytest.CaptureFixture[str]) -> None:
    scale.main(["--nodes", "5", "--pods", "10", "--rounds", "1"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["choice", "ms", "a"]
    assert [line.split()[0] for line in lines] == list(InterferencePolicy)


def test_one_choice_is_measured_beside_none(capsys: pytest.CaptureFixture[str]) -> None:
    scale.main(["--nodes", "5", "--pods", "10", "--rounds", "1", "--choice", "LeastSlowdown"])
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["LeastSlowdown", "Off"]


def test_every_pod_gets_a_node_and_a_socket() -> None:
    cache = scale.cluster(3, InterferencePolicy.LEAST_SLOWDOWN, random.Random(1))
    for number in range(4):
        cache.assume(scale.pod(number, number), f"n{number % 3}")
    seats = [cache.state.sockets.seat(f"u{number}") for number in range(4)]
    assert all(seat is not None and seat.socket is not None for seat in seats)
