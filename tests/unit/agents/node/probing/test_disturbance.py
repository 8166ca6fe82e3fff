"""Which rounds are dropped: a machine too busy to measure is told from one that is slow for good."""

from __future__ import annotations

import pytest

from agents.node.probing.disturbance import FEWEST_ROUNDS, HISTORY_ROUNDS, DisturbanceDetector


def detector(usual: int = 50, rounds: int = 20) -> DisturbanceDetector:
    """One that has seen so many rounds of ``usual`` microseconds."""
    seen = DisturbanceDetector()
    for _ in range(rounds):
        seen.disturbed([usual])
    return seen


@pytest.mark.parametrize(
    ("usual", "probes", "disturbed"),
    [
        pytest.param(50, [50, 60, 55], False, id="as usual"),
        pytest.param(50, [240], False, id="times the usual, but little in all"),
        pytest.param(50, [260], True, id="well above"),
        pytest.param(1000, [2900], False, id="slow machine, below three times"),
        pytest.param(1000, [3100], True, id="slow machine, above"),
        pytest.param(50, [50, 55, 9000], False, id="one outlier"),
        pytest.param(50, [50, 8000, 9000], True, id="most are slow"),
        pytest.param(50, [None, None, 50], True, id="most without an answer"),
        pytest.param(50, [None, 50, 50], False, id="one without an answer"),
        pytest.param(50, [], False, id="no self-probe"),
    ],
)
def test_disturbed(usual: int, probes: list[int | None], disturbed: bool) -> None:
    assert detector(usual).disturbed(probes) is disturbed


def test_nothing_is_usual_at_first() -> None:
    assert not detector(50, rounds=FEWEST_ROUNDS - 1).disturbed([9000])
    assert detector(50, rounds=FEWEST_ROUNDS).disturbed([9000])


def test_a_machine_that_became_slower_measures_again() -> None:
    slower = detector(50, rounds=HISTORY_ROUNDS)
    dropped = [slower.disturbed([2000]) for _ in range(HISTORY_ROUNDS)]
    assert dropped[0]
    assert not dropped[-1]
    assert dropped == sorted(dropped, reverse=True)
