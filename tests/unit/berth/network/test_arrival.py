"""What a pod's arrival changes; node budgets against plain loops in test_bandwidth_routing.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from berth.network.arrival import Arrival, arrivals, over_links_on_arrival, short_on_arrival
from berth.network.edges import Routes
from berth.network.groups import read_group
from berth.network.limits import NOTHING_PLANNED, Planned
from berth.network.members import GroupMembers
from berth.network.routing import Routing
from tests.support.placement import chain, group_object, member

NODES = {f"n{number}": number for number in range(4)}
ZONES = {"n0": "z0", "n1": "z0", "n2": "z1", "n3": ""}
PLACES: dict[str, Any] = {"location": np.array([0, 0, 1, 2]), "zone": np.array([0, 1, -1])}
ALIVE = np.ones(4, dtype=np.bool_)


def found(
    workload: str, *pods: Any, routing: Routing = Routing.SAME_ZONE, planned: Planned = NOTHING_PLANNED, **demand: Any
) -> list[Arrival]:
    """Calls of a -> b with 12 bit/s each."""
    group = read_group(group_object("shop", *chain("a", "b", "c", **(demand or {"minBandwidth": "12"}))))
    members = GroupMembers()
    for pod in (*pods, member("new", workload)):
        members.update(pod, node=pod.spec.node_name)
    key = group.key
    routes = Routes(lambda _, name: routing if name == "b" else Routing.ALL, ZONES.get)
    return arrivals(workload, group, members.callers(key), members.places(key), NODES, routes, planned)


def short(edges: list[Arrival], *free: int) -> list[int]:
    found: list[int] = short_on_arrival(edges, **PLACES, free=np.array(free), alive=ALIVE).astype(int).tolist()
    return found


@pytest.mark.parametrize(
    ("workload", "routing", "demand"),
    [
        pytest.param("a", Routing.ALL, {"minBandwidth": "12"}, id="calls-go-to-all"),
        pytest.param("c", Routing.SAME_ZONE, {"minBandwidth": "12"}, id="its-calls-go-to-all"),
        pytest.param("a", Routing.SAME_ZONE, {"maxNetworkCost": 1}, id="no-bandwidth"),
    ],
)
def test_nothing_to_compare(workload: str, routing: Routing, demand: dict[str, Any]) -> None:
    pods = [member("a1", "a", on="n0"), member("b1", "b", on="n1")]
    assert found(workload, *pods, routing=routing, **demand) == []


def test_a_caller_takes_what_it_calls_with_where_it_is_sent() -> None:
    edges = found("a", member("b1", "b", on="n1"), member("b2", "b", on="n2"))
    assert short(edges, 12, 12, 12, 12) == [0, 0, 0, 0]
    assert short(edges, 12, 11, 12, 12) == [1, 0, 0, 0]
    assert short(edges, 11, 12, 12, 11) == [1, 0, 0, 1]
    assert short(edges, 12, 12, 5, 12) == [0, 0, 0, 1]


def test_an_endpoint_takes_calls_off_others() -> None:
    edges = found("b", member("a1", "a", on="n0"), member("b1", "b", on="n1"), member("b2", "b", on="n2"))
    # On n1 beside the other it takes no more of anybody; on n3 it sends the caller to all of them, a third to each.
    assert short(edges, 0, 0, 0, 0) == [0, 0, 0, 1]
    assert short(edges, 0, 0, 4, 4) == [0, 0, 0, 0]


def test_planned_pods_are_there_as_well() -> None:
    placed = [member("a1", "a", on="n0")]
    assert short(found("b", *placed), 12, 12, 0, 12) == [0, 0, 1, 0]
    # With an endpoint planned in the caller's zone, one in another zone is not called.
    waiting = member("b1", "b")
    assert short(found("b", *placed, waiting, planned={"b": {"n1": 1}}), 12, 12, 0, 12) == [0, 0, 0, 0]
    # A planned caller brings its calls.
    assert short(found("b", *placed, planned={"a": {"n1": 1}}), 12, 12, 12, 24) == [0, 0, 1, 0]


def test_links_on_the_way() -> None:
    def path(first: int, second: int) -> Iterable[int]:
        """One link, between z0 and everything else."""
        return [0] if (first < 2) != (second < 2) else []

    def short(free: int) -> list[tuple[int, float, list[bool]]]:
        found = over_links_on_arrival(edges, **PLACES, path=path, kind=np.arange(4), free=[free], among=ALIVE)
        return [(link, wanted, nodes.tolist()) for link, wanted, nodes in found]

    edges = found("a", member("b1", "b", on="n1"), member("b2", "b", on="n2"))
    assert short(12) == []
    assert short(5) == [(0, 6, [False, False, False, True])]
