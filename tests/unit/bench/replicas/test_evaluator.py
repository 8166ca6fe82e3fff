"""What the evaluator says of placements that can be worked out by hand."""

from __future__ import annotations

import pytest

from bench.replicas.cluster import read_cluster
from bench.replicas.evaluator import edge_results, endpoint_loads, evaluate, reached, routing, together
from tests.support.replicas import GROUP, SMALL, Manifest, bound, boutique, group, node, placed, service

BOUTIQUE = ("default", "online-boutique")
EDGE = group(("web", "db"))
ZONAL = service("db", trafficDistribution="PreferSameZone")
NODAL = service("db", trafficDistribution="PreferSameNode")
LOCAL = service("db", internalTrafficPolicy="Local")


@pytest.mark.parametrize(
    ("nodes", "prefer", "cost", "node_survivors", "zone_survivors", "failover"),
    [
        pytest.param(["eu-west-a-01"] * 3, "", 0.0, 0, 0, None, id="one-node"),
        pytest.param(["eu-west-a-01"] * 2 + ["eu-west-a-02"], "", 4 / 9, 11, 0, None, id="two-nodes-of-a-zone"),
        pytest.param(["eu-west-a-01"] * 2 + ["eu-west-b-01"], "", 20 / 9, 11, 11, 0.0, id="two-zones-of-a-region"),
        pytest.param([f"eu-west-a-0{n}" for n in (1, 2, 3)], "", 2 / 3, 11, 0, None, id="three-nodes-of-a-zone"),
        pytest.param(
            ["eu-west-a-01", "eu-west-b-01", "us-east-a-01"], "", 330 / 9, 11, 11, 40.0, id="three-zones-all-endpoints"
        ),
        pytest.param(
            ["eu-west-a-01", "eu-west-b-01", "us-east-a-01"],
            "PreferSameZone",
            0.0,
            11,
            11,
            0.0,
            id="three-zones-slices",
        ),
        pytest.param(
            ["eu-west-a-01"] * 2 + ["eu-west-b-01"], "PreferSameZone", 0.0, 11, 11, 0.0, id="two-zones-slices"
        ),
        pytest.param(
            ["eu-west-a-01", "eu-west-a-02", "eu-west-b-01"], "PreferClose", 1 / 3, 11, 11, 0.5, id="apart-and-slices"
        ),
        pytest.param(
            [f"eu-west-a-0{n}" for n in (1, 2, 3, 4)], "PreferSameNode", 0.0, 11, 0, None, id="four-nodes-own-node"
        ),
        pytest.param([f"eu-west-a-0{n}" for n in (1, 2, 3, 4)], "", 0.75, 11, 0, None, id="four-nodes-of-a-zone"),
    ],
)
def test_online_boutique(
    nodes: list[str], prefer: str, cost: float, node_survivors: int, zone_survivors: int, failover: float | None
) -> None:
    found = evaluate(boutique(nodes, prefer=prefer), BOUTIQUE)
    assert (found.edges, found.replicated, found.pods, found.nodes) == (15, 11, 11 * len(nodes), len(set(nodes)))
    assert found.cost == pytest.approx(cost)
    assert (found.survive_node, found.survive_zone) == (node_survivors, zone_survivors)
    assert found.failover_cost == (None if failover is None else pytest.approx(failover))
    assert (found.endpoint_load, found.zone_load) == (pytest.approx(1.0), pytest.approx(1.0))


