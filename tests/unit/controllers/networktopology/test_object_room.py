"""What goes first where an object has no room for all computed costs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.networktopology import object_room as subject
from controllers.networktopology.compute import Computation, Costs
from controllers.networktopology.object_room import fitted
from controllers.networktopology.weights import FIELD_MANAGER, weight_sets
from tests.support.topologies import raw_topology, weight_set

REGIONS = {("r", "s"): 80, ("s", "r"): 80}
ZONES = {(a, b): 9 for a in "abcdefgh" for b in "abcdefgh" if a != b}
SEGMENTS = {(a + "1", b + "1"): 2 for a, b in ZONES}
ALL = Costs(REGIONS, ZONES, SEGMENTS, frozenset({("x1", "y1")}))
OF_ZONES = Costs(REGIONS, ZONES)
OF_REGIONS = Costs(REGIONS)
MEASURED = {"Dijkstra": ALL, "NetperfCosts": ALL}
RAW = raw_topology(weight_set("UserDefined", zones={"a>b": 5}))


def size(sets: dict[str, Costs], raw: dict[str, Any] = RAW) -> int:
    """Bytes of an object with these sets."""
    weights = [*raw["spec"]["weights"], *weight_sets(sets)]
    return len(msgspec.json.encode({**raw, "spec": {**raw["spec"], "weights": weights}}))


@pytest.mark.parametrize(
    ("sets", "left", "left_out"),
    [
        pytest.param(MEASURED, MEASURED, (), id="all"),
        pytest.param(
            MEASURED, {"Dijkstra": OF_ZONES, "NetperfCosts": OF_ZONES}, ("costs of segments",), id="without-segments"
        ),
        pytest.param(
            MEASURED,
            {"Dijkstra": OF_ZONES, "NetperfCosts": OF_REGIONS},
            ("costs of segments", "costs of zones in NetperfCosts"),
            id="zones-once",
        ),
        pytest.param(
            MEASURED,
            {"Dijkstra": OF_REGIONS, "NetperfCosts": OF_REGIONS},
            ("costs of segments", "costs of zones in NetperfCosts", "costs of zones"),
            id="regions-alone",
        ),
        pytest.param({"Dijkstra": OF_ZONES}, {"Dijkstra": OF_REGIONS}, ("costs of zones",), id="stated-costs"),
        pytest.param({"Dijkstra": Costs({}, ZONES)}, {"Dijkstra": Costs()}, ("costs of zones",), id="nothing-is-left"),
        pytest.param({}, {}, (), id="nothing-computed"),
    ],
)
def test_what_is_least_missed_goes_first(
    sets: dict[str, Costs], left: dict[str, Costs], left_out: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for just what is left, and some bytes for what stands between weight sets."""
    monkeypatch.setattr(subject, "MAX_BYTES", size(left) + 2)
    found, weights = fitted(Computation(sets, "ProbeReports", measured=True), RAW)
    assert (found.sets, found.left_out, weights) == (left, left_out, weight_sets(left))


def test_sets_of_before_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_BYTES", size(MEASURED) + 2)
    raw = raw_topology(*RAW["spec"]["weights"], *weight_sets(MEASURED))
    assert fitted(Computation(MEASURED, "ProbeReports", measured=True), raw).computation.left_out == ()


def test_a_set_that_is_to_go_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements have ended: nobody would look again once it is gone."""
    stated = {"Dijkstra": OF_ZONES}
    fields: dict[str, Any] = {"f:spec": {"f:weights": {'k:{"name":"Dijkstra"}': {}, 'k:{"name":"NetperfCosts"}': {}}}}
    managed = [{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}]
    empty = {**RAW, "metadata": {**RAW["metadata"], "managedFields": managed}}
    raw = {**empty, "spec": {**RAW["spec"], "weights": [*RAW["spec"]["weights"], *weight_sets(MEASURED)]}}
    monkeypatch.setattr(subject, "MAX_BYTES", size(stated, empty) + 2)
    assert fitted(Computation(stated, "UserDefined", measured=False), raw).computation.left_out == ()


def test_what_others_have_in_the_object_takes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_BYTES", size(MEASURED) + 2)
    raw = {**RAW, "metadata": {**RAW["metadata"], "annotations": {"note": "n" * 100}}}
    found, _ = fitted(Computation(MEASURED, "ProbeReports", measured=True), raw)
    assert found.left_out == ("costs of segments",)


def test_an_object_without_a_spec_has_room() -> None:
    computation = Computation(MEASURED, "ProbeReports", measured=True)
    assert fitted(computation, {"metadata": {"name": "net"}}).computation is computation


@given(most=st.integers(0, 2 * size(MEASURED)))
def test_it_fits_where_anything_may_be_left_out(most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "MAX_BYTES", most)
        found, _ = fitted(Computation(MEASURED, "ProbeReports", measured=True), RAW)
    least = {"Dijkstra": OF_REGIONS, "NetperfCosts": OF_REGIONS}
    assert size(found.sets) - 2 <= max(most, size(least))
