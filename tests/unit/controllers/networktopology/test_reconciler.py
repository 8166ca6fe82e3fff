"""One pass over a NetworkTopology: what it writes and when, what it leaves alone, when it looks again.

The API server is a stand-in that keeps one object and who owns its weight sets. With a real one:
tests/integration/test_networktopology_costs.py and test_networktopology_recovery.py.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import msgspec
import pytest
import structlog
from prometheus_client import REGISTRY

from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder, Note
from berth.runtime.component import ComponentContext
from berth.runtime.workqueue import WorkQueue
from controllers.networktopology import reconciler as subject
from controllers.networktopology.nodes import NodeWatch
from controllers.networktopology.places import Places
from controllers.networktopology.reconciler import Reconciler
from controllers.networktopology.sources.base import Published, Reading, Source, SourceState, TopologyKey
from controllers.networktopology.sources.configmap import ConfigMaps
from controllers.networktopology.sources.registry import Sources
from controllers.networktopology.sources.userdefined import UserDefined
from controllers.networktopology.weights import FIELD_MANAGER, ownership
from tests.support.topologies import measured, places, raw_topology, weight_set

KEY = TopologyKey("shop", "net")
STATED = weight_set("UserDefined", zones={"A>B": 9})
OLD = weight_set("Dijkstra", zones={"A>B": 77})
NAME = "ConfigMap shop/netperf"
MEASURED_AT = "2026-01-31T12:00:00Z"


def owned(*names: str) -> list[dict[str, Any]]:
    """``metadata.managedFields`` of an object on which the controller has applied these weight sets."""
    fields = {"f:spec": {"f:weights": {f"k:{json.dumps({'name': name})}": {} for name in names}}}
    return [{"manager": FIELD_MANAGER, "operation": "Apply", "time": MEASURED_AT, "fieldsV1": fields}]


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
        nodes = NodeWatch(cast(ApiClient, self), changed=lambda: None)
        nodes._places = places(n1="r/A", n2="r/B")
        self.reconciler = Reconciler(
            client=cast(ApiClient, self),
            recorder=cast(EventRecorder, self),
            nodes=nodes,
            sources=self._sources(),
            queue=cast("WorkQueue[TopologyKey]", self),
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

    async def get(self, *_: Any, **__: Any) -> dict[str, Any]:
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
            self.raw = {**self.raw, "status": body["status"]}
        else:
            sets = body.get("spec", {}).get("weights", [])
            before = ownership(self.raw["metadata"].get("managedFields", ())).names | {item["name"] for item in sets}
            kept = [item for item in self.raw["spec"].get("weights", []) if item["name"] not in before]
            metadata = {**self.raw["metadata"], "managedFields": owned(*(item["name"] for item in sets))}
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


async def test_weights_and_status_are_written_once() -> None:
    world = World(raw_topology(STATED))
    assert await world.reconciler.reconcile(KEY)
    assert await world.reconciler.reconcile(KEY)
    assert world.parts == ["weights", "status"]
    assert world.weights == ["UserDefined", "Dijkstra"]
    assert world.reasons == {
        "SourceAvailable": "UserDefined",
        "WeightsComputed": "Computed",
        "Complete": "MissingCosts",
    }
    for _, body in world.writes:
        assert body["metadata"] == {"name": "net", "namespace": "shop", "uid": "u-1"}
    assert world.delays == []


async def test_the_status_tells_the_age_of_the_measurements() -> None:
    reading = replace(measured(n1_n2=5, n2_n1=6), time=datetime.fromisoformat(MEASURED_AT))
    world = World(raw_topology(STATED), reading=reading)
    assert await world.reconciler.reconcile(KEY)
    assert world.weights == ["UserDefined", "Dijkstra", "NetperfCosts"]
    assert world.status["dataTime"] == MEASURED_AT


async def test_an_object_without_a_spec_states_nothing() -> None:
    raw = raw_topology()
    del raw["spec"]
    world = World(raw)
    assert await world.reconciler.reconcile(KEY)
    assert world.parts == ["status"]
    assert world.reasons["WeightsComputed"] == "NoSource"


async def test_an_invalid_object_is_told_once() -> None:
    raw = raw_topology(STATED)
    raw["spec"]["configmapName"] = 5
    world = World(raw)
    for _ in range(2):
        assert await world.reconciler.reconcile(KEY)
    assert world.parts == ["status"]
    assert world.reasons == {"WeightsComputed": "InvalidNetworkTopology"}
    assert world.events == [("InvalidNetworkTopology", True)]
    assert KEY in world.forgotten, "nothing is followed for it"


async def test_an_object_that_is_nested_deeply_gets_its_weights() -> None:
    raw = raw_topology(STATED)
    raw["metadata"]["added"] = msgspec.Raw(b"[" * 5000 + b"1" + b"]" * 5000)
    world = World(raw)
    assert await world.reconciler.reconcile(KEY)
    assert world.reasons["WeightsComputed"] == "Computed"


async def test_an_unreadable_status_is_replaced() -> None:
    world = World({**raw_topology(STATED), "status": {"nodeCount": "many"}})
    assert await world.reconciler.reconcile(KEY)
    assert world.reasons["WeightsComputed"] == "Computed"


@pytest.mark.parametrize(
    ("state", "delay", "parts"),
    [
        pytest.param(SourceState.PENDING, subject.PENDING_DELAY, [], id="not read yet"),
        pytest.param(SourceState.FAILED, subject.UNREADABLE_DELAY, ["status"], id="cannot be read"),
    ],
)
async def test_nothing_is_concluded_from_an_unsettled_source(
    state: SourceState, delay: float, parts: list[str]
) -> None:
    raw = raw_topology(STATED, OLD, managedFields=owned("Dijkstra"))
    world = World({**raw, "status": {"dataTime": MEASURED_AT}}, reading=Reading(state, NAME, detail="not allowed"))
    assert await world.reconciler.reconcile(KEY)
    assert world.delays == [delay]
    assert world.parts == parts
    assert world.weights == ["UserDefined", "Dijkstra"]
    assert world.status["dataTime"] == MEASURED_AT
    assert set(world.reasons) <= {"SourceAvailable"}


@pytest.mark.parametrize(
    ("others", "part", "left"),
    [
        pytest.param([], "patch", [], id="ours alone: an apply would remove the list itself"),
        pytest.param([weight_set("Theirs", zones={"A>B": 4})], "weights", ["Theirs"], id="beside another"),
    ],
)
async def test_computed_sets_go_when_nothing_is_left_to_compute_from(
    others: list[dict[str, Any]], part: str, left: list[str]
) -> None:
    raw = raw_topology(*others, OLD, managedFields=owned("Dijkstra"), resourceVersion="7")
    world = World(raw)
    assert await world.reconciler.reconcile(KEY)
    assert await world.reconciler.reconcile(KEY)
    assert world.parts == [part, "status"]
    assert world.weights == left
    assert ("WeightsRemoved", True) in world.events
    _, body = world.writes[0]
    assert body["metadata"].get("resourceVersion" if part == "patch" else "uid"), "nothing else may have changed"


async def test_a_set_of_our_name_that_people_wrote_stays_while_there_is_nothing_better() -> None:
    world = World(raw_topology(OLD))
    assert await world.reconciler.reconcile(KEY)
    assert world.parts == ["status"]
    assert world.weights == ["Dijkstra"]


async def test_a_write_that_will_never_succeed_is_told_and_tried_again_later() -> None:
    world = World(raw_topology(STATED))
    world.refusals["weights"] = 422
    assert await world.reconciler.reconcile(KEY)
    assert world.parts == ["status"]
    assert world.reasons["WeightsComputed"] == "WriteRefused"
    assert ("WeightsRefused", True) in world.events
    assert world.delays == [subject.REFUSED_DELAY]
    world.refusals.clear()
    assert await world.reconciler.reconcile(KEY)
    assert world.reasons["WeightsComputed"] == "Computed"


@pytest.mark.parametrize("part", ["weights", "status"])
@pytest.mark.parametrize("status", [409, 429, 500])
async def test_a_write_that_may_succeed_is_for_the_queue_to_try_again(part: str, status: int) -> None:
    world = World(raw_topology(STATED))
    world.refusals[part] = status
    with pytest.raises(ApiError):
        await world.reconciler.reconcile(KEY)
    world.refusals.clear()
    assert await world.reconciler.reconcile(KEY)
    assert world.parts == ["weights", "status"]


def measurements() -> float | None:
    """The series of the NetworkTopology, while it has one."""
    return REGISTRY.get_sample_value("berth_networktopology_measurements", KEY._asdict())


@pytest.mark.parametrize("how", ["deleted", "being deleted", "deleted before the write"])
async def test_what_is_gone_leaves_nothing(how: str) -> None:
    world = World(raw_topology(STATED))
    assert await world.reconciler.reconcile(KEY)
    assert measurements() == 0.0
    assert world.raw is not None
    world.writes.clear()
    world.forgotten.clear()
    if how == "deleted":
        world.raw = None
    elif how == "being deleted":
        world.raw["metadata"]["deletionTimestamp"] = MEASURED_AT
    else:
        world.raw["spec"]["weights"] = [weight_set("UserDefined", zones={"A>B": 1})]
        world.refusals["weights"] = 404
    assert not await world.reconciler.reconcile(KEY)
    assert (world.writes, measurements()) == ([], None)
    assert KEY in world.forgotten


@pytest.mark.parametrize("about", [("", ""), ("networktopologies", "other")], ids=["a page", "of another object"])
@pytest.mark.parametrize("when", ["at the read", "at the write"])
async def test_a_404_that_does_not_name_the_object_is_tried_again(when: str, about: tuple[str, str]) -> None:
    """A load balancer's page, or a kind that is not served for a while: the NetworkTopology is as it was."""
    world = World(raw_topology(STATED))
    assert await world.reconciler.reconcile(KEY)
    world.about = about
    assert world.raw is not None
    world.raw["spec"]["weights"] = [weight_set("UserDefined", zones={"A>B": 1})]
    edited = world.raw
    world.raw = None if when == "at the read" else edited
    world.refusals["weights"] = 404
    with pytest.raises(ApiError):
        await world.reconciler.reconcile(KEY)
    assert measurements() == 0.0
    world.raw = edited
    world.refusals.clear()
    world.writes.clear()
    assert await world.reconciler.reconcile(KEY)
    assert "weights" in [part for part, _ in world.writes]


INVALID = raw_topology(STATED)
INVALID["spec"]["configmapName"] = 5


@pytest.mark.parametrize(
    ("raw", "refusal", "told"),
    [
        pytest.param(raw_topology(STATED), 0, "WeightsUpdated", id="written"),
        pytest.param(raw_topology(STATED), 422, "WeightsRefused", id="refused"),
        pytest.param(INVALID, 0, "InvalidNetworkTopology", id="invalid"),
    ],
)
async def test_events_tell_of_a_topology_and_the_log_only_if_asked_for_details(
    raw: dict[str, Any], refusal: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are bounded by namespace, log lines are not: who edits his objects all day must not fill a disk."""
    lines = {}
    for level in (logging.INFO, logging.DEBUG):
        capture = structlog.testing.LogCapture()
        logger = structlog.wrap_logger(None, [capture], wrapper_class=structlog.make_filtering_bound_logger(level))
        monkeypatch.setattr(subject, "log", logger)
        world = World(raw)
        world.refusals = {"weights": refusal} if refusal else {}
        assert await world.reconciler.reconcile(KEY)
        assert told in [reason for reason, _ in world.events]
        lines[level] = len(capture.entries)
    assert lines == {logging.INFO: 0, logging.DEBUG: 1}