def test_slices_of_one_region_are_cheaper_by_all_endpoints_than_slices_of_two() -> None:
    """What a failover will cost: the figures that tell apart two placements of cost 0."""
    near = evaluate(boutique(["eu-west-a-01"] * 2 + ["eu-west-b-01"], prefer="PreferSameZone"), BOUTIQUE)
    far = evaluate(boutique(["eu-west-a-01", "eu-west-b-01", "us-east-a-01"], prefer="PreferSameZone"), BOUTIQUE)
    assert (near.cost, far.cost) == (0.0, 0.0)
    assert (near.cost_all, far.cost_all) == (pytest.approx(20 / 9), pytest.approx(330 / 9))
    assert (near.cross_zone, far.cross_zone) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("services", "web", "db", "cost", "cross", "unreachable"),
    [
        pytest.param([], ["a1-1"], ["a1-1", "a2-1"], 2.5, 0.5, 0.0, id="all"),
        pytest.param([ZONAL], ["a1-1"], ["a1-2", "a2-1"], 1.0, 0.0, 0.0, id="zone"),
        pytest.param([ZONAL], ["a1-1"], ["a1-1", "a1-2", "a2-1"], 0.5, 0.0, 0.0, id="zone-is-blind-to-nodes"),
        pytest.param([ZONAL], ["a1-1", "b1-1"], ["a1-1", "a2-1"], 40.0, 0.5, 0.0, id="zone-else-all"),
        pytest.param([NODAL], ["a1-1", "a1-2"], ["a1-1", "a2-1"], 0.5, 0.0, 0.0, id="node-else-zone"),
        pytest.param([LOCAL], ["a1-1", "a1-2"], ["a1-1", "a2-1"], 50.0, 0.0, 0.5, id="local-else-nothing"),
    ],
)
def test_edges(
    services: list[Manifest], web: list[str], db: list[str], cost: float, cross: float, unreachable: float
) -> None:
    found = evaluate(read_cluster([*SMALL, EDGE, *services, *placed(web=web, db=db)]), GROUP)
    assert (found.cost, found.cross_zone, found.unreachable) == (cost, cross, unreachable)


def test_one_endpoint_without_a_zone_ends_preference_of_zones_for_all() -> None:
    manifests = [*SMALL, node("lone"), EDGE, ZONAL, *placed(web=["a1-1"], db=["a1-1", "lone"])]
    found = evaluate(read_cluster(manifests), GROUP)
    assert found.cost == pytest.approx((0 + 100) / 2)
    pods = bound(read_cluster(manifests))
    ends = [pods["db-1"], pods["db-2"]]
    assert reached(read_cluster(manifests), pods["web-1"], ends, "PreferSameZone") == ends


@pytest.mark.parametrize(
    ("services", "expected"),
    [
        pytest.param([], "All", id="none"),
        pytest.param([service("db", type="ExternalName", internalTrafficPolicy="Local")], "All", id="external-name"),
        pytest.param([service("db", selector={}, internalTrafficPolicy="Local")], "All", id="no-selector"),
        pytest.param([service("db", clusterIP="None", internalTrafficPolicy="Local")], "All", id="headless"),
        pytest.param([LOCAL], "Local", id="local"),
        pytest.param([service("a", selector={"app": "db"}), NODAL], "PreferSameNode", id="named-like-it"),
        pytest.param(
            [service("z", selector={"app": "db"}, internalTrafficPolicy="Local"), service("b")], "Local", id="selecting"
        ),
        pytest.param(
            [{**ZONAL, "metadata": {"name": "db", "annotations": {"service.kubernetes.io/topology-mode": "Auto"}}}],
            "All",
            id="topology-mode",
        ),
        pytest.param([{**ZONAL, "metadata": {"name": "db", "namespace": "other"}}], "All", id="other-namespace"),
    ],
)
def test_routing(services: list[Manifest], expected: str) -> None:
    cluster = read_cluster([*SMALL, EDGE, *services, *placed(db=["a1-1"])])
    assert routing(cluster, "db", cluster.members(GROUP)["db"]) == expected


