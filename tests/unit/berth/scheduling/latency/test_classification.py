"""States of nodes by limits, with margins that fall with the samples, and hysteresis."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.latencypolicy import NodeState
from berth.scheduling.latency.classification import PROOF, RANK, Limits, classify, margin, margin_between
from tests.support.latency import policy

UNKNOWN, INVALID, HARD, SOFT = NodeState
BOTH = Limits(40_000, 30_000)


@pytest.mark.parametrize(
    ("fields", "limits"),
    [
        pytest.param({"hard": 40}, (40_000, 40_000), id="without a soft limit the hard one is both"),
        pytest.param({"soft": 30}, (math.inf, 30_000), id="without a hard one no node is invalid"),
        pytest.param({"hard": 40, "soft": 30}, (40_000, 30_000), id="both"),
        pytest.param({"hard": 40, "soft": 50}, (40_000, 40_000), id="a soft one above the hard one is that"),
        pytest.param({}, (math.inf, math.inf), id="none"),
    ],
)
def test_limits_of_a_policy(fields: dict[str, object], limits: tuple[float, float]) -> None:
    assert Limits.of(policy(**fields)) == limits


@pytest.mark.parametrize(
    ("previous", "milliseconds", "samples", "state"),
    [
        pytest.param(UNKNOWN, 15, 1, SOFT, id="within both"),
        pytest.param(UNKNOWN, 36, 15, HARD, id="within the hard one"),
        pytest.param(UNKNOWN, 70, 15, INVALID, id="beyond both"),
        pytest.param(UNKNOWN, 45, 1, HARD, id="one round trip a little beyond proves nothing"),
        pytest.param(UNKNOWN, 47, 1, INVALID, id="one round trip far beyond does"),
        pytest.param(SOFT, 31, 15, SOFT, id="it stays within the margin"),
        pytest.param(SOFT, 32, 15, HARD, id="beyond the margin"),
        pytest.param(HARD, 31, 15, HARD, id="better only below the limit"),
        pytest.param(HARD, 30, 1, SOFT, id="at the limit is within it"),
        pytest.param(INVALID, 41, 15, INVALID, id="invalid stays so within the margin"),
        pytest.param(INVALID, 40, 15, HARD, id="valid again at the limit"),
        pytest.param(SOFT, 41, 15, HARD, id="from good to the state between"),
        pytest.param(INVALID, 31, 15, HARD, id="from bad to the state between"),
    ],
)
def test_states(previous: NodeState, milliseconds: float, samples: int, state: NodeState) -> None:
    assert classify(previous, milliseconds * 1000, samples, BOTH) is state


@pytest.mark.parametrize(("samples", "share"), [(0, 0.15), (1, 0.15), (4, 0.075), (9, 0.05), (100, 0.05)])
def test_margins_fall_with_the_samples(samples: int, share: float) -> None:
    assert margin(samples) == pytest.approx(share)


def test_errors_of_two_medians_are_independent() -> None:
    assert margin_between(100, 100) == pytest.approx(PROOF * 0.05 * math.sqrt(2))


STATES = st.sampled_from(list(NodeState))


@given(STATES, st.integers(1, 100_000), st.integers(1, 15))
def test_a_second_look_changes_nothing(previous: NodeState, value: int, samples: int) -> None:
    state = classify(previous, value, samples, BOTH)
    assert state is not UNKNOWN
    assert classify(state, value, samples, BOTH) is state


@given(STATES, st.integers(1, 100_000), st.integers(1, 100_000), st.integers(1, 15))
def test_a_nearer_node_is_no_worse(previous: NodeState, one: int, other: int, samples: int) -> None:
    near, far = sorted((one, other))
    assert RANK[classify(previous, near, samples, BOTH)] >= RANK[classify(previous, far, samples, BOTH)]
