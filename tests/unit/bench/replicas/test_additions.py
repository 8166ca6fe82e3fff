"""One more replica of applications that are placed: what the problem is made of, and how a choice is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from bench.replicas.additions import CLOSE, Addition, Size, add_replicas, free_room, lines, manifests, own_cost
from bench.replicas.cluster import GROUP_LABEL, Manifest, read_cluster
from bench.replicas.growth import by_berth_plan
from tests.support.replicas import GROUP, SMALL, group, placed

SMALL_SIZE = Size(applications=3, nodes=12, regions=2, zones=2)


def nodes_of(documents: Sequence[Manifest]) -> list[str]:
    return [item["metadata"]["name"] for item in documents if item["kind"] == "Node"]


def waiting(documents: Sequence[Manifest]) -> list[Manifest]:
    return [item for item in documents if item["kind"] == "Pod" and not item["spec"].get("nodeName")]


def on_first(documents: Sequence[Manifest]) -> Mapping[str, str]:
    return {pod["metadata"]["name"]: nodes_of(documents)[0] for pod in waiting(documents)}


def later_on_last(documents: Sequence[Manifest]) -> Mapping[str, str]:
    """The first pods on the first node, those that come later on the last one, which is in another region."""
    first = not any(item["kind"] == "Pod" and item["spec"].get("nodeName") for item in documents)
    return {pod["metadata"]["name"]: nodes_of(documents)[0 if first else -1] for pod in waiting(documents)}


def test_a_seed_is_one_problem() -> None:
    assert manifests(SMALL_SIZE, 1) == manifests(SMALL_SIZE, 1)
    assert manifests(SMALL_SIZE, 1) != manifests(SMALL_SIZE, 2)


def test_what_it_is_made_of() -> None:
    documents, pods = manifests(Size(), 0)
    cluster = read_cluster(documents)
    assert (len(cluster.nodes), len(cluster.groups)) == (350, 150)
    assert len({node.zone for node in cluster.nodes.values()}) == 30
    assert 4 <= min(cluster.zone_costs.values()) <= max(cluster.zone_costs.values()) <= 30
    assert (min(cluster.region_costs.values()), max(cluster.region_costs.values())) == (30, 2970)
    called = {edge.callee for edges in cluster.groups.values() for edge in edges}
    workloads = {pod["metadata"]["labels"]["app"] for pod in pods}
    assert len(workloads - called) == 150  # one entry each
    assert {pod["metadata"]["labels"][GROUP_LABEL] for pod in pods} == {name for _, name in cluster.groups}


def test_a_replica_beside_its_peers_costs_nothing() -> None:
    found = add_replicas(SMALL_SIZE, planner=on_first)
    assert [(item.cost, item.outside) for item in found] == [(0.0, False)] * 3


@pytest.mark.parametrize("spread", ["soft", "none"])
def test_later_replicas_by_berth_plan_cost_at_most_a_tenth_more_than_they_must(spread: str) -> None:
    """Nearly full nodes, costs from 1 to 2970; survival has its price: replicas leave a node that all others share.

    In sum, as in the benchmark: a callee on the same node may not be worth a fuller one; one replica then pays 1 for 0.
    """

    def planner(documents: Sequence[Manifest]) -> Mapping[str, str]:
        stated = {"annotations": {"berth.dev/spread": spread}}
        return by_berth_plan(
            [
                {**item, "metadata": {**item["metadata"], **stated}} if item["kind"] == "AppGroup" else item
                for item in documents
            ]
        )

    size = Size(applications=15, nodes=35, regions=5, zones=2)
    found = [item for seed in (0, 2, 3) for item in add_replicas(size, seed=seed, planner=planner)]
    assert len(found) == 45
    assert sum(item.cost for item in found) <= CLOSE * sum(item.best for item in found)


def test_a_replica_far_away_is_outside_and_dear() -> None:
    found = add_replicas(SMALL_SIZE, planner=later_on_last)
    assert all(item.outside and item.cost >= 4.0 for item in found)
    assert all(item.best <= 4.0 < item.cost * 10 for item in found)


@pytest.mark.parametrize(
    ("workload", "node", "cost"),
    [
        pytest.param("web", "a1-1", (0 + 5) / 2, id="calls-both"),
        pytest.param("db", "a1-1", (0 + 1 + 80) / 3, id="is-called-by-all"),
        pytest.param("db", "b1-1", (80 + 80 + 0) / 3, id="far"),
        pytest.param("cache", "a1-1", 0.0, id="has-no-edges"),
    ],
)
def test_own_cost(workload: str, node: str, cost: float) -> None:
    pods = placed(web=["a1-1", "a1-2", "b1-1"], db=["a1-1", "a2-1"])
    cluster = read_cluster([*SMALL, group(("web", "db")), *pods])
    assert own_cost(cluster, GROUP, cluster.members(GROUP), workload, node) == pytest.approx(cost)


def test_room() -> None:
    cluster = read_cluster([*SMALL, group(("web", "db")), *placed({"cpu": "1"}, web=["a1-1", "a1-1"])])
    room = free_room(cluster)
    assert (room["a1-1"]["cpu"], room["a1-1"]["pods"], room["a1-2"]["cpu"]) == (2.0, 108.0, 4.0)


def test_lines() -> None:
    found = [Addition("a", 1.1, 1.0, False), Addition("b", 5.0, 1.0, True), Addition("c", 0.0, 0.0, False)]
    rows = dict(line.strip("| ").split(" | ") for line in lines(found))
    assert list(rows.values()) == ["3", "6", "2", "2", "1"]
