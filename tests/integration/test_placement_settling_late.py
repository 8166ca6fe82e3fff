"""What was applied with an application is late: Services on their watch, weights that another controller computes.

Pods wait for Services up to two seconds and for weights up to five, which are more where a test is about what comes in
time: on a busy machine nothing does. Who waits, how long and what is told: test_cycle_settling.py of the unit tests.
"""

from __future__ import annotations

import operator
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.chosen_constants import PATIENT, chosen_constants
from tests.support.faults import Fault, FaultProxy
from tests.support.placing import Stage, chain

SERVICES = "/api/v1/services"
MISSING = "NetworkDataMissing"


@pytest.fixture(scope="module")
def proxy(own_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    """The network between the placement controller and the API server."""
    with FaultProxy(own_cluster, directory=tmp_path_factory.mktemp("proxy")) as made:
        yield made


@pytest.fixture
def placement(proxy: FaultProxy, tmp_path: Path) -> Iterator[ControllerProcess]:
    """A placement controller as it is."""
    with ControllerProcess.start(
        ["placement"], kubeconfig=proxy.kubeconfig, directory=tmp_path, arguments=["--no-leader-elect"]
    ) as process:
        yield process.wait_ready()


@pytest.fixture
def patient(proxy: FaultProxy, tmp_path: Path) -> Iterator[ControllerProcess]:
    """A placement controller that waits for what comes, however long that takes."""
    with ControllerProcess.start(
        ["placement"],
        kubeconfig=proxy.kubeconfig,
        directory=tmp_path,
        arguments=["--no-leader-elect"],
        environment=chosen_constants(tmp_path / "constants", **PATIENT),
    ) as process:
        yield process.wait_ready()


Computing = Callable[[], ControllerProcess]


@pytest.fixture
def computing(own_cluster: LocalCluster, tmp_path: Path) -> Iterator[Computing]:
    """Starts a networktopology controller; all of them end with the test."""
    with ExitStack() as stack:

        def start() -> ControllerProcess:
            process = ControllerProcess.start(
                ["networktopology"],
                kubeconfig=own_cluster.kubeconfig,
                directory=tmp_path,
                arguments=["--no-leader-elect"],
            )
            return stack.enter_context(process)

        yield start


@pytest.fixture
def stage(own_cluster: LocalCluster) -> Stage:
    """Two zones of two nodes, each with room for all pods of a test."""
    made = Stage(own_cluster)
    for zone in ("z1", "z2"):
        made.nodes(f"{zone}-a", f"{zone}-b", zone=zone)
    return made


def apply(stage: Stage, *, replicas: int) -> None:
    """An application of two workloads, pods first, with its Services and its NetworkTopology."""
    for workload in ("front", "cart"):
        for number in range(replicas):
            stage.pod(f"{workload}-{number}", group="shop", workload=workload, labels={"app": workload})
    stage.apply(chain("front", "cart", members=2 * replicas))
    for workload in ("front", "cart"):
        body: dict[str, Any] = {
            "metadata": {"name": workload},
            "spec": {"selector": {"app": workload}, "ports": [{"port": 80}], "trafficDistribution": "PreferSameZone"},
        }
        stage.api.request("POST", f"/api/v1/namespaces/{stage.name}/services", body)
    stage.costs()


def weights(stage: Stage) -> list[str]:
    return [item["name"] for item in stage.topology()["spec"]["weights"]]


def test_services_that_are_seen_after_the_pods_are_planned_with(
    stage: Stage, proxy: FaultProxy, patient: ControllerProcess, computing: Computing
) -> None:
    """Calls that stay in their zone make a slice of the application in each; calls that go anywhere put it into one."""
    computing().wait_ready()

    def waited() -> float:
        return patient.metric("berth_placement_attempts_total", entry="group", result="waiting")

    held = proxy.add(Fault.HOLD, method="GET", path=SERVICES)
    proxy.cut_watches()
    proxy.wait_hits(held)
    apply(stage, replicas=2)
    eventually(lambda: "Dijkstra" in weights(stage), what="computed weights")
    before = waited()
    eventually(lambda: waited() > before + 1 or stage.bound(), what="an attempt with all else there")
    proxy.release(held)
    bound = stage.wait_bound()
    zones = {name: node.partition("-")[0] for name, node in bound.items()}
    for workload in ("front", "cart"):
        assert {zones[f"{workload}-{number}"] for number in range(2)} == {"z1", "z2"}, bound
    assert not stage.events("shop", reason=MISSING)


@pytest.mark.parametrize("how", ["slow", "killed and started again"])
def test_weights_that_come_after_two_seconds_are_for_later_pods(
    stage: Stage, placement: ControllerProcess, computing: Computing, how: str
) -> None:
    process = computing().wait_ready()

    def seen() -> float:
        return placement.metric("berth_watch_events_total", resource="networktopologies", type="MODIFIED")

    os.kill(process.pid, signal.SIGSTOP)
    apply(stage, replicas=1)
    stage.wait_bound()
    assert stage.decision("front-0")["network"]["weights"] == ["UserDefined"]
    said = stage.wait_event("shop", MISSING)
    assert said == (
        f"No longer waiting for network data. No weights computed of NetworkTopology {stage.name}/net as it is, "
        "its conditions say why; UserDefined is used"
    )
    before = seen()
    if how == "slow":
        os.kill(process.pid, signal.SIGCONT)
    else:
        process.kill()
        computing().wait_ready()
    eventually(lambda: "Dijkstra" in weights(stage), what="computed weights")
    # Two watches are not ordered: they must have arrived before the pod does.
    eventually(seen, accept=lambda count: count > before, what="the weights are known")
    stage.pod("front-1", group="shop", workload="front")
    stage.wait_bound("front-1")
    assert len(stage.events("shop", reason=MISSING)) == 1
    assert "Dijkstra" in stage.decision("front-1")["network"]["weights"]


@pytest.mark.usefixtures("patient")
def test_two_that_compute_agree(stage: Stage, own_cluster: LocalCluster, computing: Computing) -> None:
    """Without leader election both write the same weights, and neither writes again what the other wrote."""
    both = [computing(), computing()]
    for process in both:
        process.wait_ready()
    apply(stage, replicas=1)
    stage.wait_bound()
    assert "Dijkstra" in stage.decision("front-0")["network"]["weights"]
    assert not stage.events("shop", reason=MISSING)

    def handled() -> list[float]:
        return [process.metric("berth_networktopology_reconcile_seconds_count") for process in both]

    def seen_by_both() -> None:
        """Another topology is handled by both: what was due before has been done."""
        before, other = handled(), Stage(own_cluster)
        other.costs()
        eventually(lambda: all(map(operator.gt, handled(), before)), what="both have handled another topology")
        eventually(lambda: "Dijkstra" in weights(other), what="its weights")

    seen_by_both()
    version = stage.topology()["metadata"]["resourceVersion"]
    seen_by_both()
    assert stage.topology()["metadata"]["resourceVersion"] == version
