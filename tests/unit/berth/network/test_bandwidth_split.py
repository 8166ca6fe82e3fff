"""How bandwidth is split over the endpoints that callers reach; against pairs of pods in test_bandwidth_routing.py."""

from __future__ import annotations

import pytest

from berth.network.bandwidth_split import Calls, Endpoints, node_usage, pair_bandwidth, pair_usage
from berth.network.routing import Routing

ZONES = {"n1": "z1", "n2": "z1", "n3": "z2", "n4": "z2", "n5": "", "n6": "z3"}


@pytest.mark.parametrize(
    ("routing", "endpoints", "nodes"),
    [
        pytest.param(Routing.ALL, {"n2": 1, "n3": 2}, {"n1": 24, "n2": 12, "n3": 24, "n6": 12}, id="all"),
        pytest.param(Routing.ALL, {}, {}, id="nobody-to-call"),
        pytest.param(Routing.SAME_ZONE, {"n2": 1, "n3": 2}, {"n1": 24, "n2": 28, "n3": 8, "n6": 12}, id="zone"),
        pytest.param(
            Routing.SAME_ZONE, {"n3": 1, "n5": 2}, {"n1": 24, "n3": 12, "n5": 24, "n6": 12}, id="zone-unknown"
        ),
        pytest.param(Routing.SAME_NODE, {"n1": 1, "n3": 2}, {"n1": 4, "n3": 8, "n6": 12}, id="node"),
        pytest.param(Routing.LOCAL, {"n2": 1, "n3": 2}, {}, id="local"),
    ],
)
def test_two_callers_of_12_in_z1_and_one_in_z3(
    routing: Routing, endpoints: dict[str, int], nodes: dict[str, int]
) -> None:
    calls = Calls(routing, {12: {"n1": 2, "n6": 1}}, endpoints, 3)
    assert {node: amount for node, amount in node_usage(calls.bundles(ZONES.get)).items() if amount} == nodes
    pairs = pair_usage(calls.bundles(ZONES.get))
    assert 2 * sum(pairs.values()) == sum(nodes.values())
    assert all(first < second for first, second in pairs)


def test_shares_are_whole_bits_rounded_up() -> None:
    assert [pair_bandwidth(10, n) for n in (1, 3, 4)] == [10, 4, 3]
    calls = Calls(Routing.SAME_ZONE, {10: {"n1": 1}, 20: {"n1": 2}}, {"n2": 3}, 9)
    assert pair_usage(calls.bundles(ZONES.get)) == {("n1", "n2"): 3 * (4 + 2 * 7)}


@pytest.mark.parametrize("routing", Routing)
@pytest.mark.parametrize("zone", ["z1", "z3", None], ids=["with others", "alone", "without a zone"])
@pytest.mark.parametrize("others", [{}, {"n2": 1, "n3": 2}, {"n2": 1, "n5": 1}], ids=["none", "two", "one has no zone"])
def test_one_endpoint_more(routing: Routing, zone: str | None, others: dict[str, int]) -> None:
    """As if all had been sorted together; `new` is a node of the zone."""

    def zone_of(node: str) -> str | None:
        return zone if node == "new" else ZONES.get(node)

    demand = {12: {"n1": 2, "n6": 1}, 7: {"n5": 1}}
    more = Endpoints.of(routing, others, 4, zone_of).with_one("new", zone)
    assert list(more.bundles(demand, zone_of)) == list(
        Endpoints.of(routing, {**others, "new": 1}, 4, zone_of).bundles(demand, zone_of)
    )
