"""Prices of the objective, as a profile and an AppGroup state them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from berth.api.spread import SpreadLevel
from berth.network.groups import Group
from berth.network.routing import unreachable_cost
from berth.scheduling.replicas.problem import Prices

BEYOND = 1000.0
"""What must be survived costs so much more than the dearest calls of the whole application."""


def objective_prices(
    group: Group, network: float, location_cost: npt.NDArray[np.float64], spread: SpreadLevel
) -> Prices:
    """Prices in units of network cost.

    Args:
        group: the AppGroup; what its annotation says comes before the profile.
        network: weight of network costs.
        location_cost: float64[L, L], cost from location to location.
        spread: which failure the profile wants survived.
    """
    lost = unreachable_cost(location_cost)
    prices, wanted = Prices(network=network, lost_calls=lost), group.spread or spread
    required = BEYOND + 2 * network * lost * len(group.edges)
    node, zone = {
        SpreadLevel.SOFT: (prices.survive_node, prices.survive_zone),
        SpreadLevel.NONE: (0.0, 0.0),
        SpreadLevel.NODE: (required, prices.survive_zone),
        SpreadLevel.ZONE: (required, required),
    }[wanted]
    return Prices(network=network, lost_calls=lost, survive_node=node, survive_zone=zone)
