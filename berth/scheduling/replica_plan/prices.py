"""Prices of the objective, as a profile states them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from berth.network.routing import unreachable_cost
from berth.scheduling.replicas.problem import Prices


def objective_prices(network: float, location_cost: npt.NDArray[np.float64]) -> Prices:
    """Prices in units of network cost.

    Args:
        network: weight of network costs.
        location_cost: float64[L, L], cost from location to location.
    """
    return Prices(network=network, lost_calls=unreachable_cost(location_cost))
