"""What is said about an AppGroup: order, members, each dependency against its limit, and the age of the costs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from berth.cli.explain.group import group_document
from berth.cli.explain.group_reading import GroupFacts
from berth.cli.explain.tables import group_page
from berth.kube.objects import CustomObject, Node, OwnerReference, Pod, Service
from berth.scheduling.configuration import Profile
from tests.support import builders, plans

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
NODES = [
    builders.node(name, labels={"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "r"})
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c"))
]


def custom(manifest: dict[str, Any], **status: Any) -> CustomObject:
    manifest = {**manifest, "metadata": {"namespace": "default", "uid": "u", **manifest["metadata"]}, "status": status}
    return CustomObject.of(manifest)


def member(workload: str, on: str = "", *, name: str = "", **arguments: Any) -> Pod:
    found = builders.pod(name or f"{workload}-1", on=on, labels=plans.labels("shop", workload), **arguments)
    found.spec.scheduler_name = "berth-scheduler"
    if on:
        found.metadata.annotations["berth.dev/decision"] = json.dumps({"v": 1, "node": on})
    return found


TOPOLOGY = custom(
    plans.topology({("a", "b"): 10}),
    weightCalculationTime="2026-05-01T11:00:00Z",
    conditions=[
        {
            "type": "Complete",
            "status": "False",
            "reason": "Missing",
            "message": "zone c",
            "lastTransitionTime": "2026-05-01T11:00:00Z",
        }
    ],
)
GROUP = plans.appgroup("shop", {"front": ["back"], "back": []}, maxNetworkCost=5)


def explained(
    *pods: Pod,
    group: CustomObject | None = None,
    topologies: Sequence[CustomObject] = (TOPOLOGY,),
    nodes: Sequence[Node] = NODES,
    events: Sequence[Any] = (),
    services: Sequence[Service] = (),
    unread: Sequence[str] = (),
    profile: Profile | None = None,
) -> dict[str, Any]:
    facts = GroupFacts(group or custom(GROUP), pods, profile or Profile(), nodes, topologies, events, services, unread)
    return group_document(facts, schedulers=["berth-scheduler"], now=NOW)


@pytest.mark.parametrize(
    ("front", "back", "cost", "over"),
    [("a1", "a1", 0, 0), ("a1", "a2", 1, 0), ("a1", "b1", 10, 1)],
    ids=["same node", "same zone", "above the limit"],
)
def test_the_cost_of_a_dependency_against_its_limit(front: str, back: str, cost: float, over: int) -> None:
    document = explained(member("front", front), member("back", back))
    [row] = document["dependencies"]
    assert (row["meanCost"], row["maxNetworkCost"], row["pairsOverLimit"]) == (cost, 5, over)
    assert document["meanEdgeCost"] == cost
    assert row["worst"] == {"fromNode": front, "toNode": back}


@pytest.mark.parametrize(("distribution", "over"), [("", 2), ("PreferSameZone", 0)], ids=["to all", "in the zone"])
def test_pairs_that_never_call_each_other_are_beyond_no_limit(distribution: str, over: int) -> None:
    pods = [member(name, node, name=f"{name}-{node}") for name in ("front", "back") for node in ("a1", "b1")]
    back = service("back", selector=plans.labels("shop", "back"), trafficDistribution=distribution)
    document = explained(*pods, services=[back])
    assert [row["pairsOverLimit"] for row in document["dependencies"]] == [over]
    assert (document["pairs"], document["pairsOverLimit"]) == (4, over)


@pytest.mark.parametrize(
    ("distribution", "shown", "hidden"),
    [
        ("", ["CROSS-ZONE", "50%", "MIN", "a1 > b1"], ["PreferSameZone"]),
        ("PreferSameZone", ["COST", "PreferSameZone"], ["MIN", "FARTHEST", "a1 >"]),
    ],
    ids=["to all", "in the zone"],
)
def test_what_is_said_of_pairs_is_about_calls(distribution: str, shown: list[str], hidden: list[str]) -> None:
    pods = [member(name, node, name=f"{name}-{node}") for name in ("front", "back") for node in ("a1", "b1")]
    back = service("back", selector=plans.labels("shop", "back"), trafficDistribution=distribution)
    _, dependencies = group_page(explained(*pods, services=[back]), width=120).split("DEPENDENCIES", 1)
    table = dependencies.split("CONDITIONS")[0]
    assert [text for text in shown if text not in table] == []
    assert [text for text in hidden if text in table] == []


@pytest.mark.parametrize("node", [pytest.param("a1", id="one node"), pytest.param("b1", id="two zones")])
def test_columns_of_dependencies_are_explained_where_they_are_shown(node: str) -> None:
    page = group_page(explained(member("front", "a1"), member("back", node)), width=120)
    header, _, rest = page.split("DEPENDENCIES", 1)[1].split("CONDITIONS")[0].partition("front > back")
    notes = rest.split("COST", 1)[1]
    said = {"COST", "LIMIT", *re.findall("[A-Z][A-Z-]+", notes)}
    assert said == set(re.findall("[A-Z][A-Z-]+", header)) - {"EDGE", "PODS", "FARTHEST", "PAIR"}


def test_nodes_that_are_gone_are_named_with_what_that_means() -> None:
    pods = [member("front", "a1"), *(member("back", node, name=f"b{i}") for i, node in enumerate(("old", "old", "")))]
    document = explained(*pods)
    assert document["goneNodes"] == [{"name": "old", "pods": 2}]
    said = "old (2 pods): no node of that name is there any more; what calls cost, and what survives, is without them"
    assert said in " ".join(group_page(document, width=120).split())
    assert "goneNodes" not in explained(*pods[:1])
    assert "goneNodes" not in explained(*pods, nodes=(), unread=["nodes"])


def test_an_unknown_cost_counts_as_100_and_is_said() -> None:
    document = explained(member("front", "a1"), member("back", "c1"))
    assert (document["meanEdgeCost"], document["pairsOfUnknownCost"]) == (100, 1)
    page = group_page(document, width=100)
    assert "100?" in page
    assert "1 of unknown cost" in page


def test_a_limit_below_the_cost_inside_a_zone_is_met_there() -> None:
    strict = custom(plans.appgroup("shop", {"front": ["back"], "back": []}, maxNetworkCost=0))
    [row] = explained(member("front", "a1"), member("back", "a2"), group=strict)["dependencies"]
    assert (row["maxNetworkCost"], row["meanCost"], row["pairsOverLimit"]) == (0, 1, 0)


def test_the_document_of_many_replicas_has_no_pairs() -> None:
    pods = [member(workload, "a1", name=f"{workload}-{n}") for workload in ("front", "back") for n in range(300)]
    document = explained(*pods)
    assert (document["edges"], document["pairs"]) == (1, 90_000)
    assert "edgeCosts" not in document
    assert len(document["dependencies"]) == 1
    page = group_page(document, width=100)
    assert "front > back   300 x 300" in page
    assert "300 of 300" in page
    assert len(page.splitlines()) < 40


def test_replicas_count_pair_by_pair() -> None:
    pods = [member("front", "a1"), member("front", "b1", name="front-2"), member("back", "a1")]
    [row] = explained(*pods)["dependencies"]
    assert (row["pairs"], row["meanCost"], row["highestCost"]) == (2, 5, 10)
    assert row["worst"] == {"fromNode": "b1", "toNode": "a1"}


def service(name: str, **spec: Any) -> Service:
    return msgspec.convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Service)


def slices(workload: str) -> list[Pod]:
    """A replica in each of two zones."""
    return [member(workload, node, name=f"{workload}-{node}") for node in ("a1", "b1")]


BACK = {"selector": {"appgroup.diktyo.x-k8s.io.workload": "back"}}


def test_what_the_group_survives_and_what_a_setting_would_save() -> None:
    document = explained(*slices("front"), *slices("back"), services=[service("cart", **BACK)])
    assert (document["meanEdgeCost"], document["crossZoneShare"]) == (5, 0.5)
    assert (document["survival"]["surviveNode"], document["survival"]["surviveZone"]) == (2, 2)
    [setting] = document["serviceSettings"]["workloads"]
    assert (setting["service"], setting["trafficDistribution"]) == ("cart", "PreferSameZone")
    page = group_page(document, width=100)
    assert "5.00 over 1 edge; 0.00 with trafficDistribution: PreferSameZone on 1 Service" in page
    assert "front -> back: 5.00 now, 0.00 with trafficDistribution: PreferSameZone" in page


def test_the_prices_are_those_of_the_profile() -> None:
    document = explained(profile=Profile.model_validate({"spread": "zone"}))
    assert document["prices"]["spread"] == "zone"


def test_the_prices_are_those_that_the_group_states() -> None:
    firm = {**GROUP, "metadata": {**GROUP["metadata"], "annotations": {"berth.dev/spread": "zone"}}}
    document = explained(*slices("front"), *slices("back"), group=custom(firm))
    assert document["prices"]["spread"] == "zone"
    assert document["prices"]["zoneFailure"] > 1000
    assert "(spread: zone); 5 a preferred term of weight 100" in " ".join(group_page(document, width=100).split())


@pytest.mark.parametrize("width", [80, 100])
def test_nodes_and_zones_of_pods_with_long_names_are_whole(width: int) -> None:
    pods = [member("front", node, name=f"front-{'x' * 40}-{node}", phase="Running") for node in ("a1", "b1")]
    nodes = [
        builders.node(name, labels={"topology.kubernetes.io/zone": f"a-zone-with-a-long-name-{name}"})
        for name in ("a1", "b1")
    ]
    page = group_page(explained(*pods, nodes=nodes), width=width)
    assert "…" not in page
    assert "all in phase Running" in page
    assert "a-zone-with-a-long-name-b1" in page


def test_the_services_routing_is_seen_on_the_dependency() -> None:
    near = service("cart", trafficDistribution="PreferSameZone", **BACK)
    document = explained(*slices("front"), *slices("back"), services=[near])
    [row] = document["dependencies"]
    assert (row["routing"], row["cost"], row["crossZoneShare"], row["meanCost"]) == ("PreferSameZone", 0, 0, 5)
    assert "serviceSettings" not in document
    assert re.search(r"front > back +2 x 2 +0 +PreferSameZone", group_page(document, width=110))


def test_members_of_a_stateful_set_get_no_advice() -> None:
    backs = slices("back")
    for pod in backs:
        pod.metadata.owner_references = [OwnerReference(kind="StatefulSet", name="back", uid="u", controller=True)]
    assert "serviceSettings" not in explained(*slices("front"), *backs)


def test_pods_that_are_being_deleted_are_called_no_more() -> None:
    leaving = member("back", "b1", name="back-2")
    leaving.metadata.deletion_timestamp = "2026-05-01T11:59:59Z"
    document = explained(member("front", "a1"), member("back", "a1"), leaving)
    assert document["meanEdgeCost"] == 0
    assert document["survival"]["workloads"] == 0


def test_pods_come_in_the_order_of_the_status() -> None:
    order = [{"workload": {"kind": "D", "name": n, "selector": n}, "index": i} for i, n in ((1, "back"), (2, "front"))]
    document = explained(member("front", "a1"), member("back", "a1"), group=custom(GROUP, topologyOrder=order))
    assert document["order"] == ["back", "front"]
    assert [row["selector"] for row in document["pods"]] == ["back", "front"]
    assert document["ordered"] is True


def test_waiting_members_say_why_and_missing_workloads_are_named() -> None:
    waiting = member("front")
    note = {
        "reason": "WaitingForMembers", "note": "1 of 2 pods", "reportingController": "berth.dev/placement",
        "eventTime": "2026-05-01T11:59:00Z", "regarding": {"kind": "Pod", "uid": waiting.metadata.uid},
    }  # fmt: skip
    document = explained(waiting, events=[note])
    [row] = document["pods"]
    assert (row["state"], row["message"]) == ("pending", "WaitingForMembers: 1 of 2 pods")
    assert document["missingWorkloads"] == ["back"]
    page = group_page(document, width=100)
    for wanted in (
        "0 of 1 pods have a node",
        "Without a pod       back",
        "WaitingForMembers: 1 of 2",
        "no pair has nodes yet",
    ):
        assert wanted in page


def test_pods_of_other_groups_and_ended_ones_are_left_out() -> None:
    other = builders.pod("x", on="a1", labels=plans.labels("other", "front"))
    document = explained(other, member("back", "a1", phase="Succeeded"))
    assert document["pods"] == []


def test_age_and_conditions_of_the_costs() -> None:
    network = explained(member("front", "a1"))["network"]
    assert network["topology"] == "default/net"
    assert network["ageSeconds"] == 3600
    assert network["conditions"][0]["reason"] == "Missing"
    assert "1h old" in group_page(explained(member("front", "a1")), width=100)


def test_without_a_topology_that_is_said() -> None:
    document = explained(member("front", "a1"), topologies=())
    assert document["network"]["missing"].startswith("no NetworkTopology with costs")


def test_a_broken_topology_is_said() -> None:
    broken = custom({**plans.topology({}), "spec": {"weights": "x"}})
    [problem] = explained(topologies=[broken])["network"]["problems"]
    assert "NetworkTopology default/net: spec.weights" in problem


@pytest.mark.parametrize(
    ("unread", "given"),
    [(["nodes"], {"nodes": ()}), (["networktopologies"], {"topologies": ()})],
    ids=["nodes", "networktopologies"],
)
def test_figures_that_would_be_wrong_are_left_out_and_the_missing_right_is_named(
    unread: list[str], given: dict[str, Any]
) -> None:
    document = explained(member("front", "a1"), member("back", "b1"), unread=unread, **given)
    assert document["order"] == ["front", "back"]
    assert [(row["name"], row["node"]) for row in document["pods"]] == [("front-1", "a1"), ("back-1", "b1")]
    assert not {"edges", "meanEdgeCost", "survival", "prices", "pairs", "dependencies"} & set(document)
    page = " ".join(group_page(document, width=100).split())
    assert f"Not read {unread[0]}: you may not list them; what calls cost, and what the group survives" in page
    assert "Survive" not in page
    assert ("NetworkTopologies may not be listed" in page) == (unread == ["networktopologies"])


def test_events_and_services_that_may_not_be_listed_cost_no_figures() -> None:
    document = explained(member("front", "a1"), member("back", "b1"), unread=["events", "services"])
    assert [row["resource"] for row in document["unread"]] == ["events", "services"]
    assert document["meanEdgeCost"] == 10
    assert "Not read" in group_page(document, width=100)


def test_a_broken_group_is_said_and_its_pods_are_listed() -> None:
    document = explained(member("front", "a1"), group=custom({**GROUP, "spec": {"numMembers": 0}}))
    assert "spec" in document["problem"]
    page = group_page(document, width=100)
    assert "It cannot be used" in page
    assert "front-1" in page


def test_the_page_is_narrow_enough_and_shows_what_matters() -> None:
    pods = [member("front", "a1"), member("back", "b1")]
    page = group_page(explained(*pods), width=100)
    assert max(map(len, page.splitlines())) <= 100
    assert re.search(r"front > back +1 x 1 +10 +10 +10 +100% +5 +1 pair +a1 > b1", page)
    for wanted in ("10.0 over 1 edge", "1, 1 above their maxNetworkCost", "a1 > b1"):
        assert wanted in page
