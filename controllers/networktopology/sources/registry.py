"""The kinds of sources, and which of them a NetworkTopology's costs come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from berth.api.errors import FieldProblem
from berth.api.networktopology import ANNOTATION_SOURCE, NetworkTopology
from berth.api.text import shortened
from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext, run_together
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import (
    DEFAULT_SETTINGS,
    Published,
    Reading,
    Source,
    SourceSettings,
    SourceState,
    Surroundings,
    TopologyKey,
)
from controllers.networktopology.sources.configmap import ConfigMaps
from controllers.networktopology.sources.probereports import ProbeReports
from controllers.networktopology.sources.prometheus import Prometheus
from controllers.networktopology.sources.userdefined import UserDefined

SOURCES: Final[tuple[type[Source], ...]] = (ProbeReports, Prometheus, ConfigMaps, UserDefined)
"""Kinds of sources by preference; the last, which every NetworkTopology has, stands in for the others."""

_LONGEST_VALUE: Final = 40
K = TypeVar("K", Source, type[Source])


def candidates(topology: NetworkTopology, kinds: Sequence[K]) -> list[K]:
    """Return the sources that a NetworkTopology may have its costs from, by preference.

    The annotation :data:`~berth.api.networktopology.ANNOTATION_SOURCE` chooses one, and the last stands in for it.
    """
    choice = topology.metadata.annotations.get(ANNOTATION_SOURCE, "")
    chosen = choice in _choices(kinds)
    return [
        kind
        for kind in kinds
        if kind is kinds[-1] or (kind.named_by(topology) and (not chosen or kind.choice == choice))
    ]


def choice_problems(topology: NetworkTopology) -> list[FieldProblem]:
    """Return what is wrong with the annotation, which then counts as unset."""
    choice = topology.metadata.annotations.get(ANNOTATION_SOURCE, "")
    known = _choices(SOURCES)
    if not choice or choice in known:
        return []
    text = f"no such source: {shortened(choice, _LONGEST_VALUE)!r}; choose from {', '.join(known)}"
    return [FieldProblem(("metadata", "annotations", ANNOTATION_SOURCE), text)]


def read_without_following(
    topology: NetworkTopology, places: Places, published: Published, *, kinds: Sequence[type[Source]] = SOURCES
) -> Reading:
    """Return the reading that costs are computed from, without I/O; arguments as of :meth:`~.base.Source.reading`."""
    readings = (kind.reading(topology, places, published) for kind in candidates(topology, kinds))
    reading = next(readings)
    while not reading.usable and (following := next(readings, None)) is not None:
        reading = following
    return reading


class Chosen(NamedTuple):
    """Where the costs of a NetworkTopology come from."""

    told: Source
    """source that should give them; its condition is shown"""
    reading: Reading
    """what that source says"""
    basis: Reading
    """reading that costs are computed from"""
    choice: str
    """name of the source of that reading, as the annotation has it; empty if it gives no costs"""


class Sources:
    """The sources of all NetworkTopologies."""

    def __init__(
        self,
        context: ComponentContext,
        *,
        client: ApiClient,
        changed: Callable[[TopologyKey], None],
        settings: SourceSettings = DEFAULT_SETTINGS,
        kinds: Sequence[type[Source]] = SOURCES,
    ) -> None:
        """Prepare; arguments as of :class:`~.base.Surroundings`, and the kinds of sources."""
        around = Surroundings(context, client, changed, settings)
        self._sources = [kind(around) for kind in kinds]

    async def read(self, key: TopologyKey, topology: NetworkTopology, places: Places) -> Chosen:
        """Return where the costs come from.

        What is pending or failed is told and basis alike: nothing may be concluded from what would stand in for it.
        """
        chain = candidates(topology, self._sources)
        read: list[tuple[Source, Reading]] = []
        for source in self._sources:
            if source not in chain or (read and (read[-1][1].usable or not read[-1][1].settled)):
                source.forget(key)
            else:
                read.append((source, await source.read(key, topology, places)))
        *before, last = read
        told = next((item for item in before if not _passed_over(*item, topology)), last)
        source, reading = told if last[1].settled else last
        return Chosen(source, reading, last[1], last[0].choice if last[1].usable else "")

    def forget(self, key: TopologyKey) -> None:
        """Stop following whatever is followed for a NetworkTopology."""
        for source in self._sources:
            source.forget(key)

    async def run(self) -> None:
        """Keep all watches going for ever; ends only by cancellation."""
        await run_together(*(source.run() for source in self._sources))


def _choices(kinds: Sequence[K]) -> list[str]:
    return [kind.choice for kind in kinds if kind.choice]


def _passed_over(source: Source, reading: Reading, topology: NetworkTopology) -> bool:
    """Return whether a source is of no interest: it is not there and nobody asked for it."""
    chosen = topology.metadata.annotations.get(ANNOTATION_SOURCE) == source.choice
    return source.automatic and not chosen and reading.state is SourceState.MISSING
