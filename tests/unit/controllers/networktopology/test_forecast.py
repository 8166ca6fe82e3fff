"""The weight sets that a new NetworkTopology would get."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from berth.api.errors import InvalidObjectError
from berth.api.labels import LABEL_REGION, LABEL_ZONE
from berth.kube.probe_reports import Report
from berth.scheduling.simulation.inputs import Measured
from controllers.networktopology import object_room
from controllers.networktopology.forecast import forecast
from tests.support.topologies import probe_report, probed_peer, raw_topology, weight_set

NODES = {f"n-{zone}": {LABEL_ZONE: zone, LABEL_REGION: "r"} for zone in "abc"}
STATED = weight_set("UserDefined", zones={"a>b": 2, "b>c": 3})


def zone_costs(document: dict[str, Any], name: str) -> dict[tuple[str, str], int]:
    [found] = [item for item in document["spec"]["weights"] if item["name"] == name]
    [level] = [item for item in found["topologyList"] if item["topologyKey"] == LABEL_ZONE]
    return {
        (row["origin"], cost["destination"]): cost["networkCost"]
        for row in level["originList"]
        for cost in row["costList"]
    }


def key(origin: str, destination: str) -> str:
    return f"netperf.p90.latency.milliseconds.origin.n-{origin}.destination.n-{destination}"


def test_paths_over_what_people_stated() -> None:
    document = forecast(raw_topology(STATED), NODES, {})
    assert [item["name"] for item in document["spec"]["weights"]] == ["UserDefined", "Dijkstra"]
    assert zone_costs(document, "Dijkstra") == {("a", "b"): 2, ("b", "c"): 3, ("a", "c"): 5}
    assert document["spec"]["weights"][0] == STATED


def test_measurements_come_first() -> None:
    raw = raw_topology(STATED, configmap="perf")
    maps = {f"{raw['metadata']['namespace']}/perf": {key("a", "b"): "0.85", key("b", "c"): "0.1"}}
    document = forecast(raw, NODES, maps)
    assert zone_costs(document, "NetperfCosts") == {("a", "b"): 9, ("b", "c"): 1}
    assert zone_costs(document, "Dijkstra")["a", "c"] == 10


def test_costs_that_the_object_would_have_no_room_for_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_room, "MAX_BYTES", 500)
    maps = {"shop/perf": {key("a", "b"): "0.85", key("b", "c"): "0.1"}}
    document = forecast(raw_topology(configmap="perf"), NODES, maps)
    assert document["spec"]["weights"][1] == {"name": "NetperfCosts", "topologyList": []}
    assert zone_costs(document, "Dijkstra")["a", "c"] == 10


@pytest.mark.parametrize(
    ("options", "cost"),
    [
        pytest.param({}, 9, id="as the controller by default"),
        pytest.param({"cost_unit": 1000}, 1, id="in milliseconds"),
        pytest.param({"percentile": "p99"}, 70, id="by another percentile"),
        pytest.param({"percentile": "p99", "cost_unit": 1000}, 7, id="both"),
    ],
)
def test_latencies_cost_what_the_controller_was_started_with(options: dict[str, Any], cost: int) -> None:
    raw = raw_topology(STATED, configmap="perf")
    data = {key("a", "b"): "0.85", key("a", "b").replace("p90", "p99"): "7"}
    maps = {f"{raw['metadata']['namespace']}/perf": data}
    assert zone_costs(forecast(raw, NODES, maps, **options), "NetperfCosts") == {("a", "b"): cost}


@pytest.mark.parametrize("data", [None, {}, {key("a", "b"): "fast"}], ids=["no ConfigMap", "empty", "unreadable"])
def test_without_measurements_the_stated_costs_count(data: dict[str, str] | None) -> None:
    raw = raw_topology(STATED, configmap="perf")
    maps = {} if data is None else {f"{raw['metadata']['namespace']}/perf": data}
    assert zone_costs(forecast(raw, NODES, maps), "Dijkstra")["a", "b"] == 2


@pytest.mark.parametrize(
    ("annotation", "cost"),
    [
        pytest.param("", 9, id="reports-come-first"),
        pytest.param("configmap", 3, id="unless-another-source-is-chosen"),
    ],
)
def test_reports_of_the_cluster_count_as_in_the_controller(annotation: str, cost: int) -> None:
    raw = raw_topology(STATED, configmap="perf")
    raw["metadata"]["annotations"] = {"berth.dev/source": annotation} if annotation else {}
    maps = {f"{raw['metadata']['namespace']}/perf": {key("a", "b"): "0.3"}}
    peers = {"n-a": ("n-b", "n-c", "gone"), "n-b": ("n-a", "n-c"), "n-c": ("n-a", "n-b")}
    reports = [
        msgspec.convert(probe_report(node, *(probed_peer(name, 850) for name in others)), Report)
        for node, others in peers.items()
    ]
    document = forecast(raw, NODES, maps, Measured(reports, datetime.now(UTC)))
    assert zone_costs(document, "NetperfCosts")["a", "b"] == cost


def test_reports_that_are_too_old_count_no_more() -> None:
    then = datetime.now(UTC) - timedelta(hours=1)
    reports = [msgspec.convert(probe_report("n-a", probed_peer("n-b", 850, time=then)), Report)]
    document = forecast(raw_topology(STATED), NODES, {}, Measured(reports, datetime.now(UTC)))
    assert zone_costs(document, "Dijkstra")["a", "b"] == 2


def test_computed_sets_of_a_stored_object_are_made_anew() -> None:
    old = weight_set("Dijkstra", zones={"a>b": 77})
    document = forecast(raw_topology(STATED, old), NODES, {})
    assert zone_costs(document, "Dijkstra")["a", "b"] == 2


def test_sets_of_other_people_stay() -> None:
    other = weight_set("Theirs", zones={"a>b": 4})
    document = forecast(raw_topology(STATED, other), NODES, {})
    assert [item["name"] for item in document["spec"]["weights"]] == ["UserDefined", "Theirs", "Dijkstra"]


def test_an_object_that_is_no_topology_is_refused() -> None:
    with pytest.raises(InvalidObjectError):
        forecast({**raw_topology(STATED), "spec": {"weights": "x"}}, NODES, {})
