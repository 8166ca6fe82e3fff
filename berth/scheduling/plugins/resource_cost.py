"""ResourceCost (score, cost): the price of what the pod requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from berth.scheduling.framework.plugin import CostPlugin

if TYPE_CHECKING:
    from berth.scheduling.configuration import Profile
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Floats


class ResourceCost(CostPlugin):
    """Charges the prices of the profile, or of a node's annotations berth.dev/price-<resource>."""

    name = "ResourceCost"
    term = "price"
    in_objective = True

    def __init__(self, *, score_weight: float = 1.0) -> None:
        """``score_weight`` is the profile's ``weights.priceScore`` or ``weights.price``."""
        self.score_weight = score_weight

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Weigh the score as the profile says, like the price of joint plans where it says nothing."""
        weights = profile.weights
        return cls(score_weight=weights.price if weights.price_score is None else weights.price_score)

    def cost(self, cycle: CycleState) -> Floats | None:
        """Price of the requests on each node; nothing is charged where nobody asks for money."""
        infrastructure = cycle.infrastructure
        if infrastructure is None or not infrastructure.has_price:
            return None
        cost: Floats = infrastructure.infrastructure.price @ cycle.request
        return cost
