"""CheckRiskNodeBandwidth (filter): nodes whose link is likely to be too busy for the pod, by what was measured on it.

The formula is that of the sig-scheduling KEP 260: risk = (mu + sigma) / 2 with mu = (mean + request) / capacity and
sigma = margin * (deviation / capacity) ** (1 / sensitivity), both cut to [0, 1]. A node without fresh measurements is
not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from berth.scheduling.cache.node_changes import NodePart
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes
from berth.scheduling.framework.reasons import RISKY_BANDWIDTH
from berth.scheduling.plugins.node_bandwidth import requested_bandwidth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.configuration import BandwidthRisk, Profile
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Floats


def node_risk(
    mean: Floats, deviation: Floats, capacity: Floats, *, request: float, margin: float, sensitivity: float
) -> Floats:
    """Return float64[N] from 0 to 1, NaN where a figure is missing.

    Args:
        mean: float64[N], bit/s in use on each node's link.
        deviation: float64[N], its standard deviation.
        capacity: float64[N], what the link carries, above 0.
        request: what the pod adds.
        margin: factor of the deviation.
        sensitivity: root of the deviation; the higher, the more small deviations count.
    """
    mu = np.clip((np.clip(mean, 0, capacity) + max(request, 0.0)) / capacity, 0, 1)
    power = 1 / sensitivity if sensitivity else np.inf
    sigma = np.clip(margin * np.clip(deviation / capacity, 0, 1) ** power, 0, 1)
    risk: Floats = (mu + sigma) / 2
    return risk


class CheckRiskNodeBandwidth(FilterPlugin):
    """Rejects nodes above the profile's threshold of risk; does nothing where the profile states none."""

    name = "CheckRiskNodeBandwidth"
    reads = NodePart.LINK

    def __init__(self, *, settings: BandwidthRisk | None = None) -> None:
        """Take the profile's parameters; None: off."""
        self._settings = settings

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Take the profile's parameters."""
        return cls(settings=profile.check_risk_node_bandwidth)

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Those nodes; none for pods that need no bandwidth."""
        settings, table = self._settings, cycle.cluster.link_use
        request = requested_bandwidth(cycle.pod.template) + int(cycle.edges.bandwidth.sum())
        if settings is None or table is None or not request:
            return ()
        mean, deviation, capacity = table.arrays(cycle.cluster.node_index, cycle.cluster.size)
        infrastructure = cycle.infrastructure
        if infrastructure is not None:
            exact = infrastructure.exact
            capacity = np.where(np.isnan(capacity) & exact.limited, exact.bandwidth, capacity)
        risk = node_risk(
            mean,
            deviation,
            np.where(capacity > 0, capacity, np.nan),
            request=request,
            margin=settings.safe_variance_margin,
            sensitivity=settings.safe_variance_sensitivity,
        )
        return (RejectedNodes(RISKY_BANDWIDTH, risk > settings.risk_threshold),)
