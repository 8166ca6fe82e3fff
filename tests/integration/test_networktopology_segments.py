"""Segments on a real API server: what agents report inside a zone becomes costs of its racks, and lies, cuts and labels
that change show in these alone. What follows from such reports in all cases is in the unit tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from berth.api.networktopology import NetworkTopology
from berth.network.costs import Place, read_costs
from hack.localcluster import LocalCluster
from tests.support.costs import Costs, condition, table
from tests.support.reported_costs import Reports
from tests.support.topologies import probe_report, probed_peer

pytestmark = pytest.mark.usefixtures("networktopology_controller")

RACKS = {f"{rack}-{number}": f"rack-{rack}" for rack in "abc" for number in range(3)}
"""Nodes of a zone of their own, and their segments."""
ZONE = {LABEL_REGION: "us-west-1", LABEL_ZONE: "halls"}
INSIDE, NEAR, FAR = 200, 300, 900
"""Microseconds inside a rack, between the racks a and b, and between any other two."""
USUAL: dict[str, int | None] = {
    f"rack-{one}>rack-{other}": 3 if {one, other} == {"a", "b"} else 9
    for one in "abc"
    for other in "abc"
    if one != other
}


def usual(node: str, peer: str) -> int | None:
    racks = {RACKS[node], RACKS[peer]}
    return INSIDE if len(racks) == 1 else NEAR if racks == {"rack-a", "rack-b"} else FAR


def segment_costs(topology: Mapping[str, Any], name: str = "Dijkstra") -> dict[str, int | None]:
    """Costs between segments of a weight set; None where they do not reach each other."""
    return {
        f"{row['origin']}>{cost['destination']}": cost["networkCost"] if cost.get("isAllowed", True) else None
        for weights in topology["spec"]["weights"]
        if weights["name"] == name
        for level in weights["topologyList"]
        if level["topologyKey"] == LABEL_SEGMENT
        for row in level["originList"]
        for cost in row["costList"]
    }


class Halls:
    """The nodes of the racks, their reports, and a NetworkTopology."""

    def __init__(self, cluster: LocalCluster, costs: Costs) -> None:
        """Work with these."""
        self.cluster, self.costs = cluster, costs
        self._reports = Reports(cluster)

    def report(self, figure: Callable[[str, str], int | None] = usual) -> None:
        """Have every node report what it measures of every other."""
        items = [
            probe_report(node, *(probed_peer(peer, figure(node, peer)) for peer in RACKS if peer != node))
            for node in RACKS
        ]
        self._reports.apply(*items)

    def label(self, **segments: str) -> None:
        """Give nodes another segment: ``a_0="rack-x"``."""
        for name, segment in segments.items():
            node = name.replace("_", "-")
            self.cluster.kubectl("label", "node", node, "--overwrite", f"{LABEL_SEGMENT}={segment}")

    def wait(self, expected: Mapping[str, int | None]) -> dict[str, Any]:
        """Wait until both computed sets have exactly these costs of segments."""
        return self.costs.wait(
            lambda found: all(segment_costs(found, name) == expected for name in ("Dijkstra", "NetperfCosts")),
            what=f"costs of segments {expected}",
            timeout=240.0,
        )


@pytest.fixture
def halls(eight_nodes: LocalCluster, costs: Costs) -> Iterator[Halls]:
    """Three racks of three nodes that report what is usual, and a NetworkTopology with costs of it."""
    items = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {**ZONE, LABEL_SEGMENT: rack}}}
        for name, rack in RACKS.items()
    ]
    eight_nodes.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    found = Halls(eight_nodes, costs)
    found.report()
    manifest = costs.manifest(configmap="")
    manifest["metadata"]["annotations"] = {"berth.dev/source": "probereports"}
    costs.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    found.wait(USUAL)
    yield found
    eight_nodes.kubectl("delete", "probereports", "--all")
    eight_nodes.kubectl("delete", "nodes", *RACKS)


def test_racks_that_do_not_answer_each_other_are_cut_and_told_until_they_do(halls: Halls) -> None:
    def cut(node: str, peer: str) -> int | None:
        return None if {RACKS[node], RACKS[peer]} == {"rack-a", "rack-c"} else usual(node, peer)

    halls.report(cut)
    topology = halls.wait({**USUAL, "rack-a>rack-c": None, "rack-c>rack-a": None})
    halls.costs.wait(
        lambda found: "No answer between segments: rack-a and rack-c;" in condition(found, "Complete")["message"],
        what="the cut told",
    )
    costs = read_costs(NetworkTopology.parse(topology))
    a, b, c = (Place("us-west-1", "halls", f"rack-{rack}") for rack in "abc")
    assert (costs.between(a, b), costs.between(a, c), costs.between(c, a)) == (3.0, None, None)
    halls.report()
    halls.wait(USUAL)


@pytest.mark.parametrize(
    ("lie", "cost"),
    [
        pytest.param(1, 1, id="near"),
        pytest.param(50_000_000, 10_000, id="far"),
        pytest.param(None, None, id="cut off"),
    ],
)
def test_a_rack_that_lies_moves_no_cost_of_others_and_none_towards_it(
    halls: Halls, lie: int | None, cost: int | None
) -> None:
    halls.report(lambda node, peer: lie if RACKS[node] == "rack-c" else usual(node, peer))
    halls.wait({**USUAL, "rack-c>rack-a": cost, "rack-c>rack-b": cost})


def test_segments_that_are_renamed_keep_their_costs_under_their_new_name(halls: Halls) -> None:
    halls.label(b_0="n-1", b_1="n-1", b_2="n-1")
    halls.wait({pair.replace("rack-b", "n-1"): cost for pair, cost in USUAL.items()})


def test_a_name_in_two_zones_is_told_and_counts_in_that_of_most(halls: Halls) -> None:
    halls.label(n_1="rack-a")
    try:
        topology = halls.costs.wait(
            lambda found: (
                "Segments with nodes in several zones: rack-a (us-west-1/Z1, us-west-1/halls);"
                in condition(found, "Complete")["message"]
            ),
            what="the second zone told",
        )
        assert segment_costs(topology) == USUAL
        assert table(topology, "Dijkstra") == {}
    finally:
        halls.cluster.kubectl("label", "node", "n-1", f"{LABEL_SEGMENT}-")
