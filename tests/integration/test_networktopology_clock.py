"""The clock of the networktopology controller jumps, or is wrong from its start; that of the nodes is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.chosen_constants import BRISK
from tests.support.costs import Costs, condition
from tests.support.reported_costs import NEAR, Reports
from tests.support.stepped_clock import SteppedClock

HOUR, DAY = 3600, 86_400
DELAYED: dict[str, Any] = dict.fromkeys(
    ("n1_n3", "n1_n4", "n2_n3", "n2_n4", "n3_n1", "n3_n2", "n4_n1", "n4_n2"), 20_850
)


@pytest.fixture
def reports(eight_nodes: LocalCluster) -> Iterator[Reports]:
    """No reports before, none after."""
    yield Reports(eight_nodes)
    eight_nodes.kubectl("delete", "probereports", "--all")


def started(cluster: LocalCluster, directory: Path, clock: SteppedClock) -> ControllerProcess:
    """A controller with that clock."""
    return ControllerProcess.start(
        ["networktopology"],
        kubeconfig=cluster.kubeconfig,
        directory=directory,
        arguments=["--no-leader-elect"],
        environment=clock.environment,
    )


def test_jumps_move_no_cost_and_measurements_go_on(
    eight_nodes: LocalCluster, tmp_path: Path, costs: Costs, reports: Reports
) -> None:
    clock = SteppedClock(tmp_path / "clock", constants=BRISK)
    reports.write()
    costs.create()
    with started(eight_nodes, tmp_path, clock) as controller:

        def passes() -> float:
            reports.write()
            return controller.metric("berth_networktopology_compute_seconds_count")

        controller.wait_ready()
        costs.wait_zones("Dijkstra", NEAR)
        costs.wait_reason("SourceAvailable", "ProbeReportsRead")
        before = costs.get()["spec"]
        for seconds in (HOUR, -HOUR, DAY, 0, -DAY):
            clock.step(seconds)
            begun = passes()
            # The first may be about what was written before.
            eventually(passes, accept=(begun + 2).__le__, what="reports looked at")
            found = costs.get()
            assert found["spec"] == before
            assert condition(found, "SourceAvailable")["reason"] == "ProbeReportsRead"
        reports.write(**DELAYED)
        costs.wait_zones("Dijkstra", {**NEAR, "Z1>Z2": 209, "Z2>Z1": 209})


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        pytest.param(HOUR, "more than an hour ahead of", id="ahead"),
        pytest.param(-DAY - HOUR, "more than a day behind", id="behind"),
    ],
)
def test_a_clock_that_is_wrong_from_the_start_is_told_and_outvoted(
    eight_nodes: LocalCluster, tmp_path: Path, costs: Costs, reports: Reports, seconds: float, says: str
) -> None:
    clock = SteppedClock(tmp_path / "clock", constants=BRISK)
    reports.write(age=100.0)
    costs.create()
    with started(eight_nodes, tmp_path, clock):
        costs.wait_zones("Dijkstra", NEAR)
        costs.wait_reason("SourceAvailable", "ProbeReportsRead")
    before = costs.get()["spec"]
    clock.step(seconds)
    with started(eight_nodes, tmp_path, clock):
        costs.wait_reason("SourceAvailable", "ProbeReportsUnreadable")
        assert costs.get()["spec"] == before, "until agents have reported costs stay"
        reports.write(**DELAYED)
        costs.wait_zones("Dijkstra", {**NEAR, "Z1>Z2": 209, "Z2>Z1": 209})
        source = costs.wait_reason("SourceAvailable", "ClocksDiffer")
        assert source["status"] == "True"
        assert says in source["message"]
    eventually(costs.events, accept=lambda found: ("Warning", "ClocksDiffer") in found, what="an Event")
