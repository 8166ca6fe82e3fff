"""Prices of the objective."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.replica_plan.prices import objective_prices


@pytest.mark.parametrize(("highest", "lost"), [(5.0, 100.0), (3000.0, 3000.0)])
def test_a_call_that_fails_is_never_the_cheapest(highest: float, lost: float) -> None:
    prices = objective_prices(2.0, np.array([[1.0, highest], [highest, 1.0]]))
    assert (prices.network, prices.lost_calls) == (2.0, lost)
