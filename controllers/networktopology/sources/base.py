"""What a source of costs is, and what every source gives: a :class:`Reading` at one moment."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias

from berth.api.conditions import ConditionUpdate
from berth.api.networktopology import CONDITION_SOURCE_AVAILABLE, NetworkTopology
from berth.api.text import listed
from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext
from controllers.networktopology.aggregation import Pair
from controllers.networktopology.graph import CostGraph
from controllers.networktopology.places import Places
from controllers.networktopology.sources.prometheus_server import PrometheusServer

if TYPE_CHECKING:
    from berth.kube.probe_reports import Report
    from controllers.networktopology.sources.coverage import Coverage

UNREACHABLE: Final = 2**62
"""Latency, in microseconds, of what answers nothing."""
REASON_CLOCKS_DIFFER: Final = "ClocksDiffer"
"""Reason of SourceAvailable when the clock of this process is not that of the measurements; an Event warns of it."""
REASON_PARTLY_USABLE: Final = "SomeMeasurementsUnusable"
"""Reason of SourceAvailable when it is True but not all of the source can be used; an Event warns of it."""

Percentile: TypeAlias = Literal["p50", "p90", "p99"]
"""Percentiles of latencies that sources publish."""

ConfigMapData: TypeAlias = Mapping[str, Mapping[str, str]]
"""``data`` of ConfigMaps by ``namespace/name``."""


class TopologyKey(NamedTuple):
    """Which NetworkTopology."""

    namespace: str
    """its namespace"""
    name: str
    """its name"""

    def __str__(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Published:
    """What there is to read besides a NetworkTopology and the nodes, and what of it is wanted."""

    configmaps: ConfigMapData = field(default_factory=dict)
    """those that exist, at least those that the NetworkTopology names"""
    percentile: Percentile = "p90"
    """percentile of the latencies; no other stands in for it"""
    reports: Sequence[Report] = ()
    """ProbeReports as they were at `now`"""
    now: datetime | None = None
    """when what there is was read; None where it has no age"""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What people may set of sources."""

    percentile: Percentile = "p90"
    """percentile of the latencies that are read"""
    prometheus: PrometheusServer | None = None
    """server that has latencies, if any"""


DEFAULT_SETTINGS: Final = SourceSettings()
"""Nothing set."""


class Measurement(NamedTuple):
    """One sample of the network latency between two nodes, in one direction."""

    origin: str
    """node that sent"""
    destination: str
    """node that was reached"""
    microseconds: int
    """latency, 0 or more, or :data:`UNREACHABLE`"""
    age: float = 0.0
    """seconds since it was made, where the source says"""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies between places of one level."""

    known: dict[Pair, int]
    """ordered pair of places to microseconds"""
    cut: frozenset[Pair] = frozenset()
    """pairs that were measured and do not reach each other, so that no path stands in for them"""


class LatenciesByLevel(NamedTuple):
    """Latencies between places of every level."""

    regions: Latencies
    """between regions"""
    zones: Latencies
    """between zones"""
    segments: Latencies = Latencies({})
    """between segments of one zone"""


@dataclass(frozen=True, slots=True)
class StatedCosts:
    """Costs between places, as people stated them."""

    regions: CostGraph
    """links between regions"""
    zones: CostGraph
    """links between zones, also across regions where people stated such"""
    segments: CostGraph
    """links between segments"""
    count: int
    """number of stated costs"""


class SourceState(Enum):
    """Whether a source can be read."""

    PENDING = "Pending"
    """not read yet; nothing may be concluded from it"""
    FAILED = "Failed"
    """reading failed; nothing may be concluded from it"""
    MISSING = "Missing"
    """it does not exist"""
    LEFT_OUT = "LeftOut"
    """others of its namespace are read instead, of which there are too many"""
    EMPTY = "Empty"
    """it exists and has no usable sample"""
    TOO_FEW = "TooFew"
    """it has samples, of too little of the cluster to begin with"""
    READ = "Read"
    """it has samples"""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source says at one moment: measurements between nodes or stated costs."""

    state: SourceState
    """whether it can be read"""
    name: str
    """the source for people, e.g. ``ConfigMap default/netperf``"""
    measurements: tuple[Measurement, ...] = ()
    """usable samples, in a fixed order"""
    latencies: LatenciesByLevel | None = None
    """those between places, of a source that works them out itself"""
    continuous: bool = False
    """whether it measures all the time, so that small changes are not news"""
    coverage: Coverage | None = None
    """what of the cluster is measured, of a source that is not used until it is enough"""
    stated: StatedCosts | None = None
    """costs between places, of a source that does not measure"""
    time: datetime | None = None
    """when the newest sample was published, None when the source does not say"""
    malformed: tuple[str, ...] = ()
    """one phrase per entry that could not be read: where, what was found"""
    unknown_nodes: tuple[str, ...] = ()
    """entries that name nodes which the cluster does not have"""
    stale: int = 0
    """samples that are too old"""
    mistimed: int = 0
    """samples of a time that cannot be by the clock of this process; they are malformed too"""
    distrusted: frozenset[str] = frozenset()
    """nodes whose clock is wrong, so that nothing counts that they report"""
    clock_error: float = 0.0
    """seconds by which the clock of this process is ahead of the one that their ages are by, where that is another"""
    detail: str = ""
    """why reading failed"""

    @property
    def settled(self) -> bool:
        """Whether conclusions may be drawn; False while the source is unread or unreadable."""
        return self.state not in (SourceState.PENDING, SourceState.FAILED)

    @property
    def usable(self) -> bool:
        """Whether costs can be computed from it."""
        return self.state is SourceState.READ


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every source is given."""

    context: ComponentContext
    """what the process provides, e.g. for health checks of the source's watches"""
    client: ApiClient
    """open API client"""
    changed: Callable[[TopologyKey], None]
    """to be called with every NetworkTopology for which the source has changed"""
    settings: SourceSettings = DEFAULT_SETTINGS
    """what people set of sources"""


