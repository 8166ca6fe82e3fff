"""What people may set of the networktopology controller on the command line."""

from __future__ import annotations

from typing import Annotated, Literal

from berth.runtime.settings import ComponentSettings, Flag


class NetworkTopologySettings(ComponentSettings):
    """Settings of the networktopology controller."""

    path_algorithm: Annotated[Literal["Dijkstra", "BellmanFord"], Flag("--path-algorithm")] = "Dijkstra"
    """Algorithm of the shortest paths, and name of the weight set that it writes."""
