"""CheckRiskNodeBandwidth on a real API server: ProbeReports keep pods from busy links, until they are old."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from berth.api import probereport
from berth.api.labels import RESOURCE_BANDWIDTH
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.placing import Stage, configuration, profile

MBIT = 10**6


def report(stage: Stage, node: str, *, mean: int, deviation: int, age: float = 0.0) -> None:
    """Have a node say how busy its link of 1 Gbit/s is."""
    time = (datetime.now(UTC) - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    link = {
        "interface": "eth0",
        "capacityBitsPerSecond": 1000 * MBIT,
        "meanBitsPerSecond": mean * MBIT,
        "deviationBitsPerSecond": deviation * MBIT,
        "samples": 60,
    }
    name = stage.node(node)
    body = {
        "apiVersion": probereport.API_VERSION,
        "kind": probereport.KIND,
        "metadata": {"name": name},
        "status": {"time": time, "bandwidth": link, "peers": []},
    }
    for part in ("", "/status"):
        path = f"/apis/{probereport.API_VERSION}/{probereport.PLURAL}/{name}{part}?fieldManager=test&force=true"
        stage.api.request("PATCH", path, body, content_type="application/apply-patch+yaml")


def wanting(amount: str) -> list[dict[str, Any]]:
    """Containers of a pod that requests bandwidth; of extended resources request and limit are the same."""
    amounts = {"cpu": "100m", RESOURCE_BANDWIDTH: amount}
    return [
        {
            "name": "main",
            "image": "registry.invalid/main:1",
            "resources": {"requests": amounts, "limits": {RESOURCE_BANDWIDTH: amount}},
        }
    ]


def test_a_busy_link_takes_no_pod_that_needs_bandwidth(own_cluster: LocalCluster, tmp_path: Path) -> None:
    stage = Stage(own_cluster)
    capacity: dict[str, Any] = {RESOURCE_BANDWIDTH: "1G"}
    stage.nodes("n1", "n2", **capacity)
    report(stage, "n1", mean=700, deviation=600)
    report(stage, "n2", mean=700, deviation=600, age=900)  # the same, but of an agent that is gone
    settings = profile() | {"checkRiskNodeBandwidth": {}}
    with ControllerProcess.start(
        ["placement"],
        kubeconfig=own_cluster.kubeconfig,
        directory=tmp_path,
        arguments=["--no-leader-elect", *configuration(tmp_path, settings)],
    ) as controller:
        controller.wait_ready()
        for name in ("n1", "n2"):
            selector = {"kubernetes.io/hostname": stage.node(name)}
            stage.pod(f"wants-{name}", nodeSelector=selector, containers=wanting("100M"))
        assert stage.wait_bound("wants-n2")["wants-n2"] == "n2"
        assert "likely to be too busy" in stage.wait_event("wants-n1", "FailedScheduling", "likely to be too busy")
        stage.pod("wants-nothing", nodeSelector={"kubernetes.io/hostname": stage.node("n1")})
        assert stage.wait_bound("wants-nothing")["wants-nothing"] == "n1"
        assert "wants-n1" not in stage.bound()
    stage.close()
