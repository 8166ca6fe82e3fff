"""Which Events a change of conditions gives, and what every Event refers to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from berth.api.conditions import Condition, ConditionStatus
from berth.kube.events import Note
from controllers.networktopology import events
from controllers.networktopology.status import REASON_PARTLY_USABLE, Finding
from tests.support.topologies import raw_topology

NET = events.reference(raw_topology())
FINE = Finding("SourceAvailable", True, "MeasurementsRead", "fine")
PARTLY = Finding("SourceAvailable", True, REASON_PARTLY_USABLE, "a value is bad")
GONE = Finding("SourceAvailable", False, "ConfigMapNotFound", "gone")
EMPTY = Finding("SourceAvailable", False, "NoUsableMeasurements", "empty")


def condition(finding: Finding) -> Condition:
    return Condition(
        type=finding.type,
        status=ConditionStatus.TRUE if finding.holds else ConditionStatus.FALSE,
        observed_generation=1,
        last_transition_time=datetime(2026, 1, 31, tzinfo=UTC),
        reason=finding.reason,
        message=finding.message,
    )


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
        pytest.param(GONE, EMPTY, ("NoUsableMeasurements", True), id="other trouble"),
        pytest.param(GONE, FINE, ("MeasurementsRead", False), id="comes"),
        pytest.param(PARTLY, FINE, ("MeasurementsRead", False), id="is repaired"),
    ],
)
def test_condition_changes(before: Finding | None, after: Finding, note: tuple[str, bool] | None) -> None:
    known = [] if before is None else [condition(before)]
    notes = events.condition_changes(NET, known, [after])
    assert [(item.reason, item.warning) for item in notes] == ([] if note is None else [note])
    assert all(item.regarding == NET and item.message == after.message for item in notes)


def test_every_condition_has_its_own_note() -> None:
    found = [GONE, Finding("WeightsComputed", False, "NoSource", "x"), Finding("Complete", False, "MissingCosts", "y")]
    notes = events.condition_changes(NET, [], found)
    assert [item.action for item in notes] == ["ReadSource", "ComputeWeights", "CheckCosts"]


def test_reference() -> None:
    assert (NET.api_version, NET.kind) == ("networktopology.diktyo.x-k8s.io/v1alpha1", "NetworkTopology")
    assert (NET.namespace, NET.name, NET.uid) == ("shop", "net", "u-1")


@pytest.mark.parametrize(
    ("note", "reason", "warning", "says"),
    [
        pytest.param(
            events.weights_updated(NET, Finding("WeightsComputed", True, "Computed", "Dijkstra from UserDefined")),
            "WeightsUpdated",
            False,
            "Dijkstra from UserDefined",
            id="updated",
        ),
        pytest.param(
            events.weights_removed(NET, {"NetperfCosts", "Dijkstra"}),
            "WeightsRemoved",
            True,
            "Dijkstra, NetperfCosts removed",
            id="removed",
        ),
        pytest.param(events.write_refused(NET, "too large"), "WeightsRefused", True, "too large", id="refused"),
        pytest.param(
            events.invalid_object(NET, "spec: bad"), "InvalidNetworkTopology", True, "spec: bad", id="invalid"
        ),
    ],
)
def test_notes(note: Note, reason: str, warning: bool, says: str) -> None:
    assert (note.reason, note.warning) == (reason, warning)
    assert says in note.message
