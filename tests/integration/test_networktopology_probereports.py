"""Costs from ProbeReports on a real API server: agents' figures become weights, choices count, faults do no harm.

Reports are written as the agents would; what agents measure is in test_node_agent.py. The control plane is the module's
own, because reports are about the whole cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from berth.api.labels import LABEL_REGION
from berth.cli.main import kubectl_app
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.costs import EIGHT_NODES, ZONE_COSTS, Costs, condition, table, user_defined
from tests.support.reported_costs import NEAR, Reports
from tests.support.topologies import probe_report, probed_peer

pytestmark = pytest.mark.usefixtures("networktopology_controller")

FAR = {"us-east-1>us-west-1": 784, "us-west-1>us-east-1": 784}


@pytest.fixture
def reports(eight_nodes: LocalCluster) -> Iterator[Reports]:
    """No reports before, none after."""
    yield Reports(eight_nodes)
    eight_nodes.kubectl("delete", "probereports", "--all")


def test_reports_become_weights_and_what_people_stated_stays(costs: Costs, reports: Reports) -> None:
    stated = user_defined(zones=ZONE_COSTS)
    costs.create(stated, configmap="")
    costs.wait_zones("Dijkstra", ZONE_COSTS)
    reports.write()
    topology = costs.wait_zones("Dijkstra", NEAR)
    assert table(topology, "NetperfCosts") == NEAR
    assert table(topology, "Dijkstra", LABEL_REGION) == FAR
    assert topology["spec"]["weights"][0] == stated
    topology = costs.wait(
        lambda found: condition(found, "SourceAvailable")["reason"] == "ProbeReportsRead", what="read"
    )
    assert condition(topology, "SourceAvailable")["message"] == "ProbeReports of 8 nodes"
    assert condition(topology, "Complete")["status"] == "True"
    assert topology["status"]["dataTime"]


def test_reports_come_before_a_configmap_unless_the_annotation_says_otherwise(costs: Costs, reports: Reports) -> None:
    reports.write()
    costs.publish(n1_n3=44)
    costs.create()
    costs.wait_zones("Dijkstra", NEAR)
    costs.kubectl("annotate", "nt", "net", "berth.dev/source=configmap")
    costs.wait_zones("Dijkstra", {"Z1>Z2": 44})
    costs.kubectl("annotate", "nt", "net", "--overwrite", "berth.dev/source=probereports")
    costs.wait_zones("Dijkstra", NEAR)


def test_the_first_reports_of_a_rollout_move_nothing(costs: Costs, reports: Reports) -> None:
    costs.create(user_defined(zones=ZONE_COSTS), configmap="")
    costs.wait_reason("SourceAvailable", "UserDefined")  # those of the test before are gone here too
    reports.write(only=("n-1", "n-3"))
    source = costs.wait_reason("SourceAvailable", "TooFewProbeReports")
    assert "2 of 8 nodes report, and 2 nodes or more measure 1 of 6 pairs of zones" in source["message"]
    assert "until then costs come from UserDefined" in source["message"]
    costs.wait_zones("Dijkstra", ZONE_COSTS)
    reports.write()
    costs.wait_zones("Dijkstra", NEAR)
    costs.wait_reason("SourceAvailable", "ProbeReportsRead")
    reports.write(only=("n-1", "n-3"))
    costs.kubectl("delete", "probereports", "n-2", "n-4", "n-5", "n-6", "n-7", "n-8")
    name = "ProbeReports of 2 nodes"
    topology = costs.wait(lambda found: condition(found, "SourceAvailable")["message"] == name, what="two are left")
    assert topology["status"]["source"] == "probereports"


def test_a_node_that_reports_nonsense_moves_nothing(costs: Costs, reports: Reports) -> None:
    reports.write()
    costs.create()
    before = costs.wait_zones("Dijkstra", NEAR)
    nonsense = [probed_peer(peer, 59_000_000) for peer in (*EIGHT_NODES, "forged") if peer != "n-1"]
    reports.apply(probe_report("n-1", *nonsense), probe_report("not-a-node", probed_peer("n-1", 1)))
    costs.wait(
        lambda found: "no such node exists: peers of n-1, not-a-node" in condition(found, "SourceAvailable")["message"],
        what="who forges named",
    )
    assert costs.get()["spec"] == before["spec"]


def test_a_delay_shows_and_a_partition_is_missing_and_never_cheap(costs: Costs, reports: Reports) -> None:
    reports.write()
    costs.create()
    costs.wait_zones("Dijkstra", NEAR)
    west = [(f"n{a}", f"n{b}") for a in (1, 2) for b in (3, 4)]
    both = [f"{a}_{b}" for pair in west for a, b in (pair, pair[::-1])]
    slower: dict[str, Any] = dict.fromkeys(both, 20_850)
    reports.write(**slower)
    costs.wait_zones("Dijkstra", {**NEAR, "Z1>Z2": 209, "Z2>Z1": 209})
    silent: dict[str, Any] = dict.fromkeys(both)
    reports.write(**silent)
    topology = costs.wait_zones("Dijkstra", {"Z3>Z4": 12, "Z4>Z3": 12})
    assert table(topology, "NetperfCosts") == {"Z3>Z4": 12, "Z4>Z3": 12}
    complete = costs.wait_reason("Complete", "MissingCosts")
    assert "No path between zones: Z1 and Z2;" in complete["message"]


def test_reports_that_are_too_old_give_way_and_say_so(costs: Costs, reports: Reports) -> None:
    costs.create(user_defined(zones=ZONE_COSTS), configmap="")
    costs.wait_reason("SourceAvailable", "UserDefined")  # those of the test before are gone here too
    reports.write(age=1000)
    source = costs.wait_reason("SourceAvailable", "ProbeReportsStale")
    assert "until then costs come from UserDefined" in source["message"]
    costs.wait_zones("Dijkstra", ZONE_COSTS)
    reports.write()
    costs.wait_zones("Dijkstra", NEAR)


def test_figures_that_hardly_differ_are_no_reason_to_write_weights(
    costs: Costs, reports: Reports, networktopology_controller: ControllerProcess
) -> None:
    reports.write()
    costs.create()
    costs.wait_zones("Dijkstra", NEAR)
    costs.wait_reason("SourceAvailable", "ProbeReportsRead")
    before = costs.get()["spec"]

    def passes() -> float:
        reports.write(n1_n3=910, n2_n3=920, n3_n1=930, n4_n1=940)
        return networktopology_controller.metric("berth_networktopology_compute_seconds_count")

    begun = passes()
    # The first may be about what was written before.
    eventually(lambda: passes() >= begun + 2, what="reports looked at")
    assert costs.get()["spec"] == before


def test_the_matrix_shows_costs_and_what_was_measured(
    costs: Costs, reports: Reports, eight_nodes: LocalCluster
) -> None:
    reports.write(n1_n3=2_000)
    costs.create()
    costs.wait_zones("Dijkstra", NEAR)
    arguments = ["topology", "net", "-n", costs.kubectl.namespace, "--kubeconfig", str(eight_nodes.kubeconfig)]
    document = json.loads(CliRunner().invoke(kubectl_app, [*arguments, "-o", "json"]).stdout)
    assert [zone["name"] for zone in document["zones"]] == ["Z3", "Z4", "Z1", "Z2"]
    (pair,) = [item for item in document["pairs"] if (item["origin"], item["destination"]) == ("Z1", "Z2")]
    age = pair.pop("ageSeconds")
    assert 0 <= age < 60
    assert pair == {
        "origin": "Z1",
        "destination": "Z2",
        "cost": 9,
        "level": "zone",
        "derived": False,
        "p90Microseconds": 850,
        "minMicroseconds": 850,
        "maxMicroseconds": 2_000,
        "samples": 8,
    }
    page = CliRunner().invoke(kubectl_app, arguments)
    assert page.exit_code == 0
    assert ["3", "Z1", "784r", "784r", ".", "9"] in [line.split() for line in page.stdout.splitlines()]
    other = CliRunner().invoke(kubectl_app, ["topology", "nt", *arguments[2:]])
    assert (other.exit_code, other.stdout) == (2, "")
    assert "there is no NetworkTopology 'nt'" in other.stderr
