"""How the soak reads memory: means of quarters, and what it does in the last half."""

from __future__ import annotations

import pytest

from bench.soak.observe import growth


@pytest.mark.parametrize(
    ("mib", "quarters", "slope", "ratio"),
    [
        pytest.param([200.0] * 8, (200.0,) * 4, 0.0, 1.0, id="flat"),
        pytest.param([100.0, 150.0, 200.0, 200.0, 200.0, 200.0], (125.0, 200.0, 200.0, 200.0), 0.0, 1.0, id="filled"),
        pytest.param(
            [100.0 + 2 * minute for minute in range(8)], (101.0, 105.0, 109.0, 113.0), 2.0, 113 / 105, id="a leak"
        ),
    ],
)
def test_growth(mib: list[float], quarters: tuple[float, ...], slope: float, ratio: float) -> None:
    found = growth(mib)
    assert found.quarters == pytest.approx(quarters)
    assert found.slope == pytest.approx(slope, abs=1e-9)
    assert found.ratio == pytest.approx(ratio)
