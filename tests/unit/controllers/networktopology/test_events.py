"""Which Events a change of conditions gives, and what every Event refers to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from berth.api.conditions import Condition, ConditionUpdate, apply
from berth.kube.events import Note, Reference
from controllers.networktopology import events
from controllers.networktopology.sources.base import REASON_CLOCKS_DIFFER, REASON_PARTLY_USABLE
from tests.support.topologies import raw_topology

NET = Reference.to(raw_topology())
FINE = ConditionUpdate("SourceAvailable", True, "MeasurementsRead", "fine")
PARTLY = ConditionUpdate("SourceAvailable", True, REASON_PARTLY_USABLE, "a value is bad")
CLOCKS = ConditionUpdate("SourceAvailable", True, REASON_CLOCKS_DIFFER, "behind")
GONE = ConditionUpdate("SourceAvailable", False, "ConfigMapNotFound", "gone")
EMPTY = ConditionUpdate("SourceAvailable", False, "NoUsableMeasurements", "empty")
COMPUTED = ConditionUpdate("WeightsComputed", True, "Computed", "Dijkstra from UserDefined")


def conditions(*updates: ConditionUpdate) -> tuple[Condition, ...]:
    return apply((), updates, observed_generation=1, now=datetime(2026, 1, 31, tzinfo=UTC))


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        pytest.param(None, FINE, None, id="fine from the start"),
        pytest.param(None, GONE, ("ConfigMapNotFound", True), id="missing from the start"),
        pytest.param(None, PARTLY, (REASON_PARTLY_USABLE, True), id="partly usable from the start"),
        pytest.param(FINE, FINE, None, id="stays fine"),
        pytest.param(GONE, GONE, None, id="stays missing"),
        pytest.param(FINE, GONE, ("ConfigMapNotFound", True), id="goes"),
        pytest.param(FINE, PARTLY, (REASON_PARTLY_USABLE, True), id="a value goes bad"),
        pytest.param(FINE, CLOCKS, (REASON_CLOCKS_DIFFER, True), id="usable by another clock"),
        pytest.param(GONE, EMPTY, ("NoUsableMeasurements", True), id="other trouble"),
        pytest.param(GONE, FINE, ("MeasurementsRead", False), id="comes"),
        pytest.param(PARTLY, FINE, ("MeasurementsRead", False), id="is repaired"),
    ],
)
def test_condition_changes(
    before: ConditionUpdate | None, after: ConditionUpdate, note: tuple[str, bool] | None
) -> None:
    known = () if before is None else conditions(before)
    notes = events.condition_changes(NET, known, [after])
    assert [(item.reason, item.warning) for item in notes] == ([] if note is None else [note])
    assert all(item.regarding == NET and item.message == after.message for item in notes)


def test_every_condition_has_its_own_note() -> None:
    found = [
        GONE,
        ConditionUpdate("WeightsComputed", False, "NoSource", "x"),
        ConditionUpdate("Complete", False, "MissingCosts", "y"),
    ]
    notes = events.condition_changes(NET, [], found)
    assert [item.action for item in notes] == ["ReadSource", "ComputeWeights", "CheckCosts"]


def test_reference() -> None:
    assert (NET.api_version, NET.kind) == ("networktopology.diktyo.x-k8s.io/v1alpha1", "NetworkTopology")
    assert (NET.namespace, NET.name, NET.uid) == ("shop", "net", "u-1")


@pytest.mark.parametrize(
    ("note", "reason", "warning", "says"),
    [
        pytest.param(
            events.weights_updated(NET, COMPUTED),
            "WeightsUpdated",
            False,
            "Dijkstra from UserDefined",
            id="updated",
        ),
        pytest.param(
            events.weights_removed(NET, {"NetperfCosts", "Dijkstra"}),
            "WeightsRemoved",
            True,
            "Removed Dijkstra, NetperfCosts: ",
            id="removed",
        ),
        pytest.param(events.write_refused(NET, "too large"), "WeightsRefused", True, "too large", id="refused"),
    ],
)
def test_notes(note: Note, reason: str, warning: bool, says: str) -> None:
    assert (note.reason, note.warning) == (reason, warning)
    assert says in note.message
