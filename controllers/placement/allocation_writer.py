"""Writes into NetworkTopologies what placed calls take of their links: what is placed, summed up anew each time.

It stands in a weight set of its own, by server-side apply, so that it is nobody else's. Lists of costs are atomic:
whoever wrote a field into a set of other people would own their list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

import msgspec
import structlog

from berth.api.errors import InvalidObjectError
from berth.api.labels import LABEL_SEGMENT, WEIGHTS_ALLOCATED
from berth.api.networktopology import API_VERSION, KIND, NetworkTopology
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.custom_object import decoded
from berth.kube.errors import ApiError
from berth.kube.meta import ObjectMeta
from berth.kube.objects import CustomObject
from berth.kube.resources import NETWORK_TOPOLOGIES
from berth.network.link_budgets import PlacePair, read_budgets, taken
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import PlacementConfiguration
from controllers.placement.link_usage import (
    FIELD_MANAGER,
    WRITE_SECONDS,
    Usage,
    read_usage,
    seconds_between,
    shown,
    weight_sets,
)
from controllers.placement.metrics import ALLOCATION_WRITES

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 5.0
"""Seconds between two looks."""
SHARE: Final = 0.1
"""Part of the time that reading changed NetworkTopologies takes at the most: tenants may edit large ones all day."""
RECOUNT_SECONDS: Final = 60.0
"""Seconds for which nothing is written while calls that are routed otherwise are counted anew: sums that are half old
and half new are nobody's. Not for longer, since a tenant with thousands of AppGroups may edit a Service all day."""
PAUSE: Final = 0.2
"""Seconds after each write: one pod that is placed concerns the NetworkTopologies of all namespaces."""


class _Written(msgspec.Struct):
    metadata: ObjectMeta


@dataclass(slots=True)
class _Known:
    """A NetworkTopology as it was read, or written, last."""

    uid: str
    generation: int
    budgets: Usage
    """what its links may carry; nothing where it states no capacity"""
    says: Mapping[PlacePair, int] | None
    """what it says is taken; None where that is not in our form"""
    time: float = float("-inf")
    """when it was written, or a write failed, on the cache's clock"""


@dataclass(slots=True)
class AllocationWriter:
    """Keeps bandwidthAllocated of all NetworkTopologies that state a bandwidthCapacity."""

    client: ApiClient
    """open API client"""
    cache: Cache
    """the cluster, and what placed calls take"""
    configuration: PlacementConfiguration
    """whose weight sets state capacities"""
    idle: Callable[[], Awaitable[None]]
    """waits until the cache belongs to the event loop"""
    synced: Callable[[], Awaitable[None]]
    """waits until the cache has seen the cluster: half of its pods take half of the links"""
    _known: dict[tuple[str, str], _Known] = field(default_factory=dict)
    _recounted_since: float | None = None
    """when sums were first found to be half counted, on the cache's clock; None while they are whole"""

    async def run(self) -> None:
        """Follow changes until cancelled."""
        await self.synced()
        while True:
            try:
                await self.refresh()
            except Exception:
                # Placement must go on, and the next look starts from what is there.
                log.exception("allocated bandwidth not written")
            await asyncio.sleep(LOOK_SECONDS)

    async def refresh(self) -> None:
        """Look at all NetworkTopologies once, and write what differs and is due."""
        await self.idle()
        if self._half_counted():
            return
        objects = {(obj.metadata.namespace, obj.metadata.name): obj for obj in self.cache.topologies.objects()}
        # Both before others may have the cache again: they have to fit each other.
        usage, segments = taken(self.cache.bandwidth().places), self.cache.state.segments_count
        self._known = {key: known for key, known in self._known.items() if key in objects}
        for key, obj in objects.items():
            known = await self._read(key, obj)
            now = shown(_counted(known.budgets, segments=segments), usage)
            between = WRITE_SECONDS if known.says is None else seconds_between(known.budgets, known.says, now)
            if between is not None and self.cache.clock() - known.time >= between:
                await self._write(obj, known, now)

    def _half_counted(self) -> bool:
        """Whether to wait for sums that are whole."""
        if not self.cache.bandwidth().behind:
            self._recounted_since = None
            return False
        now = self.cache.clock()
        if self._recounted_since is None:
            self._recounted_since = now
        return now - self._recounted_since < RECOUNT_SECONDS

    async def _read(self, key: tuple[str, str], obj: CustomObject) -> _Known:
        """What is known of an object; it is read where its spec is another one."""
        known, meta = self._known.get(key), obj.metadata
        if known is not None and known.uid == meta.uid and self._holds(known, meta.generation):
            return known
        began = perf_counter()
        # In a thread: that of a megabyte must not hold up watches and the renewal of the Lease.
        budgets, says = await asyncio.to_thread(self._stated, obj)
        time = known.time if known is not None and known.uid == meta.uid else float("-inf")
        found = self._known[key] = _Known(meta.uid, meta.generation, budgets, says, time)
        await asyncio.sleep((perf_counter() - began) * (1 / SHARE - 1))
        return found

    def _holds(self, known: _Known, generation: int) -> bool:
        """Whether what is known of an object is that of its generation, or of our write that the watch has yet to show.

        One that has not been shown for long is not there any more: etcd was restored from a backup.
        """
        ahead = known.generation > generation and self.cache.clock() - known.time < WRITE_SECONDS
        return ahead or known.generation == generation

    def _stated(self, obj: CustomObject) -> tuple[Usage, Mapping[PlacePair, int] | None]:
        names = [name for profile in self.configuration.profiles for name in profile.weight_sets]
        try:
            topology = NetworkTopology.parse(obj.document(api_version=API_VERSION, kind=KIND))
        except InvalidObjectError:
            return {}, {}
        if all(item.name == WEIGHTS_ALLOCATED for item in topology.spec.weights):
            return {}, {}  # an apply of nothing would remove the whole list, which must be there
        budgets = read_budgets(topology, tuple(dict.fromkeys(names)))
        return budgets, read_usage(decoded(obj.spec).get("weights") or [], budgets)

    async def _write(self, obj: CustomObject, known: _Known, usage: Mapping[PlacePair, int]) -> None:
        """Apply what is taken; a set of ours that has nothing to say any more goes."""
        meta = obj.metadata
        body: dict[str, Any] = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            # The uid keeps it from creating an object that was deleted meanwhile.
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "spec": {"weights": weight_sets(known.budgets, usage)},
        }
        known.time = self.cache.clock()
        try:
            answer = await self.client.apply(
                NETWORK_TOPOLOGIES, meta.name, body, field_manager=FIELD_MANAGER, namespace=meta.namespace
            )
            # What a proxy answers in the API server's place has written nothing.
            generation = msgspec.json.decode(answer, type=_Written).metadata.generation
        except (ApiError, *TRANSPORT_ERRORS, msgspec.DecodeError) as error:
            ALLOCATION_WRITES.labels("failed").inc()
            if not (isinstance(error, ApiError) and (error.not_found or error.conflict)):
                name = f"{meta.namespace}/{meta.name}"
                log.warning("allocated bandwidth not written", topology=name, error=str(error) or repr(error))
        else:
            ALLOCATION_WRITES.labels("written").inc()
            known.says = usage
            if generation == known.generation + 1:
                known.generation = generation  # our own write is no news
        await asyncio.sleep(PAUSE)


def _counted(budgets: Usage, *, segments: bool) -> Usage:
    """Those budgets that calls are counted for: what is taken of others is not known, and not 0."""
    if segments:
        return budgets
    return {pair: amount for pair, amount in budgets.items() if pair.topology_key != LABEL_SEGMENT}
