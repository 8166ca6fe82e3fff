"""PHARE's importance and affinity functions against the source's statements and hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.gang.affinity import DECAY, communication_affinity, computing_affinity, neighbourhood


def test_neighbourhood_by_hand() -> None:
    # A(2)-B(4) with 10, B-C(6) with 5: theta is 1 and 0.5.
    requests = np.array([[2.0], [4.0], [6.0]])
    traffic = np.array([[0.0, 10.0, 0.0], [10.0, 0.0, 5.0], [0.0, 5.0, 0.0]])
    z, y = neighbourhood(requests, traffic, traffic > 0)
    assert z[:, 0].tolist() == [2 + 4, 4 + 2 + 0.5 * 6, 6 + 0.5 * 4]
    assert y[:, 0].tolist() == [6.0, 12.0, 10.0]


def test_edges_without_demand_count_in_y_only() -> None:
    linked = np.array([[False, True], [True, False]])
    z, y = neighbourhood(np.array([[2.0], [3.0]]), np.zeros((2, 2)), linked)
    assert z[:, 0].tolist() == [2.0, 3.0]
    assert y[:, 0].tolist() == [5.0, 5.0]


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        pytest.param(12.0, 1.0, id="room-for-the-neighbourhood"),
        pytest.param(20.0, 1.0, id="more-than-enough"),
        pytest.param(9.0, 0.75, id="free-equals-z"),
        pytest.param(6.0, 0.75**2, id="as-much-again-missing"),
        pytest.param(10.5, 0.75**0.5, id="half-way"),
    ],
)
def test_computing_affinity(free: float, expected: float) -> None:
    assert computing_affinity(12.0, 9.0, np.array([free]))[0] == pytest.approx(expected, abs=1e-6)


def test_decay_is_the_published_constant() -> None:
    assert DECAY == 0.287682
    assert np.exp(-DECAY) == pytest.approx(0.75, abs=1e-6)


@pytest.mark.parametrize(
    ("free", "expected"),
    [pytest.param(5.0, 1.0, id="fits"), pytest.param(4.0, 0.0, id="does-not-fit")],
)
def test_computing_affinity_without_slack_between_y_and_z(free: float, expected: float) -> None:
    assert computing_affinity(5.0, 5.0, np.array([free]))[0] == expected


@pytest.mark.parametrize(
    ("free", "steepness"),
    [
        pytest.param(12.0, 1 / (1 + np.exp(4.0)), id="free-equals-y"),
        pytest.param(9.0, 1 / (1 + np.exp(-4.0)), id="free-equals-z"),
        pytest.param(10.5, 0.5, id="half-way"),
    ],
)
def test_communication_affinity_above_the_free_bandwidth(free: float, steepness: float) -> None:
    value = communication_affinity(30.0, np.array([10.0]), 12.0, 9.0, np.array([free]))[0]
    assert value == pytest.approx(np.exp(-steepness * 2.0))


@pytest.mark.parametrize(
    ("traffic", "bandwidth", "expected"),
    [
        pytest.param(10.0, 10.0, 1.0, id="just-enough"),
        pytest.param(0.0, 0.0, 1.0, id="none-wanted-none-there"),
        pytest.param(1.0, np.inf, 1.0, id="unlimited"),
        pytest.param(1.0, 0.0, 0.0, id="none-there"),
    ],
)
def test_communication_affinity_at_its_ends(traffic: float, bandwidth: float, expected: float) -> None:
    assert communication_affinity(traffic, np.array([bandwidth]), 12.0, 9.0, np.array([9.0]))[0] == expected


def test_affinities_fall_with_what_is_missing() -> None:
    free = np.linspace(0.0, 12.0, 25)
    assert (np.diff(computing_affinity(12.0, 9.0, free)) >= 0).all()
    assert (np.diff(communication_affinity(20.0, np.full(25, 10.0), 12.0, 9.0, free)) >= 0).all()
    bandwidth = np.linspace(0.5, 30.0, 25)
    assert (np.diff(communication_affinity(20.0, bandwidth, 12.0, 9.0, np.full(25, 9.0))) >= 0).all()
