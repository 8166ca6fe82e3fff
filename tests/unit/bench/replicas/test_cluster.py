"""Manifests as the evaluator reads them."""

from __future__ import annotations

from typing import Any

import pytest

from bench.replicas.cluster import REGION, UNKNOWN_COST, ZONE, Cluster, amount, read_cluster
from tests.support.replicas import GROUP, SMALL, Manifest, bound, group, node, pod, topology


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", 0.5), ("2", 2.0), (3, 3.0), ("16Gi", 2.0**34), ("1.5k", 1500.0), ("1e3", 1000.0), ("10M", 1e7)],
)
def test_amounts(text: Any, value: float) -> None:
    assert amount(text) == value


@pytest.mark.parametrize(
    ("origin", "destination", "cost"),
    [
        pytest.param("a1-1", "a1-1", 0.0, id="node"),
        pytest.param("a1-1", "a1-2", 1.0, id="zone"),
        pytest.param("a1-1", "a2-1", 5.0, id="zones"),
        pytest.param("a1-1", "b1-1", 80.0, id="regions"),
        pytest.param("a1-1", "c1-1", UNKNOWN_COST, id="unknown-region"),
        pytest.param("a1-1", "lone", UNKNOWN_COST, id="no-labels"),
        pytest.param("lone", "lonely", UNKNOWN_COST, id="neither-has-labels"),
        pytest.param("r-1", "r-2", 1.0, id="one-region-without-zones"),
    ],
)
def test_costs(origin: str, destination: str, cost: float) -> None:
    more = [node("c1-1", "c1-"), node("lone"), node("lonely"), node("r-1", region="r"), node("r-2", region="r")]
    cluster = read_cluster([*SMALL, *more])
    assert cluster.cost(origin, destination) == cluster.cost(destination, origin) == cost


def sets(**costs: int | None) -> Manifest:
    """A NetworkTopology whose weight sets state one cost each, from a1- to a2-."""
    weights = [
        {
            "name": name,
            "topologyList": [
                {"topologyKey": ZONE, "originList": [{"origin": "a1-", "costList": [{"destination": "a2-", **entry}]}]}
            ],
        }
        for name, cost in costs.items()
        for entry in [{} if cost is None else {"networkCost": cost}]
    ]
    return {"kind": "NetworkTopology", "metadata": {"name": "n"}, "spec": {"weights": weights}}


@pytest.mark.parametrize(
    ("costs", "cost"),
    [
        pytest.param({"UserDefined": 9}, 9.0, id="stated"),
        pytest.param({"UserDefined": 9, "Dijkstra": 7}, 7.0, id="paths-first"),
        pytest.param({"UserDefined": 9, "NetperfCosts": 8}, 8.0, id="measured-before-stated"),
        pytest.param({"UserDefined": 9, "NetperfCosts": 8, "Dijkstra": 7}, 7.0, id="all"),
        pytest.param({"UserDefined": None}, UNKNOWN_COST, id="none-stated"),
    ],
)
def test_weight_sets(costs: dict[str, int | None], cost: float) -> None:
    nodes = [node("n1", "a1-"), node("n2", "a2-")]
    assert read_cluster([*nodes, sets(**costs)]).cost("n1", "n2") == cost


def test_the_dearest_way_is_no_cheaper_than_an_unknown_one() -> None:
    assert read_cluster(SMALL).worst_cost() == 100.0
    dear = topology({}, {("a", "b"): 3000})
    assert read_cluster([node("n1", "a1-"), node("n2", "b1-"), dear]).worst_cost() == 3000.0


def test_a_way_of_which_nothing_is_known_is_the_dearest() -> None:
    cluster = read_cluster([node("n1", "a1-"), node("n2", "a2-"), topology({}, {("a", "b"): 3000})])
    assert cluster.cost("n1", "n2") == cluster.worst_cost() == 3001.0


def test_pods_that_wait_have_their_node_from_the_plan() -> None:
    waiting = pod("web", "")
    deployment = {
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {"replicas": 1, "template": {"metadata": pod("db", "")["metadata"], "spec": {"containers": []}}},
    }
    places = [("web-1", "", "a1-1"), ("db-0", "StatefulSet/db", "a1-2")]
    plan = {
        "pods": [
            {"namespace": "default", "name": name, "workload": origin or None, "node": on}
            for name, origin, on in places
        ]
    }
    manifests = [*SMALL, waiting, deployment, group(("web", "db"))]
    assert read_cluster(manifests).pods == []
    found = bound(read_cluster(manifests, plan))
    assert {name: (one.node, one.workload, one.stateful) for name, one in found.items()} == {
        "web-1": ("a1-1", "web", False),
        "db-0": ("a1-2", "db", True),
    }


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        pytest.param((None, None), None, id="no limit"),
        pytest.param((None, 7), 7.0, id="one limit"),
        pytest.param((9, 7), 7.0, id="two limits"),
        pytest.param((0, 7), 0.0, id="a limit of nothing"),
    ],
)
def test_an_edge_that_is_listed_twice_counts_once_with_its_lowest_limit(
    limits: tuple[int | None, ...], limit: float | None
) -> None:
    manifest, callee = group(("web", "db")), {"workload": {"selector": "db"}}
    stated = [{} if each is None else {"maxNetworkCost": each} for each in limits]
    manifest["spec"]["workloads"][0]["dependencies"] = [{**callee, **each} for each in stated]
    (edge,) = read_cluster([manifest]).groups[GROUP]
    assert (edge.caller, edge.callee, edge.limit) == ("web", "db", limit)


def test_edges_lead_to_workloads_of_the_group() -> None:
    manifest = group(("web", "db"), limit=7)
    manifest["spec"]["workloads"][1]["dependencies"] = [{"workload": {"selector": "gone"}}]
    (edge,) = read_cluster([manifest]).groups[GROUP]
    assert (edge.caller, edge.callee, edge.limit) == ("web", "db", 7.0)


def test_cordoned_nodes_have_the_taint() -> None:
    manifest = node("n")
    manifest["spec"] = {"unschedulable": True, "taints": None}
    (taint,) = read_cluster([manifest]).nodes["n"].taints
    assert taint["effect"] == "NoSchedule"
    assert read_cluster([node("n", "z", "r")]).nodes["n"].labels[REGION] == "r"


def test_nothing() -> None:
    assert read_cluster([{}]) == Cluster()
