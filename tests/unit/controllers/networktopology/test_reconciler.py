"""One pass over a NetworkTopology: what it writes and when, what it leaves alone, when it looks again.

The API server is a stand-in that keeps one object and who owns its weight sets. With a real one:
tests/integration/test_networktopology_costs.py and test_networktopology_recovery.py.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import pytest
import structlog
from prometheus_client import REGISTRY

from berth.kube.errors import ApiError
from controllers.networktopology import reconciler as subject
from controllers.networktopology.sources.base import Reading, SourceState
from tests.support.topologies import measured, raw_topology, weight_set
from tests.support.topology_passes import KEY, MEASURED_AT, NAME, OLD, STATED, World, owned


async def test_an_object_is_read_as_it_was_seen_last_and_as_it_is_after_a_refusal() -> None:
    raw = raw_topology(STATED)
    world = World({**raw, "metadata": {**raw["metadata"], "resourceVersion": "8"}})
    world.versions.note(KEY, "7")
    await world.reconciler.reconcile(KEY)
    world.refusals = {"weights": 409}
    world.raw = {**world.raw, "spec": raw["spec"]} if world.raw is not None else None
    with pytest.raises(ApiError):
        await world.reconciler.reconcile(KEY)
    world.raw = None
    await world.reconciler.reconcile(KEY)
    assert world.asked == ["7", "8", ""]


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


@pytest.mark.parametrize(("edits", "observed"), [(0, 5), (1, 4), (3, 4)])
async def test_a_status_is_of_what_was_read_although_somebody_edits_the_object_meanwhile(
    edits: int, observed: int
) -> None:
    """Placement would take weights of the spec before for those of the present one, and wait for no others.

    The first edit may be 5, before our weights are in it: nobody has looked at that one.
    """

    class Edited(World):
        def _written(self, part: str, body: dict[str, Any]) -> bytes:
            answer = super()._written(part, body)
            if part == "weights" and self.raw is not None:
                self.raw["metadata"]["generation"] += 1 + edits
                answer = msgspec.json.encode(self.raw)
            return answer

    raw = raw_topology(STATED)
    world = Edited({**raw, "metadata": {**raw["metadata"], "generation": 4}})
    assert await world.reconciler.reconcile(KEY)
    assert world.parts == ["weights", "status"]
    assert {item["observedGeneration"] for item in world.status["conditions"]} == {observed}


async def test_the_status_tells_the_age_of_the_measurements() -> None:
    reading = replace(measured(n1_n2=5, n2_n1=6), time=datetime.fromisoformat(MEASURED_AT))
    world = World(raw_topology(STATED), reading=reading)
    assert await world.reconciler.reconcile(KEY)
    assert world.weights == ["UserDefined", "Dijkstra", "NetperfCosts"]
    assert (world.status["dataTime"], world.status["source"]) == (MEASURED_AT, "configmap")


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
    status = {"dataTime": MEASURED_AT, "source": "configmap"}
    world = World({**raw, "status": status}, reading=Reading(state, NAME, detail="not allowed"))
    assert await world.reconciler.reconcile(KEY)
    assert world.delays == [delay]
    assert world.parts == parts
    assert world.weights == ["UserDefined", "Dijkstra"]
    assert (world.status["dataTime"], world.status["source"]) == (MEASURED_AT, "configmap")
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


async def test_an_annotation_that_chooses_nothing_is_told() -> None:
    world = World(raw_topology(STATED, annotations={"berth.dev/source": "guesses"}))
    assert await world.reconciler.reconcile(KEY)
    (complete,) = [item for item in world.status["conditions"] if item["type"] == "Complete"]
    assert "metadata.annotations.berth.dev/source: no such source: 'guesses'" in complete["message"]


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
