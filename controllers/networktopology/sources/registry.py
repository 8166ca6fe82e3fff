"""The kinds of sources, and which of them a NetworkTopology's costs come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext, run_together
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import Percentile, Published, Reading, Source, TopologyKey
from controllers.networktopology.sources.configmap import ConfigMaps
from controllers.networktopology.sources.userdefined import UserDefined

SOURCES: Final[tuple[type[Source], ...]] = (ConfigMaps, UserDefined)
"""Kinds of sources. The first that a spec names is read; the last, which every spec names, stands in for it."""


def read_without_following(
    topology: NetworkTopology, places: Places, published: Published, *, kinds: Sequence[type[Source]] = SOURCES
) -> Reading:
    """Return the reading that costs are computed from, without I/O; arguments as of :meth:`~.base.Source.reading`."""
    named = next(kind for kind in kinds if kind.named_by(topology))
    reading = named.reading(topology, places, published)
    return reading if reading.usable else kinds[-1].reading(topology, places, published)


class Sources:
    """The sources of all NetworkTopologies."""

    def __init__(
        self,
        context: ComponentContext,
        *,
        client: ApiClient,
        changed: Callable[[TopologyKey], None],
        percentile: Percentile = "p90",
        kinds: Sequence[type[Source]] = SOURCES,
    ) -> None:
        """Prepare; arguments as of :class:`~.base.Source`, and the kinds of sources."""
        self._sources = [kind(context, client=client, changed=changed, percentile=percentile) for kind in kinds]

    async def read(
        self, key: TopologyKey, topology: NetworkTopology, places: Places
    ) -> tuple[Source, Reading, Reading]:
        """Return the source that the spec names, what it says, and the reading that costs are computed from."""
        named = next(source for source in self._sources if source.named_by(topology))
        for source in self._sources:
            if source is not named:
                source.forget(key)
        reading = await named.read(key, topology, places)
        return named, reading, reading if reading.usable else await self._sources[-1].read(key, topology, places)

    def forget(self, key: TopologyKey) -> None:
        """Stop following whatever is followed for a NetworkTopology."""
        for source in self._sources:
            source.forget(key)

    async def run(self) -> None:
        """Keep all watches going for ever; ends only by cancellation."""
        await run_together(*(source.run() for source in self._sources))
