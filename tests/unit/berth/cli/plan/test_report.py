"""The document of a plan: its fields, and what they count."""

from __future__ import annotations

from typing import Any

from tests.support import plans

ZONES = [plans.node(f"{zone}{n}", zone=zone, region="r", cpu="4") for zone in "ab" for n in (1, 2)]


COSTS = plans.topology({("a", "b"): 10})


PAIR = plans.appgroup("shop", {"front": ["back"], "back": []})


def members(**arguments: Any) -> list[dict[str, Any]]:
    return [plans.pod("f", group="shop", workload="front", **arguments), plans.pod("b", group="shop", workload="back")]


def test_decisions_have_the_form_of_the_annotation() -> None:
    [first, _] = plans.made(*ZONES, COSTS, PAIR, *members())["pods"]
    decision = first["decision"]
    assert decision["v"] == 2
    assert decision["plannedWith"] == 2
    assert decision["network"] == {"topology": "default/net", "weights": ["Dijkstra", "UserDefined"]}
    assert len(decision["runnerUps"]) == 3


def test_a_group_is_reported_with_the_costs_of_its_own_profile() -> None:
    other = {**plans.topology({("a", "b"): 3}), "metadata": {"name": "other"}}
    profiles = "profiles: [{}, {schedulerName: mine, networkTopology: {namespace: default, name: other}}]"
    document = plans.made(*ZONES, COSTS, other, PAIR, *members(scheduler="mine"), configuration=("c.yaml", profiles))
    assert document["appGroups"][0]["network"]["topology"] == "default/other"


def test_a_group_counts_members_that_are_not_placed_whatever_keeps_them() -> None:
    gated = plans.pod("g", group="shop", workload="back", schedulingGates=[{"name": "example.com/quota"}])
    large = plans.pod("l", group="shop", workload="back", cpu="64")
    document = plans.made(*ZONES, COSTS, PAIR, *members(), gated, large, plans.pod("alone", cpu="64"))
    [group] = document["appGroups"]
    assert {item["name"] for item in document["notPlaced"]} == {"g", "l", "alone"}
    assert (group["placed"], group["pods"]) == (2, 4)


REPLICATED = plans.appgroup("shop", {"front": ["back"], "back": []}, members=4)


def replicated(*services: dict[str, Any], spread: bool = True, **options: Any) -> dict[str, Any]:
    """Two replicas of each, in two zones if `spread`; the AppGroup of the plan."""
    deployments = [
        plans.workload(
            "Deployment", name, group="shop", spec={"replicas": 2}, cpu="500m", **spread_of(name, spread=spread)
        )
        for name in ("front", "back")
    ]
    [group] = plans.made(*ZONES, COSTS, REPLICATED, *deployments, *services, **options)["appGroups"]
    return dict(group)


def spread_of(name: str, *, spread: bool) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    return {"topologySpreadConstraints": [constraint]} if spread else {}


def service(name: str, **spec: Any) -> dict[str, Any]:
    body = {"selector": {"app": name}, "ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": body}


def test_what_a_spread_costs_and_what_a_setting_would_save() -> None:
    group = replicated(service("back"), strategy="replicas")
    assert (group["edges"], group["pairs"], group["meanEdgeCost"], group["crossZoneShare"]) == (1, 4, 5, 0.5)
    assert group["survival"] == {
        "workloads": 2, "surviveNode": 2, "surviveZone": 2, "lostWithNode": [], "lostWithZone": [],
    }  # fmt: skip
    assert group["serviceSettings"] == {
        "meanEdgeCost": 0.0,
        "workloads": [
            {"workload": "back", "service": "back", "trafficDistribution": "PreferSameZone", "busiestEndpoint": 1.0}
        ],
        "edges": [
            {"from": "front", "to": "back", "cost": 5.0, "costThen": 0.0, "trafficDistribution": "PreferSameZone"}
        ],
    }


def test_calls_cost_what_the_service_makes_of_them() -> None:
    group = replicated(service("back", trafficDistribution="PreferSameZone"), strategy="replicas")
    assert (group["meanEdgeCost"], group["crossZoneShare"]) == (0, 0)
    assert "serviceSettings" not in group


def test_a_headless_service_gets_no_advice() -> None:
    group = replicated(service("back", clusterIP="None"), strategy="replicas")
    assert group["meanEdgeCost"] == 5
    assert "serviceSettings" not in group


def test_workloads_that_one_failure_ends_are_named() -> None:
    group = replicated(spread=False, strategy="berth")
    assert group["survival"]["lostWithNode"] == ["back", "front"]
    assert group["survival"]["lostWithZone"] == ["back", "front"]


def test_the_cost_of_the_plan_is_the_sum_of_its_decisions() -> None:
    group = replicated(spread=False, strategy="replicas")
    [objective] = group["objective"]
    assert objective["strategy"] == "replicas"
    assert objective["terms"]["survival"] == 2  # two workloads in one zone, at a price of 1 each
    assert objective["cost"] == sum(objective["terms"].values())
    assert group["prices"] == {
        "spread": "soft", "network": 1, "nodeFailure": 5, "zoneFailure": 1, "softRule": 5, "softSpread": 5, "load": 5,
    }  # fmt: skip


def test_prices_are_those_of_the_objective_alone() -> None:
    assert "prices" not in replicated(spread=False, strategy="berth")


def test_a_pod_that_was_placed_alone_has_a_cost_of_the_same_objective() -> None:
    [group] = plans.made(*ZONES, COSTS, plans.appgroup("shop", {"front": []}), members()[0])["appGroups"]
    assert [objective["strategy"] for objective in group["objective"]] == ["replicas"]
    assert group["survival"]["workloads"] == 0


def test_pods_that_were_placed_by_score_have_no_cost() -> None:
    shop, by_score = plans.appgroup("shop", {"front": []}), ("c.yaml", "profiles: [{gang: {alone: score}}]")
    [group] = plans.made(*ZONES, COSTS, shop, members()[0], configuration=by_score)["appGroups"]
    assert "objective" not in group
    assert group["survival"]["workloads"] == 0


def test_used_and_free_per_node() -> None:
    document = plans.made(plans.node("n1"), plans.node("n2"), plans.pod("p", cpu="1500m"))
    [found] = document["nodes"]
    assert found["resources"]["cpu"] == {"allocatable": 4, "used": 1.5, "free": 2.5}
    assert found["resources"]["pods"] == {"allocatable": 110, "used": 1, "free": 109}
    assert (found["planned"], found["pods"]) == (1, 1)


def test_all_nodes_on_request() -> None:
    document = plans.made(*(plans.node(f"n{n}") for n in (10, 9, 1)), all_nodes=True)
    assert [item["name"] for item in document["nodes"]] == ["n1", "n10", "n9"]
    assert document["summary"] == {
        "pods": 0, "placed": 0, "notPlaced": 0, "nodes": 3, "nodesUsed": 0, "ignoredPods": 0,
    }  # fmt: skip


def test_kind_and_version_come_first() -> None:
    document = plans.made(plans.node("n1"))
    assert list(document)[:2] == ["kind", "version"]
    assert (document["kind"], document["version"]) == ("PlacementPlan", 3)
