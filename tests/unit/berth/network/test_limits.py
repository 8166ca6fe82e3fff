"""Edges with maxNetworkCost of one pod, and the nodes that they forbid it.

What they forbid is compared with an independent evaluator in
tests/unit/berth/scheduling/plugins/test_network_overhead_routing.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from berth.network.groups import read_group
from berth.network.limits import LimitedEdge, limited_edges, nodes_beyond_limits
from berth.network.members import GroupMembers
from berth.network.routing import Routing
from berth.network.workload_places import WorkloadPlaces
from tests.support import kinds
from tests.support.placement import group_object, member

NODES = {"n0": 0, "n1": 1, "n2": 2}
GROUP = read_group(
    group_object("shop", kinds.workload("a", "b", maxNetworkCost=0), kinds.workload("b", "c"), kinds.workload("c"))
)


def places(*pods: Any) -> WorkloadPlaces:
    members = GroupMembers()
    for pod in pods:
        members.update(pod, node=pod.spec.node_name)
    return members.places(GROUP.key)


def seen(workload: str, *pods: Any, routing: Routing = Routing.SAME_ZONE, **arguments: Any) -> list[dict[str, Any]]:
    edges = limited_edges(workload, GROUP, places(*pods), NODES, lambda _: routing, **arguments)
    return [
        {
            "limit": edge.limit,
            "endpoints": sorted(edge.endpoints),
            "callers": None if edge.callers is None else sorted(edge.callers),
        }
        for edge in edges
    ]


@pytest.mark.parametrize(
    ("workload", "pods", "expected"),
    [
        pytest.param("a", [], [], id="nobody-is-there"),
        pytest.param(
            "a",
            [member("b1", "b", on="n1"), member("b2", "b", on="n1"), member("b3", "b", on="n2"), member("b4", "b")],
            [{"limit": 1.0, "endpoints": [1, 2], "callers": None}],
            id="it-calls-and-a-limit-of-0-admits-the-zone",
        ),
        pytest.param(
            "b",
            [member("a1", "a", on="n0"), member("b1", "b", on="n1"), member("c1", "c", on="n2")],
            [{"limit": 1.0, "endpoints": [1], "callers": [0]}],
            id="it-is-called-and-calls-without-a-limit",
        ),
        pytest.param("b", [member("b1", "b", on="n1")], [], id="nobody-calls-it"),
        pytest.param("c", [member("a1", "a", on="n0"), member("b1", "b", on="n0")], [], id="others-edges"),
        pytest.param("a", [member("b1", "b", on="gone")], [], id="a-node-that-is-not-known"),
        pytest.param("a", [member("b1", "b", on="n1", deleting=True)], [], id="being-deleted"),
    ],
)
def test_edges(workload: str, pods: list[Any], expected: list[dict[str, Any]]) -> None:
    assert seen(workload, *pods) == expected


def test_planned_pods_count_as_placed() -> None:
    found = seen("b", member("b1", "b", on="n1"), planned={"a": {"n0": 1}, "b": {"n2": 2, "n0": 0}})
    assert found == [{"limit": 1.0, "endpoints": [1, 2], "callers": [0]}]


def test_other_endpoints_are_not_looked_at_where_all_are_called_anyway() -> None:
    pods = [member("a1", "a", on="n0"), member("b1", "b", on="n1")]
    assert seen("b", *pods, routing=Routing.ALL) == [{"limit": 1.0, "endpoints": [], "callers": [0]}]


def test_calls_that_stay_on_the_node_have_no_limit() -> None:
    assert not seen("a", member("b1", "b", on="n1"), routing=Routing.LOCAL)


def test_edges_of_all_routings_together() -> None:
    """Nodes in z0, z0, z1, z2; a caller on the first, endpoints as each edge says."""
    places = {
        "location": np.array([0, 0, 1, 2], dtype=np.int32),
        "location_cost": np.array([[1.0, 9.0, 9.0], [9.0, 1.0, 9.0], [9.0, 9.0, 1.0]]),
        "zone": np.array([0, 1, 2]),
    }

    def beyond(*edges: LimitedEdge) -> list[int]:
        found: list[int] = nodes_beyond_limits(edges, **places).astype(int).tolist()
        return found

    towards = LimitedEdge(5.0, Routing.SAME_ZONE, [0, 2])
    called = LimitedEdge(5.0, Routing.ALL, [], [2])
    assert beyond(towards) == [0, 0, 0, 1]
    assert beyond(called) == [1, 1, 0, 1]
    assert beyond(towards, called) == [1, 1, 0, 1]
    assert beyond(LimitedEdge(5.0, Routing.SAME_NODE, [1], [0, 1])) == [0, 0, 0, 0]
    assert beyond(LimitedEdge(5.0, Routing.SAME_NODE, [2], [0])) == [0, 0, 1, 1]
