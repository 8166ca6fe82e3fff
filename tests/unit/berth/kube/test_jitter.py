"""What began together goes on apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth.kube.jitter import jitter


@given(least=st.floats(-1e6, 1e6), width=st.floats(0, 1e6))
def test_jitter_is_within_its_bounds(least: float, width: float) -> None:
    assert least <= jitter(least, least + width) <= least + width + 1e-9 * abs(width)


def test_who_began_together_goes_on_apart() -> None:
    assert len({jitter(0.0, 1.0) for _ in range(100)}) > 90
