"""Bandwidth that was admitted stays charged: AppGroups are edited after placement, and the controller restarts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from berth.api.labels import ANNOTATION_ADMITTED_BANDWIDTH, RESOURCE_BANDWIDTH
from controllers.placement import allocation_writer, link_usage
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.placing import InProcess, Stage, chain, configuration, profile


@pytest.mark.parametrize(
    ("edit", "others", "fits"),
    [
        pytest.param({"minBandwidth": "1e30"}, "15M", True, id="raised"),
        pytest.param({"minBandwidth": "1"}, "30M", False, id="lowered"),
        pytest.param({}, "30M", False, id="no-longer-stated"),
        pytest.param(None, "30M", False, id="deleted"),
    ],
)
def test_an_edit_changes_nothing_for_pods_that_are_placed(
    own_cluster: LocalCluster, tmp_path: Path, edit: dict[str, Any] | None, others: str, fits: bool
) -> None:
    stage = Stage(own_cluster)
    capacity: dict[str, Any] = {RESOURCE_BANDWIDTH: "100M"}
    stage.nodes("n1", "n2", **capacity)
    stated = profile(waitSeconds=600) | {"weightSets": ["UserDefined"]}
    arguments = ["--no-leader-elect", *configuration(tmp_path, stated)]

    def controller() -> ControllerProcess:
        return ControllerProcess.start(
            ["placement"], kubeconfig=own_cluster.kubeconfig, directory=tmp_path, arguments=arguments
        )

    def pair(name: str, caller: str, callee: str, bandwidth: str) -> None:
        stage.apply(chain(caller, callee, name=name, minBandwidth=bandwidth))
        for workload, node in ((caller, "n1"), (callee, "n2")):
            selector = {"kubernetes.io/hostname": stage.node(node)}
            stage.pod(workload, group=name, workload=workload, nodeSelector=selector)

    with controller() as first:
        first.wait_ready()
        pair("shop", "a", "b", "80M")
        assert stage.wait_bound() == {"a": "n1", "b": "n2"}
        written = stage.pods()["a"]["metadata"]["annotations"][ANNOTATION_ADMITTED_BANDWIDTH]
        assert json.loads(written) == {"b": 80_000_000}
    if edit is None:
        stage.delete_group("shop")
    else:
        stage.apply(chain("a", "b", **edit))
    with controller() as second:
        second.wait_ready()
        pair("others", "x", "y", others)
        if fits:
            assert stage.wait_bound("x", "y")
        else:
            assert "too little bandwidth" in stage.wait_event("x", "FailedScheduling")
            assert set(stage.bound()) == {"a", "b"}
    stage.close()


def test_a_full_link_keeps_pods_waiting_until_its_capacity_is_raised(own_cluster: LocalCluster, tmp_path: Path) -> None:
    stage = Stage(own_cluster)
    stage.nodes("n1", zone="z1")
    stage.nodes("n2", zone="z2")
    stage.links(z1_z2="1M")
    arguments = ["--no-leader-elect", *configuration(tmp_path, profile(waitSeconds=600))]
    with ControllerProcess.start(
        ["placement"], kubeconfig=own_cluster.kubeconfig, directory=tmp_path, arguments=arguments
    ) as controller:
        controller.wait_ready()
        stage.apply(chain("a", "b", minBandwidth="1G"))
        for workload, node in (("a", "n1"), ("b", "n2")):
            selector = {"kubernetes.io/hostname": stage.node(node)}
            stage.pod(workload, group="shop", workload=workload, nodeSelector=selector)
        said = stage.wait_event("b", "FailedScheduling", "too little bandwidth on link")
        assert f"{stage.name}-z1-{stage.name}-z2 (zone): 1G bit/s wanted, 1M bit/s free" in said
        assert stage.bound() == {}
        stage.links(z1_z2="1G")
        assert stage.wait_bound() == {"a": "n1", "b": "n2"}
    stage.close()


def test_what_is_taken_of_a_link_is_written_beside_what_people_state(
    own_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((allocation_writer, "LOOK_SECONDS"), (allocation_writer, "WRITE_SECONDS")):
        monkeypatch.setattr(module, name, 0.1)
    monkeypatch.setattr(link_usage, "WRITE_SECONDS", 0.1)
    stage = Stage(own_cluster)
    stage.nodes("n1", zone="z1")
    stage.nodes("n2", zone="z2")
    stage.links(z1_z2="1G")
    stage.apply(chain("a", "b", minBandwidth="100M"))

    def shown() -> list[str]:
        sets = {item["name"]: item for item in stage.topology()["spec"]["weights"]}
        assert "bandwidthAllocated" not in json.dumps(sets["UserDefined"])
        levels = sets.get("BandwidthAllocated", {}).get("topologyList", [])
        return [
            cost["bandwidthAllocated"] for level in levels for row in level["originList"] for cost in row["costList"]
        ]

    def wait(amount: str) -> None:
        eventually(shown, accept=lambda found: found == [amount, amount], what=f"{amount} bit/s taken of the link")

    def pod(workload: str, node: str, **fields: Any) -> None:
        selector = {"kubernetes.io/hostname": stage.node(node)}
        stage.pod(workload, group="shop", workload=workload, nodeSelector=selector, **fields)

    with InProcess(own_cluster.kubeconfig, profile(waitSeconds=0), timeout=30):
        wait("0")
        pod("a", "n1")
        pod("b", "n2")
        stage.wait_bound("a", "b")
        wait("100000000")
        stage.links(z1_z2="2G")  # an apply of people conflicts with nothing
        wait("100000000")
        stage.delete_pod("b")
        wait("0")
    stage.delete_pod("a")
    with InProcess(own_cluster.kubeconfig, profile(waitSeconds=0), timeout=30):
        pod("a", "n1")
        pod("b", "n2")
        wait("100000000")
        stage.delete_group("shop")
        # What was admitted stays charged.
        stage.links(z1_z2="3G")
        wait("100000000")
    stage.delete_pod("b")
    stage.overwrite_allocated("9e18")
    with InProcess(own_cluster.kubeconfig, profile(waitSeconds=0), timeout=30):
        wait("0")
        stage.overwrite_allocated("-5")
        wait("0")
    stage.close()
