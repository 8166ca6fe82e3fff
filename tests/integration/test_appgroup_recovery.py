"""The appgroup controller when something breaks: itself, the API server, a watch, another replica, a bad spec.

The clusters are the tests' own, because they are disturbed. "Settled" means that every status equals what
follows from the spec and the pods that the API server has, which is the same state whoever computed it.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.kube.reflector import MAX_FRUITLESS
from controllers.appgroup.reconciler import FIELD_MANAGER
from hack.harness.boutique import ORDERS_11, appgroup, boutique
from hack.harness.cluster import CRDS, DEMO_TOPOLOGY, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.appgroups import AppGroups, condition, order_of

NODE = "eu-west-a-01"
Start = Callable[..., ControllerProcess]
SHORT_LEASE = 5
"""Seconds of a Lease that has to run out in a test. All others last so long that no busy machine loses them."""


@pytest.fixture(scope="module")
def own_cluster(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A cluster with nodes that this module may disturb."""
    return module_cluster(nodes=DEMO_TOPOLOGY)


@pytest.fixture
def groups(own_cluster: LocalCluster, request: pytest.FixtureRequest) -> AppGroups:
    """AppGroups of a namespace of the test's own."""
    name = f"t-{abs(hash(request.node.name)) % 10**8}-{os.getpid()}"
    own_cluster.kubectl("create", "namespace", name)
    return AppGroups(own_cluster, name)


