"""Brings one NetworkTopology up to date: read it, compute, write what differs.

Every pass starts from the object as the API server has it and from the sources as they are now, and depends on
nothing that earlier passes left in memory, but for how long ago they wrote. A process that dies between any two steps
is therefore continued by the next pass, and a pass that finds everything right writes nothing.

People are told by conditions and Events, which are bounded by namespace. A log line for each edit of somebody's object
would fill a disk, so that the log has these for debugging alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import structlog

from berth.api.checks import topology_problems
from berth.api.conditions import ConditionUpdate
from berth.api.errors import InvalidObjectError
from berth.api.networktopology import CONDITION_WEIGHTS_COMPUTED, NetworkTopology, NetworkTopologyStatus
from berth.kube.client import ApiClient
from berth.kube.decoding import ObjectDecoder
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder, Reference
from berth.kube.resources import NETWORK_TOPOLOGIES
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from controllers.networktopology import events, metrics, write_pacing
from controllers.networktopology.compute import Computation, compute
from controllers.networktopology.conditions import CONDITIONS, complete, weights_computed
from controllers.networktopology.nodes import NodeWatch
from controllers.networktopology.object_room import fitted
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import LatenciesByLevel, Reading, SourceState, TopologyKey
from controllers.networktopology.sources.registry import Sources, choice_problems
from controllers.networktopology.status import next_status
from controllers.networktopology.weights import FIELD_MANAGER, needs_write, ownership, status_time, without_computed
from controllers.networktopology.write_times import WriteTimes

log = structlog.get_logger(__name__)

PENDING_DELAY: Final = 1.0
"""Seconds until a source that has not been read yet is looked at again."""
UNREADABLE_DELAY: Final = 10.0
"""Seconds until a source that could not be read is looked at again; it announces itself when it can be read."""
AGING_DELAY: Final = 60.0
"""Seconds until measurements that were never made anew are looked at again."""
REFUSED_DELAY: Final = 60.0
"""Seconds until a write that the API server refused is tried again."""


@dataclass(slots=True)
class _Pass:
    """One pass: its object as it was read, or written last."""

    key: TopologyKey
    raw: dict[str, Any]
    status: NetworkTopologyStatus
    places: Places
    generation: int = field(init=False)
    """generation of the object that the pass is about: as it was read, or with nothing but our own weights new in it"""

    def __post_init__(self) -> None:
        """Begin with the object as it was read."""
        self.generation = self.present

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata as the API server has it."""
        found: dict[str, Any] = self.raw["metadata"]
        return found

    @property
    def present(self) -> int:
        """Generation of the object as the API server has it."""
        return int(self.metadata.get("generation", 0))

    @property
    def weights(self) -> list[dict[str, Any]]:
        """``spec.weights`` as it is now."""
        return list((self.raw.get("spec") or {}).get("weights") or [])

    def applied(self, **fields: Any) -> dict[str, Any]:
        """Return the body of an apply; its uid keeps it from creating an object that was deleted meanwhile."""
        return {
            "apiVersion": NETWORK_TOPOLOGIES.api_version,
            "kind": NETWORK_TOPOLOGIES.kind,
            "metadata": {name: self.metadata[name] for name in ("name", "namespace", "uid")},
            **fields,
        }


@dataclass(frozen=True, slots=True)
class _Shared:
    """What was computed last from latencies that a source works out once for all."""

    latencies: LatenciesByLevel
    places: Places
    computation: Computation


