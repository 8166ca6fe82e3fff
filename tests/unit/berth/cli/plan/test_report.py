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
    assert (document["kind"], document["version"]) == ("PlacementPlan", 2)