class Source(ABC):
    """One kind of source: how it is named, read and followed, and what is said about it.

    A subclass is registered in :data:`controllers.networktopology.sources.registry.SOURCES`. What needs no API server
    are class methods, so that ``berth plan`` reads every source as the controller does.
    """

    choice: ClassVar[str] = ""
    """value of the annotation :data:`~berth.api.networktopology.ANNOTATION_SOURCE` that chooses it"""
    automatic: ClassVar[bool] = False
    """whether it is used where it exists, although nobody named it, and passed over where it does not"""

    def __init__(self, around: Surroundings) -> None:
        """Prepare."""
        self._context = around.context
        self._client = around.client
        self._changed = around.changed
        self._percentile = around.settings.percentile

    @classmethod
    @abstractmethod
    def named_by(cls, topology: NetworkTopology) -> bool:
        """Return whether the spec of a NetworkTopology names this kind of source."""

    @classmethod
    @abstractmethod
    def reading(cls, topology: NetworkTopology, places: Places, published: Published) -> Reading:
        """Return what the source says, without I/O.

        Args:
            topology: a NetworkTopology that names it.
            places: where the nodes are.
            published: what there is to read.
        """

    async def read(self, key: TopologyKey, topology: NetworkTopology, places: Places) -> Reading:  # noqa: ARG002
        """Return what the source says now, and follow it for ``key`` from now on.

        A source that says nothing beyond the NetworkTopology needs no more than this; others wait for what they
        follow and hand it to :meth:`reading`.
        """
        return self.reading(topology, places, Published())

    @abstractmethod
    def availability(self, reading: Reading, instead: str) -> ConditionUpdate:
        """Return the condition SourceAvailable.

        Args:
            reading: what :meth:`read` returned; never one that is pending.
            instead: for messages, what costs come from while the source has none.
        """

    def forget(self, key: TopologyKey) -> None:  # noqa: B027 - most sources hold nothing for a single key
        """Stop following for a NetworkTopology that is gone or does not name this kind of source any more."""

    async def run(self) -> None:
        """Keep the watches going for ever; ends only by cancellation."""
        await asyncio.Event().wait()


def left_out(reading: Reading, *, malformed: str, unknown: str) -> str:
    """Say what does not count, and why, each phrase once; empty when all does.

    Args:
        reading: what a source says.
        malformed: what is wrong with the entries that could not be read.
        unknown: what is wrong with those of nodes or places that the cluster does not have.
    """
    reasons = ((malformed, reading.malformed), (unknown, reading.unknown_nodes))
    return "".join(
        f". Not used because {reason}: {listed(list(dict.fromkeys(entries)))}" for reason, entries in reasons if entries
    )


class LeftOut:
    """What is said of the entries that do not count, put into words once for all NetworkTopologies.

    A server of many clusters names hundreds of thousands of nodes of others: whoever works out a reading in a thread
    has its words found there too.
    """

    def __init__(self, *, malformed: str, unknown: str) -> None:
        """Prepare; arguments as of :func:`left_out`."""
        self._reasons = malformed, unknown
        self._told: tuple[tuple[str, ...], tuple[str, ...], str] = ((), (), "")

    def text(self, reading: Reading) -> str:
        """Return it, empty when all counts; at once for a reading with the same entries as the last."""
        malformed, unknown, text = self._told
        if malformed is not reading.malformed or unknown is not reading.unknown_nodes:
            text = left_out(reading, malformed=self._reasons[0], unknown=self._reasons[1])
            self._told = reading.malformed, reading.unknown_nodes, text
        return text


def available(holds: bool, reason: str, message: str) -> ConditionUpdate:
    """Return the condition SourceAvailable."""
    return ConditionUpdate(CONDITION_SOURCE_AVAILABLE, holds, reason, message)
