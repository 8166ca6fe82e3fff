"""Measurements in the upstream ConfigMap that ``spec.configmapName`` names: one key per ordered pair of nodes.

``netperf.p90.latency.milliseconds.origin.<nodeA>.destination.<nodeB>: "0.85"`` says that nine of ten requests from
nodeA to nodeB took at most 0.85 ms. Keys of other percentiles than the one asked for are left alone, as are those of
other metrics.

Each ConfigMap has a watch of its own, for as long as it is named. A watch on all ConfigMaps of the cluster would bring
everybody's configuration into this process; a watch on one name needs no more rights and no more memory. Anybody may
name as many as he likes, so that a namespace has a bounded number of watches.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import ClassVar, Final, NamedTuple

import msgspec

from berth.api.base import read_timestamp
from berth.api.conditions import ConditionUpdate
from berth.api.networktopology import NetworkTopology
from berth.api.text import counted, shortened
from berth.kube.client import ApiClient
from berth.kube.objects import ObjectMeta
from berth.kube.reflector import Reflector
from berth.kube.resources import Resource
from berth.runtime.component import run_together
from berth.runtime.operator import why_not_listed, why_refused
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import (
    REASON_PARTLY_USABLE,
    Measurement,
    Percentile,
    Published,
    Reading,
    Source,
    SourceState,
    Surroundings,
    TopologyKey,
    available,
    left_out,
)
from controllers.networktopology.sources.watches import Watches

KEY_SEPARATOR: Final = ".destination."
"""Between the two node names of a key."""
MAX_MICROSECONDS: Final = 3_600_000_000
"""Largest latency that is believed, one hour; above it, the unit of the value is in doubt."""
MAX_FOLLOWED: Final = 100
"""Most ConfigMaps of one namespace that are followed: each takes a connection and some 300 KiB."""
REFUSAL_SECONDS: Final = 10.0
"""Seconds between two looks whether one that is followed may still be read."""
_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")
_LONGEST_VALUE: Final = 40


def key_prefix(percentile: Percentile) -> str:
    """Return the beginning of the keys that hold latencies."""
    return f"netperf.{percentile}.latency.milliseconds.origin."


class ManagedFields(msgspec.Struct, gc=False):
    """metav1.ManagedFieldsEntry, cut down to when a manager last wrote and which top-level fields it owns."""

    time: str | None = None
    fields: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="fieldsV1")


class SourceMeta(ObjectMeta):
    """metav1.ObjectMeta with the times of the last writes."""

    managed_fields: list[ManagedFields] = msgspec.field(default_factory=list)


class SourceConfigMap(msgspec.Struct, gc=False):
    """corev1.ConfigMap with the times of its last writes."""

    metadata: SourceMeta = msgspec.field(default_factory=SourceMeta)
    data: dict[str, str] = {}

    @property
    def time(self) -> datetime | None:
        """When the data was last written, by whomever; writes of labels and annotations do not make it newer."""
        moments = [entry.time for entry in self.metadata.managed_fields if "f:data" in entry.fields]
        moments.append(self.metadata.creation_timestamp)
        return max(filter(None, (read_timestamp(moment) for moment in moments if moment)), default=None)


SOURCE_CONFIGMAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", SourceConfigMap)
"""ConfigMaps as sources of measurements."""


class ConfigMapRef(NamedTuple):
    """Name of one ConfigMap."""

    namespace: str
    """its namespace"""
    name: str
    """its name"""

    @classmethod
    def of(cls, topology: NetworkTopology) -> ConfigMapRef:
        """Return the one that a spec names."""
        return cls(topology.metadata.namespace, topology.spec.configmap_name)

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def field_selector(self) -> str:
        """Selects it among those of its namespace."""
        return f"metadata.name={self.name}"

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"ConfigMap {self.key}"


class ConfigMaps(Source):
    """The ConfigMaps that NetworkTopologies name, each followed once for all of them."""

    choice: ClassVar[str] = "configmap"

    def __init__(self, around: Surroundings) -> None:
        """Start with none."""
        super().__init__(around)
        self._key_example = f"{key_prefix(self._percentile)}<node>{KEY_SEPARATOR}<node>"
        self._watches = Watches()
        self._followed: dict[ConfigMapRef, _FollowedConfigMap] = {}
        self._followed_in: Counter[str] = Counter()
        self._refs: dict[TopologyKey, ConfigMapRef] = {}
        self._left_out: dict[str, set[TopologyKey]] = {}

    @classmethod
    def named_by(cls, topology: NetworkTopology) -> bool:
        """Return whether ``spec.configmapName`` is set."""
        return bool(topology.spec.configmap_name)

    @classmethod
    def reading(cls, topology: NetworkTopology, places: Places, published: Published) -> Reading:
        """Return the measurements in the ConfigMap that the spec names."""
        ref = ConfigMapRef.of(topology)
        data = published.configmaps.get(ref.key)
        if data is None:
            return Reading(SourceState.MISSING, str(ref))
        return parse(data, name=str(ref), nodes=places.nodes, percentile=published.percentile)

    async def read(self, key: TopologyKey, topology: NetworkTopology, places: Places) -> Reading:
        """Return the measurements in the ConfigMap that the spec names, and follow it."""
        ref = ConfigMapRef.of(topology)
        followed = self._follow(key, ref)
        if followed is None:
            return Reading(SourceState.LEFT_OUT, str(ref))
        if not followed.reflector.synced.is_set():
            detail = await why_not_listed(
                self._client, SOURCE_CONFIGMAPS, namespace=ref.namespace, field_selector=ref.field_selector
            )
            return Reading(SourceState.FAILED if detail else SourceState.PENDING, str(ref), detail=detail or "")
        content = next(iter(followed.reflector.objects.values()), None)
        if content is None:
            reading = self.reading(topology, places, Published())
        else:
            # In a thread, as a full ConfigMap has thousands of keys.
            published = Published({ref.key: content.data}, self._percentile)
            reading = await asyncio.to_thread(self.reading, topology, places, published)
            reading = replace(reading, time=content.time) if reading.usable else reading
        refusal = followed.reflector.refusal
        return reading if refusal is None else replace(reading, detail=why_refused(SOURCE_CONFIGMAPS, refusal))

    def availability(self, reading: Reading, instead: str) -> ConditionUpdate:
        """Return the condition SourceAvailable of a spec that names a ConfigMap."""
        match reading.state:
            case SourceState.READ | SourceState.EMPTY | SourceState.MISSING if reading.detail:
                text = f"{reading.name} is not followed: {reading.detail}; until then it counts as it was last"
                return available(False, "ConfigMapUnreadable", text)
            case SourceState.MISSING:
                remedy = f"create it with keys {self._key_example}, or correct spec.configmapName"
                return available(False, "ConfigMapNotFound", f"{reading.name} does not exist; {remedy}; {instead}")
            case SourceState.LEFT_OUT:
                text = f"{reading.name} is not read: NetworkTopologies of this namespace name {MAX_FOLLOWED} others"
                return available(False, "TooManyConfigMaps", f"{text}; name fewer; {instead}")
            case SourceState.EMPTY:
                text = f"{reading.name} has no usable measurement under a key {self._key_example}; {instead}"
                return available(False, "NoUsableMeasurements", f"{text}{_unusable(reading)}")
            case SourceState.READ:
                reason = REASON_PARTLY_USABLE if _unusable(reading) else "MeasurementsRead"
                text = f"{reading.name}: {counted(len(reading.measurements), 'measurement')}{_unusable(reading)}"
                return available(True, reason, text)
            case _:
                text = f"{reading.name} cannot be read: {reading.detail}; the computed weights stay as they are"
                return available(False, "ConfigMapUnreadable", text)

    def forget(self, key: TopologyKey) -> None:
        """Stop following the ConfigMap that ``key`` named, unless another NetworkTopology names it too."""
        self._left_out.get(key.namespace, set()).discard(key)
        ref = self._refs.pop(key, None)
        if ref is None:
            return
        followed = self._followed[ref]
        followed.named_by.discard(key)
        if not followed.named_by:
            del self._followed[ref]
            self._followed_in.subtract([ref.namespace])
            self._followed_in += Counter()  # without those that have none left
            followed.task.cancel()
            for waiting in self._left_out.pop(ref.namespace, ()):
                self._changed(waiting)

    async def run(self) -> None:
        """Keep the watches going for ever."""
        await self._watches.run()

    def _follow(self, key: TopologyKey, ref: ConfigMapRef) -> _FollowedConfigMap | None:
        if self._refs.get(key) != ref:
            self.forget(key)
        followed = self._followed.get(ref)
        if followed is None:
            if self._followed_in[ref.namespace] == MAX_FOLLOWED:
                self._left_out.setdefault(ref.namespace, set()).add(key)
                return None
            followed = self._followed[ref] = _FollowedConfigMap(self._client, ref, self._changed, self._watches)
            self._followed_in[ref.namespace] += 1
        followed.named_by.add(key)
        self._refs[key] = ref
        return followed


class _FollowedConfigMap:
    """One ConfigMap with its watch."""

    def __init__(
        self, client: ApiClient, ref: ConfigMapRef, changed: Callable[[TopologyKey], None], watches: Watches
    ) -> None:
        self.named_by: set[TopologyKey] = set()
        self.reflector: Reflector[SourceConfigMap] = Reflector(
            client, SOURCE_CONFIGMAPS, namespace=ref.namespace, field_selector=ref.field_selector
        )
        self.reflector.add_handler(self._object_changed)
        self._changed = changed
        self.task = watches.start(self._run())

    async def _run(self) -> None:
        await run_together(self.reflector.run(), self._tell_when_synced(), self._tell_of_refusals())

    async def _tell_when_synced(self) -> None:
        await self.reflector.synced.wait()
        self._tell()

    async def _tell_of_refusals(self) -> None:
        """Tell when the right to read it goes or comes, of which there is no event."""
        told = False
        while True:
            await asyncio.sleep(REFUSAL_SECONDS)
            refused = self.reflector.refusal is not None
            if refused is not told:
                told = refused
                self._tell()

    def _object_changed(self, old: SourceConfigMap | None, new: SourceConfigMap | None) -> None:
        if new is None or old is None or new.data != old.data:
            self._tell()

    def _tell(self) -> None:
        for key in self.named_by:
            self._changed(key)


def _unusable(reading: Reading) -> str:
    """Say which entries cannot be used, and why; empty when all can."""
    return left_out(
        reading,
        malformed='the value is not a number of milliseconds such as "0.85"',
        unknown="no such node exists (remove the key or correct the name)",
    )


def parse(data: Mapping[str, str], *, name: str, nodes: Collection[str], percentile: Percentile = "p90") -> Reading:
    """Return what a ConfigMap's data says.

    A value that is no number of milliseconds is reported and gives no sample: unknown, never 0.

    Args:
        data: the ConfigMap's ``data``.
        name: the ConfigMap for people.
        nodes: names of the cluster's nodes.
        percentile: of the latencies; keys of others are left alone.
    """
    prefix = key_prefix(percentile)
    measurements: list[Measurement] = []
    malformed: list[str] = []
    unknown: list[str] = []
    for key in sorted(data):
        if not key.startswith(prefix):
            continue
        pair = split_key(key, nodes, prefix=prefix)
        if pair is None:
            malformed.append(f"{key} names no destination")
            continue
        value = parse_microseconds(data[key])
        if value is None:
            malformed.append(f"{key} is {shortened(data[key], _LONGEST_VALUE)!r}")
            continue
        if pair[0] not in nodes or pair[1] not in nodes:
            unknown.append(key)
            continue
        measurements.append(Measurement(*pair, value))
    return Reading(
        state=SourceState.READ if measurements else SourceState.EMPTY,
        name=name,
        measurements=tuple(measurements),
        malformed=tuple(malformed),
        unknown_nodes=tuple(unknown),
    )


def split_key(key: str, nodes: Collection[str], *, prefix: str) -> tuple[str, str] | None:
    """Return (origin, destination) of a key, or None when it names no two nodes.

    A node's name may itself contain ``.destination.``; the split that yields two known nodes wins, otherwise the
    first one.
    """
    rest = key[len(prefix) :]
    origin, separator, destination = rest.partition(KEY_SEPARATOR)
    if not separator or KEY_SEPARATOR not in rest[len(origin) + 1 :]:
        return (origin, destination) if origin and destination else None
    candidates: list[tuple[str, str]] = []
    start = rest.find(KEY_SEPARATOR)
    while start >= 0:
        candidates.append((rest[:start], rest[start + len(KEY_SEPARATOR) :]))
        start = rest.find(KEY_SEPARATOR, start + 1)
    candidates = [pair for pair in candidates if pair[0] and pair[1]]
    known = [pair for pair in candidates if pair[0] in nodes and pair[1] in nodes]
    return next(iter(known or candidates), None)


def parse_microseconds(text: str) -> int | None:
    """Return the latency that ``text`` states in milliseconds, rounded up.

    None for anything but a decimal number from 0 to one hour.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return None
    whole, _, fraction = text.partition(".")
    value = -(int(whole + fraction) * 1000 // -(10 ** len(fraction)))
    return value if value <= MAX_MICROSECONDS else None
