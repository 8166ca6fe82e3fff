"""The benchmark of time per pod: a line for each choice, over a cluster whose sockets are known."""

from __future__ import annotations

import gc
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


def test_what_was_decided_is_the_same_each_time_and_another_for_other_pods() -> None:
    once, again, other = (scale.run(5, 60, seed, list(InterferencePolicy)) for seed in (1, 1, 2))
    for policy in InterferencePolicy:
        assert once[policy].decisions == again[policy].decisions != other[policy].decisions
    assert len({once[policy].decisions for policy in InterferencePolicy}) > 1
    assert gc.get_freeze_count() == 0


def test_every_pod_gets_a_node_and_a_socket() -> None:
    cache = scale.cluster(3, InterferencePolicy.LEAST_SLOWDOWN, random.Random(1))
    for number in range(4):
        cache.assume(scale.pod(number, number), f"n{number % 3}")
    seats = [cache.state.sockets.seat(f"u{number}") for number in range(4)]
    assert all(seat is not None and seat.socket is not None for seat in seats)
