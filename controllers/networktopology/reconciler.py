"""Brings one NetworkTopology up to date: read it, compute, write what differs.

Every pass starts from the object as the API server has it and from the sources as they are now, and depends on
nothing that earlier passes left in memory. A process that dies between any two steps is therefore continued by the
next pass, and a pass that finds everything right writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import structlog

from berth.api.base import ObjectMeta
from berth.api.errors import InvalidObjectError
from berth.api.networktopology import CONDITION_WEIGHTS_COMPUTED, NetworkTopology, NetworkTopologyStatus
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder
from berth.kube.resources import Resource
from controllers.networktopology import events, metrics
from controllers.networktopology.compute import Computation, compute
from controllers.networktopology.configmaps import ConfigMapRef, ConfigMapWatches
from controllers.networktopology.nodes import NodeWatch
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import Reading, SourceState
from controllers.networktopology.status import CONDITIONS, Finding, findings, next_status, source_available
from controllers.networktopology.weights import FIELD_MANAGER, needs_write, ownership, weight_sets

log = structlog.get_logger(__name__)

TOPOLOGIES: Final[Resource[dict[str, Any]]] = Resource(
    "networktopology.diktyo.x-k8s.io", "v1alpha1", "networktopologies", "NetworkTopology", dict
)
"""NetworkTopologies as raw objects: what people wrote is passed through, never rebuilt from a model."""
EMPTY_SPEC: Final[dict[str, Any]] = {"weights": [], "configmapName": ""}
"""Spec of an object that has none."""
PENDING_DELAY: Final = 1.0
"""Seconds until a source that has not been read yet is looked at again."""
UNREADABLE_DELAY: Final = 10.0
"""Seconds until a source that could not be read is looked at again; it announces itself when it can be read."""
REFUSED_DELAY: Final = 60.0
"""Seconds until a write that the API server refused is tried again."""


@dataclass(slots=True)
class _Pass:
    """What one pass knows about its object."""

    key: str
    raw: dict[str, Any]
    topology: NetworkTopology

    @property
    def identity(self) -> dict[str, Any]:
        """Type and metadata of an apply: the uid keeps it from creating an object that was deleted meanwhile."""
        metadata = self.raw["metadata"]
        return {
            "apiVersion": TOPOLOGIES.api_version,
            "kind": TOPOLOGIES.kind,
            "metadata": {name: metadata[name] for name in ("name", "namespace", "uid")},
        }

    @property
    def generation(self) -> int:
        """Generation of the spec."""
        return int(self.raw["metadata"].get("generation", 0))

    @property
    def weights(self) -> list[dict[str, Any]]:
        """``spec.weights`` as it is now."""
        return list((self.raw.get("spec") or {}).get("weights") or [])


class Reconciler:
    """Does the passes."""

    def __init__(
        self,
        *,
        client: ApiClient,
        recorder: EventRecorder,
        nodes: NodeWatch,
        configmaps: ConfigMapWatches,
        again: Callable[[str, float], None],
        algorithm: str,
    ) -> None:
        """Prepare.

        Args:
            client: open API client.
            recorder: running event recorder.
            nodes: where nodes are.
            configmaps: sources of measurements.
            again: asks for another pass over a key after some seconds.
            algorithm: path algorithm, whose name is that of its weight set.
        """
        self._client = client
        self._recorder = recorder
        self._nodes = nodes
        self._configmaps = configmaps
        self._again = again
        self._algorithm = algorithm

    async def reconcile(self, key: str) -> bool:
        """Bring the NetworkTopology ``namespace/name`` up to date and return whether it still exists.

        Raises:
            ApiError, aiohttp.ClientError, OSError: try again later.
        """
        with metrics.RECONCILE_SECONDS.time():
            namespace, name = key.split("/", 1)
            try:
                raw = await self._client.get(TOPOLOGIES, name, namespace=namespace)
                if raw["metadata"].get("deletionTimestamp"):
                    self._forget(key)
                    return False
                await self._reconcile(key, raw)
            except ApiError as error:
                if not error.not_found:
                    raise
                self._forget(key)
                return False
            return True

    async def _reconcile(self, key: str, raw: dict[str, Any]) -> None:
        try:
            # The kind lets an object without a spec pass, as upstream's does: it states nothing.
            topology = NetworkTopology.parse({**raw, "spec": raw.get("spec") or EMPTY_SPEC})
        except InvalidObjectError as error:
            await self._report_invalid(key, raw, error)
            return
        this = _Pass(key, raw, topology)
        places = self._nodes.places
        reading = await self._read_source(this, places)
        if reading is None:
            return
        with metrics.COMPUTE_SECONDS.time():
            # In a thread: a large topology must not hold up watches and the renewal of the Lease.
            computation = await asyncio.to_thread(compute, topology, reading, places, algorithm=self._algorithm)
        if not reading.settled:
            await self._write_status(this, (source_available(reading, computation),), reading, places)
            return
        self._measure(this, reading, computation)
        found = findings(reading, computation, places)
        try:
            await self._write_weights(this, computation, found)
        except ApiError as error:
            if error.not_found or error.conflict or error.retryable:
                raise
            found = self._refused(this, error, found)
        await self._write_status(this, found, reading, places)

    async def _read_source(self, this: _Pass, places: Places) -> Reading | None:
        """Return what the named source says; None while it is being read for the first time."""
        name = this.topology.spec.configmap_name
        ref = ConfigMapRef(this.raw["metadata"]["namespace"], name) if name else None
        source = self._configmaps.follow(this.key, ref)
        if source is None:
            return Reading(SourceState.NONE)
        # In a thread, as a full ConfigMap has thousands of keys.
        reading = await asyncio.to_thread(source.read, places.nodes)
        if reading.state is not SourceState.PENDING:
            return reading
        detail = await source.why_pending()
        self._again(this.key, UNREADABLE_DELAY if detail else PENDING_DELAY)
        return Reading(SourceState.FAILED, reading.name, detail=detail) if detail else None

    async def _write_weights(self, this: _Pass, computation: Computation, found: tuple[Finding, ...]) -> None:
        """Apply the computed sets if the object has others."""
        wanted = weight_sets(computation.sets)
        owned = ownership(this.raw["metadata"].get("managedFields", ())).names
        if not needs_write(this.weights, wanted, owned):
            return
        metadata = this.raw["metadata"]
        if not wanted and owned >= {item["name"] for item in this.weights}:
            # An apply of nothing would remove the list itself, which the kind requires.
            body: dict[str, Any] = {
                "metadata": {"resourceVersion": metadata["resourceVersion"]},
                "spec": {"weights": []},
            }
            answer = await self._client.merge_patch(TOPOLOGIES, metadata["name"], body, namespace=metadata["namespace"])
        else:
            answer = await self._client.apply(
                TOPOLOGIES,
                metadata["name"],
                {**this.identity, **({"spec": {"weights": wanted}} if wanted else {})},
                field_manager=FIELD_MANAGER,
                namespace=metadata["namespace"],
            )
        metrics.WRITES.labels("weights").inc()
        this.raw = msgspec.json.decode(answer, type=dict[str, Any])
        regarding = events.reference(this.raw)
        if wanted:
            computed = next(finding for finding in found if finding.type == CONDITION_WEIGHTS_COMPUTED)
            self._recorder.record(events.weights_updated(regarding, computed))
            log.info("weights written", networktopology=this.key, detail=computed.message)
        else:
            self._recorder.record(events.weights_removed(regarding, owned))
            log.warning("weights removed", networktopology=this.key, names=sorted(owned))

    def _refused(self, this: _Pass, error: ApiError, found: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Report a write that will not succeed as it is."""
        problem = f"The API server refused the computed weights: {error}"
        log.error("weights refused", networktopology=this.key, error=str(error))
        self._recorder.record(events.write_refused(events.reference(this.raw), problem))
        self._again(this.key, REFUSED_DELAY)
        refused = Finding(CONDITION_WEIGHTS_COMPUTED, False, "WriteRefused", problem)
        return tuple(refused if finding.type == CONDITION_WEIGHTS_COMPUTED else finding for finding in found)

    async def _write_status(self, this: _Pass, found: tuple[Finding, ...], reading: Reading, places: Places) -> None:
        """Apply the status if it differs, and tell in Events what is new in it."""
        current = this.topology.status
        wanted = next_status(
            current,
            found,
            generation=this.generation,
            places=places,
            names=[item["name"] for item in this.weights],
            calculated=ownership(this.raw["metadata"].get("managedFields", ())).time,
            measured=reading.time if reading.settled else current.data_time,
            now=datetime.now(UTC),
        )
        if wanted.to_api() == current.to_api():
            return
        await self._apply_status(this.identity, wanted)
        for note in events.condition_changes(events.reference(this.raw), current.conditions, found):
            self._recorder.record(note)

    async def _apply_status(self, identity: dict[str, Any], wanted: NetworkTopologyStatus) -> None:
        status = wanted.to_api()
        status["conditions"] = [item for item in status["conditions"] if item["type"] in CONDITIONS]
        metadata = identity["metadata"]
        await self._client.apply(
            TOPOLOGIES,
            metadata["name"],
            {**identity, "status": status},
            field_manager=FIELD_MANAGER,
            namespace=metadata["namespace"],
            subresource="status",
        )
        metrics.WRITES.labels("status").inc()

    async def _report_invalid(self, key: str, raw: dict[str, Any], error: InvalidObjectError) -> None:
        """Say in an Event and a condition what is wrong with an object that cannot be read."""
        log.warning("invalid object", networktopology=key, problems=error.problems)
        regarding = events.reference(raw)
        blank = NetworkTopology.parse({**raw, "spec": EMPTY_SPEC, "status": {}})
        try:
            current = NetworkTopologyStatus.model_validate(raw.get("status") or {})
        except ValueError:
            current = blank.status
        finding = Finding(CONDITION_WEIGHTS_COMPUTED, False, "InvalidNetworkTopology", str(error))
        this = _Pass(key, raw, blank.model_copy(update={"status": current}))
        self._configmaps.follow(key, None)
        self._recorder.record(events.invalid_object(regarding, str(error)))
        await self._write_status(this, (finding,), Reading(SourceState.NONE), self._nodes.places)

    def _measure(self, this: _Pass, reading: Reading, computation: Computation) -> None:
        metadata: ObjectMeta = this.topology.metadata
        labels = (metadata.namespace, metadata.name)
        metrics.MEASUREMENTS.labels(*labels).set(len(reading.measurements))
        metrics.UNUSABLE.labels(*labels).set(len(reading.malformed) + len(reading.unknown_nodes))
        metrics.MISSING_PAIRS.labels(*labels, "region").set(len(computation.missing_regions))
        metrics.MISSING_PAIRS.labels(*labels, "zone").set(len(computation.missing_zones))

    def _forget(self, key: str) -> None:
        self._configmaps.follow(key, None)
        metrics.forget(*key.split("/", 1))
