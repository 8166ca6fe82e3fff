"""One NetworkTopology on a stand-in for the API server, and the passes of the networktopology controller over it."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder, Note
from berth.runtime.component import ComponentContext
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from controllers.networktopology.nodes import NodeWatch
from controllers.networktopology.places import Places
from controllers.networktopology.reconciler import Reconciler
from controllers.networktopology.sources.base import Published, Reading, Source, TopologyKey
from controllers.networktopology.sources.configmap import ConfigMaps
from controllers.networktopology.sources.registry import Sources
from controllers.networktopology.sources.userdefined import UserDefined
from controllers.networktopology.weights import FIELD_MANAGER, ownership
from tests.support.topologies import places, weight_set

KEY = TopologyKey("shop", "net")
STATED = weight_set("UserDefined", zones={"A>B": 9})
OLD = weight_set("Dijkstra", zones={"A>B": 77})
NAME = "ConfigMap shop/netperf"
MEASURED_AT = "2026-01-31T12:00:00Z"


def owned(*names: str, time: str = MEASURED_AT) -> list[dict[str, Any]]:
    """``metadata.managedFields`` of an object on which the controller has applied these weight sets."""
    fields: dict[str, Any] = {"f:spec": {"f:weights": {f"k:{json.dumps({'name': name})}": {} for name in names}}}
    return [{"manager": FIELD_MANAGER, "operation": "Apply", "time": time, "fieldsV1": fields}]


class World:
    """One NetworkTopology on an API server that can refuse, what its source says, and the pass over it."""

    def __init__(self, raw: dict[str, Any], *, reading: Reading | None = None) -> None:
        self.raw: dict[str, Any] | None = raw
        self.reading = reading
        self.refusals: dict[str, int] = {}
        self.about = ("networktopologies", KEY.name)
        self.writes: list[tuple[str, dict[str, Any]]] = []
        self.notes: list[Note] = []
        self.delays: list[float] = []
        self.forgotten: list[TopologyKey] = []
        self.versions: SeenVersions[TopologyKey] = SeenVersions(lambda _: None)
        self.asked: list[str] = []
        self.time = MEASURED_AT
        nodes = NodeWatch(cast(ApiClient, self), changed=lambda: None)
        nodes._places = places(n1="r/A", n2="r/B")
        self.reconciler = Reconciler(
            client=cast(ApiClient, self),
            recorder=cast(EventRecorder, self),
            nodes=nodes,
            sources=self._sources(),
            queue=cast("WorkQueue[TopologyKey]", self),
            versions=self.versions,
            algorithm="Dijkstra",
            cost_unit=100,
        )

    def _sources(self) -> Sources:
        world = self

        class Said(ConfigMaps):
            """The ConfigMap that a spec names, without its watch."""

            @classmethod
            def named_by(cls, topology: NetworkTopology) -> bool:
                return world.reading is not None

            @classmethod
            def reading(cls, topology: NetworkTopology, places: Places, published: Published) -> Reading:
                assert world.reading is not None
                return world.reading

            async def read(self, key: TopologyKey, topology: NetworkTopology, places: Places) -> Reading:
                return await Source.read(self, key, topology, places)

            def forget(self, key: TopologyKey) -> None:
                world.forgotten.append(key)

        kinds = (Said, UserDefined)
        return Sources(cast(ComponentContext, None), client=cast(ApiClient, None), changed=print, kinds=kinds)

    # As the API server

    async def get(self, *_: Any, not_older_than: str, **__: Any) -> dict[str, Any]:
        self.asked.append(not_older_than)
        if self.raw is None:
            raise ApiError(status=404, reason="NotFound", message="gone", about=self.about)
        return self.raw

    async def apply(self, _kind: Any, _name: str, body: dict[str, Any], *, subresource: str = "", **_: Any) -> bytes:
        return self._written(subresource or "weights", body)

    async def merge_patch(self, _kind: Any, _name: str, body: dict[str, Any], **_: Any) -> bytes:
        return self._written("patch", body)

    def _written(self, part: str, body: dict[str, Any]) -> bytes:
        assert self.raw is not None
        if part in self.refusals:
            status = self.refusals[part]
            reason = "NotFound" if status == 404 else "Refused"
            raise ApiError(status=status, reason=reason, message="refused", about=self.about)
        self.writes.append((part, body))
        if part == "status":
            fields = [item for item in self.raw["metadata"].get("managedFields", ()) if "subresource" not in item]
            entry = {"manager": FIELD_MANAGER, "operation": "Apply", "subresource": "status", "time": self.time}
            metadata = {**self.raw["metadata"], "managedFields": [*fields, entry]}
            self.raw = {**self.raw, "metadata": metadata, "status": body["status"]}
        else:
            sets = body.get("spec", {}).get("weights", [])
            before = ownership(self.raw["metadata"].get("managedFields", ())).names | {item["name"] for item in sets}
            kept = [item for item in self.raw["spec"].get("weights", []) if item["name"] not in before]
            metadata = {
                **self.raw["metadata"],
                "managedFields": owned(*(item["name"] for item in sets), time=self.time),
            }
            self.raw = {**self.raw, "metadata": metadata, "spec": {**self.raw["spec"], "weights": [*kept, *sets]}}
        return msgspec.json.encode(self.raw)

    # As recorder and queue

    def record(self, note: Note) -> None:
        self.notes.append(note)

    def add(self, key: TopologyKey, *, delay: float) -> None:
        assert key == KEY
        self.delays.append(delay)

    # What came of it

    @property
    def parts(self) -> list[str]:
        return [part for part, _ in self.writes]

    @property
    def weights(self) -> list[str]:
        assert self.raw is not None
        return [item["name"] for item in self.raw["spec"]["weights"]]

    @property
    def status(self) -> dict[str, Any]:
        assert self.raw is not None
        found: dict[str, Any] = self.raw["status"]
        return found

    @property
    def reasons(self) -> dict[str, str]:
        return {item["type"]: item["reason"] for item in self.status.get("conditions", ())}

    @property
    def events(self) -> list[tuple[str, bool]]:
        return [(note.reason, note.warning) for note in self.notes]