def test_members_of_a_stateful_set_are_all_called() -> None:
    (db,) = placed(db=["a1-1"])
    db["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "db"}]
    cluster = read_cluster([*SMALL, EDGE, ZONAL, db])
    assert routing(cluster, "db", cluster.members(GROUP)["db"]) == "All"


@pytest.mark.parametrize(
    ("web", "db", "loads"),
    [
        pytest.param(["a1-1", "a2-1"], ["a1-1", "a2-1"], [1.0, 1.0], id="even"),
        pytest.param(["a1-1", "a1-1", "a2-1"], ["a1-1", "a2-1", "a2-1"], [2.0, 0.5, 0.5], id="askew"),
        pytest.param(["a1-1"], ["a1-1", "a2-1"], [2.0, 0.0], id="idle"),
        pytest.param(["b1-1", "a1-1"], ["a1-1", "a2-1"], [1.5, 0.5], id="from-a-zone-without-any"),
    ],
)
def test_loads(web: list[str], db: list[str], loads: list[float]) -> None:
    cluster = read_cluster([*SMALL, EDGE, ZONAL, *placed(web=web, db=db)])
    edges, members = cluster.groups[GROUP], cluster.members(GROUP)
    assert list(endpoint_loads(cluster, edges, members, "db").values()) == pytest.approx(loads)
    assert endpoint_loads(cluster, edges, members, "web") == {}
    found = evaluate(cluster, GROUP)
    assert found.endpoint_load == pytest.approx(max(loads))


@pytest.mark.parametrize(
    ("web", "loads"),
    [
        pytest.param(["a1-1", "a1-2"], [2.0, 0.0], id="some-fail"),
        pytest.param(["a1-2"], [], id="all-fail"),
    ],
)
def test_calls_that_fail_load_nobody(web: list[str], loads: list[float]) -> None:
    cluster = read_cluster([*SMALL, EDGE, LOCAL, *placed(web=web, db=["a1-1", "a2-1"])])
    found = endpoint_loads(cluster, cluster.groups[GROUP], cluster.members(GROUP), "db")
    assert list(found.values()) == loads


@pytest.mark.parametrize(
    ("web", "db", "failover"),
    [
        pytest.param(["a1-1", "b1-1"], ["a1-1", "a2-1"], 80.0, id="the-worst-zone"),
        pytest.param(["a1-1"], ["a1-1"], None, id="nothing-left"),
        pytest.param(["a1-1", "a2-1"], ["a2-1"], 0.0, id="an-edge-whose-end-is-gone-does-not-count"),
    ],
)
def test_failover(web: list[str], db: list[str], failover: float | None) -> None:
    found = evaluate(read_cluster([*SMALL, EDGE, ZONAL, *placed(web=web, db=db)]), GROUP)
    assert found.failover_cost == failover


def test_several_groups_together() -> None:
    one = evaluate(read_cluster([*SMALL, EDGE, *placed(web=["a1-1", "a2-1"], db=["a1-1", "a1-1"])]), GROUP)
    other = evaluate(boutique(["eu-west-a-01"] * 3), BOUTIQUE)
    both = together([one, other])
    assert (both.pods, both.edges, both.replicated) == (37, 16, 13)
    assert (both.survive_node, both.survive_zone) == (1, 1)
    assert both.cost == pytest.approx((one.cost * 1 + other.cost * 15) / 16)
    assert both.failover_cost == one.failover_cost
    assert together([one]) == one
    with pytest.raises(ValueError, match="no evaluations"):
        together([])


def test_edges_of_workloads_without_replicas_do_not_count() -> None:
    cluster = read_cluster([*SMALL, group(("web", "db"), ("web", "cache")), *placed(web=["a1-1"], db=["a1-2"])])
    assert [found.edge.callee for found in edge_results(cluster, cluster.groups[GROUP], cluster.members(GROUP))] == [
        "db"
    ]


def test_nodes_without_a_zone_fail_alone() -> None:
    found = evaluate(read_cluster([node("n1"), node("n2"), EDGE, *placed(web=["n1", "n2"], db=["n1", "n1"])]), GROUP)
    assert (found.replicated, found.survive_node, found.survive_zone) == (2, 1, 1)