@pytest.fixture
def start(own_cluster: LocalCluster, tmp_path: Path) -> Iterator[Start]:
    """Start a controller on the module's cluster; all of them end with the test."""
    processes: list[ControllerProcess] = []

    def begin(cluster: LocalCluster = own_cluster, *components: str, lease: int = 60) -> ControllerProcess:
        arguments = ["--lease-duration", str(lease)]
        process = ControllerProcess.start(
            components or ["appgroup"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=arguments
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.stop(check=False)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_killed_at_random_points(groups: AppGroups, start: Start, seed: int) -> None:
    rng = random.Random(seed)
    algorithms = list(ORDERS_11)
    final = {f"g{number}": rng.choice(algorithms) for number in range(6)}
    controller = start(lease=SHORT_LEASE).wait_leader()
    for round_ in range(3):
        # Work is under way all the time; the kill comes somewhere inside it.
        for step in range(rng.randint(4, 12)):
            name = rng.choice(list(final))
            groups.apply(boutique(name=name, algorithm=rng.choice(algorithms)))
            groups.create_pod(f"{name}-{round_}-{step}", f"p{rng.randint(1, 11)}", group=name, node=NODE)
        controller.kill()
        controller = start(lease=SHORT_LEASE)
    for name, algorithm in final.items():
        groups.apply(boutique(name=name, algorithm=algorithm))
    controller.wait_leader().wait_ready()
    for name, algorithm in final.items():
        assert order_of(groups.wait_status(name, algorithm=algorithm)) == ORDERS_11[algorithm]
    eventually(groups.settled, timeout=60, what="settled")
    running = {pod["metadata"]["name"] for pod in groups.pods()}
    listed = [item["pod"] for document in groups.all() for item in document["status"]["podsScheduled"]]
    assert sorted(listed) == sorted(running)


def test_killed_between_spec_and_status(groups: AppGroups, start: Start) -> None:
    controller = start(lease=SHORT_LEASE).wait_leader().wait_ready()
    groups.apply(boutique())
    groups.wait_status()
    controller.kill()
    groups.apply(boutique(algorithm="TarjanSort"))
    groups.create_pod("p1-1", "p1", node=NODE)
    assert groups.get()["status"]["algorithm"] == "KahnSort"
    start(lease=SHORT_LEASE).wait_leader()
    assert order_of(groups.wait_status(algorithm="TarjanSort", runningWorkloads=1)) == ORDERS_11["TarjanSort"]


def test_a_restart_writes_nothing_when_all_is_well(groups: AppGroups, start: Start) -> None:
    first = start().wait_leader().wait_ready()
    groups.apply(boutique())
    groups.create_pod("p1-1", "p1", node=NODE)
    groups.wait_status(runningWorkloads=1)
    eventually(groups.settled, what="settled")
    assert first.stop() == 0
    version = groups.get()["metadata"]["resourceVersion"]
    second = start().wait_leader().wait_ready()
    second.wait_until(
        lambda: (
            second.metric("berth_appgroup_reconciles_total", outcome="unchanged") > 0
            and second.metric("berth_appgroup_queue_depth") == 0
        ),
        what="every AppGroup looked at",
    )
    assert second.metric("berth_appgroup_reconciles_total", outcome="written") == 0
    assert groups.get()["metadata"]["resourceVersion"] == version


def test_api_server_restarted(groups: AppGroups, own_cluster: LocalCluster, start: Start) -> None:
    # The Lease outlasts the restart; the process would rightly give up otherwise.
    controller = start().wait_leader().wait_ready()
    groups.apply(boutique())
    groups.wait_status()
    own_cluster.restart_apiserver()
    groups.reconnect()
    groups.apply(boutique(algorithm="ReverseKahn"))
    groups.apply({**boutique(), "metadata": {"name": "second"}})
    groups.create_pod("p1-1", "p1", node=NODE)
    assert (
        order_of(groups.wait_status(algorithm="ReverseKahn", runningWorkloads=1, timeout=60))
        == ORDERS_11["ReverseKahn"]
    )
    groups.wait_status("second", algorithm="KahnSort")
    assert controller.running
    eventually(lambda: controller.get("/readyz")[0] == 200, what="ready again")


def test_watch_cut_with_410(groups: AppGroups, own_cluster: LocalCluster, tmp_path: Path) -> None:
    # Without election: a process that was stopped for so long would rightly give up its Lease.
    arguments = ["--no-leader-elect"]
    with ControllerProcess.start(
        ["appgroup"], kubeconfig=own_cluster.kubeconfig, directory=tmp_path, arguments=arguments
    ) as controller:
        controller.wait_ready()
        groups.apply(boutique())
        groups.apply({**boutique(), "metadata": {"name": "doomed"}})
        groups.create_pod("p1-1", "p1", node=NODE)
        groups.create_pod("p2-1", "p2", node=NODE)
        groups.wait_status(runningWorkloads=2)
        groups.wait_status("doomed")
        os.kill(controller.pid, signal.SIGSTOP)
        try:
            # What it misses happens before the restart, whose fresh watch cache does not reach back that far.
            groups.delete_pod("p1-1")
            groups.delete("doomed")
            groups.apply(boutique(algorithm="AlternateTarjan"))
            groups.create_pod("p3-1", "p3", node=NODE)
            own_cluster.restart_apiserver()
        finally:
            os.kill(controller.pid, signal.SIGCONT)
        groups.reconnect()
        groups.wait_status(algorithm="AlternateTarjan", timeout=60)
        # The spec's watch and the pods' come back in any order, and as many pods are scheduled as before.
        eventually(
            lambda: sorted(item["pod"] for item in groups.get("boutique")["status"]["podsScheduled"]),
            accept=lambda pods: pods == ["p2-1", "p3-1"],
            timeout=60,
            what="the pods that are left",
        )
        eventually(groups.settled, what="settled")
        expired, failed, ended = (
            controller.metric("berth_watch_restarts_total", resource="pods", reason=reason)
            for reason in ("expired", "error", "ended")
        )
        # An API server that takes long to come back is listed from anew before it can say so; and one that had told all
        # before it ended, in the buffers of the connection, need not say so.
        assert expired >= 1 or failed > MAX_FRUITLESS or ended >= 1
        assert controller.running


def test_two_replicas(groups: AppGroups, start: Start) -> None:
    first = start(lease=SHORT_LEASE).wait_leader().wait_ready()
    second = start(lease=SHORT_LEASE).wait_ready()
    groups.apply(boutique())
    groups.wait_status()
    writes = {"verb": "APPLY", "resource": "appgroups"}
    # The status is there before its writer has read the answer and counted it.
    first.wait_until(lambda: first.metric("berth_api_requests_total", **writes) >= 1, what="a write that is counted")
    assert second.metric("berth_api_requests_total", **writes) == 0
    assert list(second.records("became leader")) == []
    first.kill()
    groups.apply(boutique(algorithm="ReverseKahn"))
    second.wait_leader()
    assert order_of(groups.wait_status(algorithm="ReverseKahn")) == ORDERS_11["ReverseKahn"]
    managers = [item["manager"] for item in groups.get()["metadata"]["managedFields"]]
    assert managers.count(FIELD_MANAGER) == 1


def test_leading_later_than_another_component_of_the_process(
    groups: AppGroups, own_cluster: LocalCluster, start: Start
) -> None:
    first = start(lease=SHORT_LEASE).wait_leader().wait_ready()
    groups.apply(boutique())
    groups.wait_status()
    # Its other component leads and follows its kind; kopf has long been started when this one joins.
    both = start(own_cluster, "networktopology", "appgroup", lease=SHORT_LEASE).wait_leader().wait_ready()
    topologies = {"resource": "networktopologies"}
    both.wait_until(lambda: both.metric("berth_watch_age_seconds", **topologies), what="a watch of NetworkTopologies")
    assert both.metric("berth_leader", component="berth-appgroup") == 0
    first.kill()
    groups.apply(boutique(algorithm="ReverseKahn"))
    groups.apply({**boutique(), "metadata": {"name": "second"}})
    assert order_of(groups.wait_status(algorithm="ReverseKahn")) == ORDERS_11["ReverseKahn"]
    groups.wait_status("second", algorithm="KahnSort")
    assert both.metric("berth_leader", component="berth-appgroup") == 1


def test_kinds_installed_after_the_controller_started(fresh_cluster: Callable[..., LocalCluster], start: Start) -> None:
    cluster = fresh_cluster(crds=False, kwok=False)
    controller = start(cluster).wait_leader()
    controller.wait_until(lambda: list(controller.records("waiting for a kind")), what="a word about the missing kind")
    assert controller.get("/readyz")[0] == 503
    cluster.kubectl("apply", "--server-side", f"--filename={CRDS}")
    controller.wait_ready()
    groups = AppGroups(cluster, "default")
    groups.apply(boutique())
    assert order_of(groups.wait_status()) == ORDERS_11["KahnSort"]


INVALID = [
    pytest.param(
        appgroup({"web": ["nowhere"]}, ["web"]), '"nowhere", which is not a workload of this group', id="unknown"
    ),
    pytest.param(appgroup({}, ["web", "web"]), '2 workloads have the selector "web"', id="duplicate"),
    pytest.param(
        appgroup({}, ["web"], algorithm="QuickSort"), '"QuickSort" is no algorithm; KahnSort is used', id="algorithm"
    ),
]


@pytest.mark.parametrize(("document", "problem"), INVALID)
def test_odd_specs_are_ordered_and_reported(
    cluster: LocalCluster, namespace: str, start: Start, document: dict[str, Any], problem: str
) -> None:
    groups = AppGroups(cluster, namespace)
    start(cluster).wait_leader()
    groups.apply({**document, "metadata": {"name": "odd"}})
    found = groups.wait_condition("Ordered", "odd", status="True", reason="SpecProblems")
    assert problem in condition(found, "Ordered")["message"]
    assert order_of(found) == "web"
    groups.apply({**appgroup({}, ["web", "cart"]), "metadata": {"name": "odd"}})
    assert order_of(groups.wait_condition("Ordered", "odd", reason="Ordered")) == "cart web"
