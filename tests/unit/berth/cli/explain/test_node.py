"""What is said about a node: Berth's pods and why they are there, others in a line, the room that is left, who fits."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.api.labels import LABEL_SEGMENT, RESOURCE_BANDWIDTH
from berth.cli.explain.node import NodeFacts, node_document
from berth.kube.meta import OwnerReference
from berth.kube.objects import Node, Service
from berth.kube.probe_reports import LinkReport
from berth.scheduling.configuration import PlacementConfiguration, parse_configuration
from tests.support import builders, explanations, plans
from tests.support.node_explanations import NODES, ZONE, custom, explained, placed, pod


def test_a_pod_of_berth_has_its_decision_its_age_and_what_its_edges_cost_now() -> None:
    front = placed("front-1", "front")
    document = explained(
        here=[front],
        elsewhere=[placed("back-1", "back", on="n3"), placed("back-2", "back", on="n2")],
        bound={front.metadata.uid: "2026-05-01T11:50:00Z"},
    )
    [row] = document["pods"]
    assert (row["name"], row["appGroup"], row["selector"], row["boundSeconds"]) == ("front-1", "shop", "front", 600)
    assert row["decision"]["terms"] == {"network": 3.0}
    assert (row["edges"], row["edgeCost"], row["edgesOverLimit"]) == (2, 11, 1)


@pytest.mark.parametrize(
    ("service", "over"),
    [
        pytest.param({}, 1, id="to-all"),
        pytest.param({"trafficDistribution": "PreferSameZone"}, 0, id="within-the-zone"),
        pytest.param({"trafficDistribution": "PreferSameNode"}, 0, id="none-on-the-node"),
    ],
)
def test_pairs_over_their_limit_are_those_that_call_each_other(service: dict[str, Any], over: int) -> None:
    spec = {"selector": plans.labels("shop", "back"), **service}
    document = explained(
        here=[placed("front-1", "front")],
        elsewhere=[placed("back-1", "back", on="n3"), placed("back-2", "back", on="n2")],
        services=[msgspec.convert({"metadata": {"name": "back", "namespace": "default"}, "spec": spec}, Service)],
    )
    [row] = document["pods"]
    assert (row["edges"], row["edgesOverLimit"]) == (2, over)


def test_a_waiting_pod_is_judged_by_the_calls_that_a_service_lets_it_make() -> None:
    spec = {"selector": plans.labels("shop", "back"), "trafficDistribution": "PreferSameZone"}
    service = msgspec.convert({"metadata": {"name": "back", "namespace": "default"}, "spec": spec}, Service)
    facts: dict[str, Any] = {
        "waiting": [pod("front-1", "front")],
        "elsewhere": [placed("back-1", "back", on="n3"), placed("back-2", "back", on="n2")],
    }
    assert explained(**facts)["waiting"][0]["fit"] == 0
    assert explained(**facts, services=[service])["waiting"][0]["fit"] == 1


def test_pods_of_others_are_counted_with_what_they_request() -> None:
    by_hand = pod("by-hand", on="n1", cpu="1", namespace="tools")
    foreign = pod("foreign", on="n1", scheduler="default-scheduler", cpu="500m", memory="1Gi")
    others = explained(here=[by_hand, foreign])["others"]
    assert others["pods"] == 2
    assert others["bySchedulerName"] == {"berth-scheduler": 1, "default-scheduler": 1}
    assert others["byNamespace"] == {"tools": 1, "default": 1}
    assert others["requests"] == {"cpu": 1.5, "memory": 2**30}


def test_the_room_is_what_all_requests_leave() -> None:
    resources = explained(here=[placed("p", cpu="1500m"), pod("q", on="n1", scheduler="x", cpu="1")])["resources"]
    assert resources["cpu"] == {"allocatable": 4, "used": 2.5, "free": 1.5}
    assert resources["pods"] == {"allocatable": 110, "used": 2, "free": 108}


def test_edges_take_bandwidth_too() -> None:
    budget = builders.node("n1", labels={ZONE: "a"}, extra={"network.aware.com/bandwidth": "100M"})
    group = custom(plans.appgroup("shop", {"front": ["back"], "back": []}, minBandwidth="30M"))
    here, elsewhere = [placed("front-1", "front")], [placed("back-1", "back", on="n2")]
    found = explained(budget, here=here, elsewhere=elsewhere, nodes=NODES[1:], groups=[group])
    assert found["resources"]["network.aware.com/bandwidth"] == {"allocatable": 10**8, "used": 3e7, "free": 7e7}


def test_waiting_pods_are_judged_by_workload_and_those_that_fit_come_first() -> None:
    owned = pod("web-7d-x", cpu="40")
    owned.metadata.owner_references = [OwnerReference(kind="ReplicaSet", name="web-7d", uid="r")]
    waiting = [owned, *(pod(f"front-{n}", "front", cpu="3") for n in (1, 2))]
    first, second = explained(waiting=waiting)["waiting"]
    assert (first["appGroup"], first["workload"], first["fit"], first["pods"]) == ("shop", "front", 1, 2)
    assert first["rejected"] == [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "pods": 1}]
    assert (second["workload"], second["fit"], second["pods"]) == ("ReplicaSet/web-7d", 0, 1)


def test_each_workload_is_judged_by_itself() -> None:
    rows = explained(waiting=[pod("front-1", "front", cpu="3"), pod("back-1", "back", cpu="3")])["waiting"]
    assert [row["fit"] for row in rows] == [1, 1]


@pytest.mark.parametrize(
    ("node", "field", "value"),
    [
        (builders.node("n1", unschedulable=True), "unschedulable", True),
        (builders.node("n1", taints=["a=b:NoSchedule", "c:NoExecute"]), "taints", ["a=b:NoSchedule", "c:NoExecute"]),
        (builders.node("n1", labels={ZONE: "a"}), "zone", "a"),
        (builders.node("n1", labels={LABEL_SEGMENT: "s"}), "segment", "s"),
        (builders.node("n1"), "ready", "Unknown"),
    ],
    ids=["cordon", "taints", "zone", "segment", "no condition yet"],
)
def test_what_the_node_says_of_itself(node: Node, field: str, value: Any) -> None:
    assert explained(node)[field] == value


def test_settings_of_the_node_are_shown_and_wrong_ones_named() -> None:
    node = builders.node("n1")
    node.metadata.annotations = {"berth.dev/usage-threshold": "7", "berth.dev/price-cpu": "2", "other/x": "y"}
    document = explained(node)
    assert document["settings"] == {"berth.dev/price-cpu": "2", "berth.dev/usage-threshold": "7"}
    assert "usage-threshold" in document["problems"][0]


def test_a_node_by_itself_is_explained_without_anything_else() -> None:
    document = node_document(NodeFacts(NODES[0], here=()), PlacementConfiguration(), now=explanations.NOW)
    assert (document["pods"], document["waiting"], document["others"]["pods"]) == ([], [], 0)


@pytest.mark.parametrize(("mean", "fit"), [pytest.param(0, 1, id="idle"), pytest.param(950_000_000, 0, id="busy")])
def test_a_waiting_pod_is_judged_by_how_busy_the_link_is(mean: int, fit: int) -> None:
    budget = builders.node("n1", labels={ZONE: "a"}, extra={RESOURCE_BANDWIDTH: "1G"})
    time = explanations.NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
    bandwidth = {"meanBitsPerSecond": mean, "deviationBitsPerSecond": 400_000_000, "samples": 60}
    body = {"metadata": {"name": "n1"}, "status": {"time": time, "bandwidth": bandwidth}}
    facts = NodeFacts(
        budget,
        here=(),
        waiting=[pod("wants", **{RESOURCE_BANDWIDTH: "100M"})],
        reports=[msgspec.convert(body, LinkReport)],
    )
    configuration = parse_configuration({"profiles": [{"checkRiskNodeBandwidth": {}}]}, source="test")
    [row] = node_document(facts, configuration, now=explanations.NOW)["waiting"]
    assert row["fit"] == fit
    assert [item["plugin"] for item in row["rejected"]] == ([] if fit else ["CheckRiskNodeBandwidth"])