class Reconciler:
    """Does the passes."""

    def __init__(
        self,
        *,
        client: ApiClient,
        recorder: EventRecorder,
        nodes: NodeWatch,
        sources: Sources,
        queue: WorkQueue[TopologyKey],
        versions: SeenVersions[TopologyKey],
        algorithm: str,
        cost_unit: int,
    ) -> None:
        """Prepare.

        Args:
            client: open API client.
            recorder: running event recorder.
            nodes: where nodes are.
            sources: where costs come from.
            queue: for further passes after some time.
            versions: which versions events have shown.
            algorithm: path algorithm, whose name is that of its weight set.
            cost_unit: microseconds of latency that cost 1.
        """
        self._client = client
        self._recorder = recorder
        self._nodes = nodes
        self._sources = sources
        self._queue = queue
        self._versions = versions
        self._compute = partial(compute, algorithm=algorithm, cost_unit=cost_unit)
        self._shared: _Shared | None = None
        self._one_at_a_time = asyncio.Lock()
        self._weights_written: WriteTimes[TopologyKey] = WriteTimes()
        self._status_written: WriteTimes[TopologyKey] = WriteTimes()

    async def reconcile(self, key: TopologyKey) -> bool:
        """Bring a NetworkTopology up to date and return whether it exists.

        Raises:
            ApiError, aiohttp.ClientError, OSError: try again later.
        """
        exists = False
        with metrics.RECONCILE_SECONDS.time():
            try:
                raw = await self._client.get(
                    NETWORK_TOPOLOGIES.raw, key.name, namespace=key.namespace, not_older_than=self._versions.of(key)
                )
                if not raw["metadata"].get("deletionTimestamp"):
                    await self._reconcile(key, raw)
                    exists = True
            except ApiError as error:
                self._versions.forget(key)
                if not error.says_gone(NETWORK_TOPOLOGIES.plural, key.name):
                    raise
        if not exists:
            self._sources.forget(key)
            self._weights_written.forget(key)
            self._status_written.forget(key)
            metrics.forget(key)
        return exists

    async def _reconcile(self, key: TopologyKey, raw: dict[str, Any]) -> None:
        try:
            topology = NetworkTopology.parse(without_computed(raw))
        except InvalidObjectError as error:
            await self._report_invalid(key, raw, error)
            return
        places = self._nodes.places
        this = _Pass(key, raw, topology.status, places)
        source, reading, basis, choice = await self._sources.read(key, topology, places)
        if not reading.settled:
            self._queue.add(key, delay=PENDING_DELAY if reading.state is SourceState.PENDING else UNREADABLE_DELAY)
            if reading.state is SourceState.FAILED:
                status, update = this.status, source.availability(reading, "")
                await self._write_status(this, [update], data_time=status.data_time, source=status.source, paced=True)
            return
        # In a thread, as the computation: what there is room for is known once all of it is JSON.
        computation, wanted = await asyncio.to_thread(fitted, await self._computed(basis, places), raw)
        metrics.measure(
            key,
            measurements=len(reading.measurements),
            unusable=len(reading.malformed) + len(reading.unknown_nodes),
            stale=reading.stale,
            missing={
                "region": len(computation.missing_regions),
                "zone": len(computation.missing_zones),
                "segment": len(computation.cut_segments),
            },
        )
        computed = weights_computed(computation)
        try:
            await self._write_weights(this, wanted, computed, paced=basis.continuous)
        except ApiError as error:
            if error.not_found or error.conflict or error.retryable:
                raise
            computed = self._refused(this, error)
        instead = f"costs come from {computation.basis}" if computation.basis else "there are no costs"
        available = source.availability(reading, f"until then {instead}")
        whole = complete(computation, places, [*choice_problems(topology), *topology_problems(topology.spec)])
        measured = basis.time
        if basis.continuous:
            # Measurements grow old without an event.
            self._queue.add(key, delay=AGING_DELAY)
            measured = write_pacing.data_time(this.status.data_time, measured)
        updates = [available, computed, whole]
        await self._write_status(
            this, updates, data_time=measured, source=choice, paced=reading.continuous or basis.continuous
        )

    async def _computed(self, basis: Reading, places: Places) -> Computation:
        """Return what follows from a reading, worked out once for all whose costs come from the same latencies."""
        if basis.latencies is None:
            return await self._compute_in_thread(basis, places)
        async with self._one_at_a_time:
            shared = self._shared
            if shared is None or shared.latencies is not basis.latencies or shared.places is not places:
                computation = await self._compute_in_thread(basis, places)
                shared = self._shared = _Shared(basis.latencies, places, computation)
            return shared.computation

    async def _compute_in_thread(self, basis: Reading, places: Places) -> Computation:
        with metrics.COMPUTE_SECONDS.time():
            # In a thread: a large topology must not hold up watches and the renewal of the Lease.
            return await asyncio.to_thread(self._compute, basis, places)

    async def _write_weights(
        self, this: _Pass, wanted: list[dict[str, Any]], computed: ConditionUpdate, *, paced: bool
    ) -> None:
        """Apply the computed sets if the object has others, and if so now where they are written at a pace."""
        ours = ownership(this.metadata.get("managedFields", ()))
        owned = ours.names
        now = self._weights_written.present(this.key, ours.time)
        if not needs_write(this.weights, wanted, owned):
            return
        wait = write_pacing.seconds_until_write(this.weights, wanted, ours, now) if paced else 0.0
        if wait:
            self._queue.add(this.key, delay=wait)
            return
        name, namespace = this.key.name, this.key.namespace
        if not wanted and owned >= {item["name"] for item in this.weights}:
            # An apply of nothing would remove the list itself, which the kind requires.
            metadata = {"resourceVersion": this.metadata["resourceVersion"]}
            body = {"metadata": metadata, "spec": {"weights": []}}
            write = self._client.merge_patch(NETWORK_TOPOLOGIES, name, body, namespace=namespace)
        else:
            body = this.applied(spec={"weights": wanted}) if wanted else this.applied()
            write = self._client.apply(NETWORK_TOPOLOGIES, name, body, field_manager=FIELD_MANAGER, namespace=namespace)
        answer = await self._versions.writing(this.key, write, generation=this.generation + 1)
        self._weights_written.wrote(this.key)
        metrics.WRITES.labels("weights").inc()
        this.raw = ObjectDecoder(NETWORK_TOPOLOGIES.raw.type).decode(answer)
        # Somebody else's edit in between is for the next pass: nothing was computed of it.
        if this.present == this.generation + 1:
            this.generation = this.present
        regarding = Reference.to(this.raw)
        note = events.weights_updated(regarding, computed) if wanted else events.weights_removed(regarding, owned)
        self._recorder.record(note)
        log.debug(note.message, networktopology=str(this.key))

    def _refused(self, this: _Pass, error: ApiError) -> ConditionUpdate:
        """Report a write that will not succeed as it is."""
        problem = f"The API server refused the computed weights: {error}"
        log.debug("weights refused", networktopology=str(this.key), error=str(error))
        self._recorder.record(events.write_refused(Reference.to(this.raw), problem))
        self._queue.add(this.key, delay=REFUSED_DELAY)
        return ConditionUpdate(CONDITION_WEIGHTS_COMPUTED, False, "WriteRefused", problem)

    async def _write_status(
        self,
        this: _Pass,
        updates: Sequence[ConditionUpdate],
        *,
        data_time: datetime | None,
        source: str | None,
        paced: bool = False,
    ) -> None:
        """Apply the status if it differs, and tell in Events what is new in it."""
        managed = this.metadata.get("managedFields", ())
        following = next_status(
            this.status,
            updates,
            generation=this.generation,
            places=this.places,
            names=[item["name"] for item in this.weights],
            calculated=ownership(managed).time,
            measured=data_time,
            source=source,
            now=datetime.now(UTC),
        )
        written = status_time(managed)
        now = self._status_written.present(this.key, written)
        wanted = following.to_api()
        if wanted == this.status.to_api():
            return
        wait = write_pacing.seconds_until_words(this.status, following, written, now) if paced else 0.0
        if wait:
            self._queue.add(this.key, delay=wait)
            return
        wanted["conditions"] = [item for item in wanted["conditions"] if item["type"] in CONDITIONS]
        write = self._client.apply(
            NETWORK_TOPOLOGIES,
            this.key.name,
            this.applied(status=wanted),
            field_manager=FIELD_MANAGER,
            namespace=this.key.namespace,
            subresource="status",
        )
        await self._versions.writing(this.key, write, generation=this.generation)
        self._status_written.wrote(this.key)
        metrics.WRITES.labels("status").inc()
        for note in events.condition_changes(Reference.to(this.raw), this.status.conditions, updates):
            self._recorder.record(note)

    async def _report_invalid(self, key: TopologyKey, raw: dict[str, Any], error: InvalidObjectError) -> None:
        """Say in a condition what is wrong with an object that cannot be read."""
        log.debug("invalid object", networktopology=str(key), problems=error.problems)
        try:
            status = NetworkTopologyStatus.model_validate(raw.get("status") or {})
        except ValueError:
            status = NetworkTopologyStatus()
        self._sources.forget(key)
        update = ConditionUpdate(CONDITION_WEIGHTS_COMPUTED, False, "InvalidNetworkTopology", str(error))
        this = _Pass(key, raw, status, self._nodes.places)
        await self._write_status(this, [update], data_time=None, source=status.source)
