"""Sources that are about the whole cluster: every NetworkTopology may be served, and all hear of changes."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from berth.api.networktopology import NetworkTopology
from controllers.networktopology.sources.base import Source, Surroundings, TopologyKey


class ClusterWideSource(Source):
    """A source that keeps whom it serves, and is passed over where it does not exist."""

    automatic: ClassVar[bool] = True

    def __init__(self, around: Surroundings) -> None:
        """Serve nobody yet."""
        super().__init__(around)
        self._served: set[TopologyKey] = set()

    @classmethod
    @override
    def named_by(cls, topology: NetworkTopology) -> bool:
        """Every NetworkTopology may be served."""
        return True

    def forget(self, key: TopologyKey) -> None:
        """Tell of no changes any more."""
        self._served.discard(key)

    def _tell_all(self) -> None:
        """Have everybody who is served looked at."""
        for key in tuple(self._served):
            self._changed(key)
