"""What people may set of the networktopology controller on the command line."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from berth.runtime.settings import ComponentSettings, Flag
from controllers.networktopology.scale import COST_UNIT
from controllers.networktopology.sources.base import Percentile


class NetworkTopologySettings(ComponentSettings):
    """Settings of the networktopology controller."""

    path_algorithm: Annotated[Literal["Dijkstra", "BellmanFord"], Flag("--path-algorithm")] = "Dijkstra"
    """Algorithm of the shortest paths, and name of the weight set that it writes."""
    latency_percentile: Annotated[Percentile, Flag("--latency-percentile")] = "p90"
    """Percentile of the measured latencies that costs come from."""
    cost_unit_microseconds: Annotated[int, Flag("--cost-unit-microseconds")] = Field(
        default=COST_UNIT, ge=1, le=1_000_000
    )
    """Microseconds of latency that cost 1, 1 to 1000000; 1000 gives the costs of upstream's controller."""
