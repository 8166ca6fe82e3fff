"""The benchmark of joint plans of pods with a class: every pod is placed, and a line is printed for each choice."""

from __future__ import annotations

import pytest

from bench.interference import joint_scale
from berth.scheduling.interference.policy import InterferencePolicy


def test_a_line_for_slowdown_and_one_for_off(capsys: pytest.CaptureFixture[str]) -> None:
    joint_scale.main(["--nodes", "5", "--pods", "25", "--before", "5"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["choice", "placed"]
    assert [line.split()[:2] for line in lines] == [["LeastSlowdown", "25"], ["Off", "25"]]


@pytest.mark.parametrize("policy", [InterferencePolicy.LEAST_SLOWDOWN, InterferencePolicy.OFF])
def test_turns_are_part_of_the_time(policy: InterferencePolicy) -> None:
    found = joint_scale.run(4, 20, 0, policy)
    assert found.placed == 20
    assert found.longest_turn <= found.seconds
