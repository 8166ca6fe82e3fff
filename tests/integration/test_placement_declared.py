"""Pods of an application come in waves, as a controller creates them: the first plan is of all that were declared.

How long they wait: test_declared.py of the unit tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.chosen_constants import chosen_constants
from tests.support.faults import Fault, FaultProxy
from tests.support.placing import Stage, chain

WORKLOADS = ("front", "cart")
REPLICAS = 3
AT_ONCE = {f"berth.scheduling.settling.{name}": 0.0 for name in ("SETTLE_SECONDS", "WEIGHTS_SECONDS")}
"""Nobody computes weights here, and nobody waits for them."""


@pytest.fixture(scope="module")
def proxy(own_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    """The network between the placement controller and the API server."""
    with FaultProxy(own_cluster, directory=tmp_path_factory.mktemp("proxy")) as made:
        yield made


def placement(proxy: FaultProxy, directory: Path, **constants: float) -> ControllerProcess:
    environment = chosen_constants(directory / "constants", **AT_ONCE, **constants)
    arguments = ["--no-leader-elect"]
    return ControllerProcess.start(
        ["placement"], kubeconfig=proxy.kubeconfig, directory=directory, arguments=arguments, environment=environment
    )


@pytest.fixture
def stage(own_cluster: LocalCluster) -> Stage:
    """Two nodes, and an AppGroup whose ReplicaSets have no pod yet: no controller creates any here."""
    made = Stage(own_cluster)
    made.nodes("z1-a", "z1-b", zone="z1")
    made.apply(chain(*WORKLOADS))
    return made


def declare(stage: Stage, workload: str, replicas: int) -> str:
    """A ReplicaSet as a Deployment has it; returns its uid."""
    labels = {"appgroup.diktyo.x-k8s.io": "shop", "appgroup.diktyo.x-k8s.io.workload": workload}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "registry.invalid/main:1"}]},
    }
    body = {
        "metadata": {"name": workload, "labels": labels},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }
    made = stage.api.request("POST", f"/apis/apps/v1/namespaces/{stage.name}/replicasets", body)
    return str(made["metadata"]["uid"])


def test_the_first_plan_is_of_all_pods_that_were_declared(stage: Stage, proxy: FaultProxy, tmp_path: Path) -> None:
    owners = {workload: declare(stage, workload, REPLICAS) for workload in WORKLOADS}
    constants = {
        f"berth.scheduling.declared.{name}_SECONDS": 600.0 for name in ("MISSING", "MISSING_AT_MOST", "UNANSWERED")
    } | {f"controllers.placement.replica_sets.{name}_SECONDS": 600.0 for name in ("STALE", "TRY")}
    with placement(proxy, tmp_path, **constants) as process:
        process.wait_ready()

        def read() -> float:
            return process.metric("berth_api_request_duration_seconds_count", verb="LIST", resource="replicasets")

        waited = partial(process.metric, "berth_placement_attempts_total", entry="group", result="waiting")
        for number in range(REPLICAS):
            before = waited()
            for workload, owner in owners.items():
                stage.pod(f"{workload}-{number}", group="shop", workload=workload, owner=owner)
            if number < REPLICAS - 1:
                eventually(lambda: read() and waited() > before, what="a wave was looked at")  # noqa: B023
                assert not stage.bound()
        stage.wait_bound()
        assert {stage.decision(name)["plannedWith"] for name in stage.pods()} == {REPLICAS * len(WORKLOADS)}
        assert read() == 1


def test_replica_sets_that_cannot_be_read_hold_up_nobody(stage: Stage, proxy: FaultProxy, tmp_path: Path) -> None:
    """Though more pods were declared than there are."""
    owners = {workload: declare(stage, workload, REPLICAS) for workload in WORKLOADS}
    held = proxy.add(Fault.HOLD, method="GET", path=f"/apis/apps/v1/namespaces/{stage.name}/replicasets")
    constants = {"berth.scheduling.declared.MISSING_SECONDS": 600.0}
    with placement(proxy, tmp_path, **constants) as process:
        process.wait_ready()
        for workload, owner in owners.items():
            stage.pod(f"{workload}-0", group="shop", workload=workload, owner=owner)
        stage.wait_bound()
        proxy.wait_hits(held)
    proxy.release(held)
