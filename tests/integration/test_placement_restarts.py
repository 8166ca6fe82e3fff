"""The controller killed, replaced, and cut off from the API server: nothing is lost and nothing is bound twice.

A hundred rounds of SIGKILL at random moments come first. The seed is printed and can be given: BERTH_TEST_SEED=7.
"""

from __future__ import annotations

import os
import random
import select
import signal
from pathlib import Path

import pytest

from berth.kube.reflector import MAX_FRUITLESS
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.bindings import BindingHistory, accepted_bindings, over_committed
from tests.support.faults import Fault, FaultProxy
from tests.support.placing import Stage, chain, configuration, profile

ROUNDS = 100
WORKLOADS = tuple(f"w{number}" for number in range(6))
SINGLES = 6
PER_ROUND = len(WORKLOADS) + SINGLES
NODES = 12
IN_FLIGHT = 3
LEASE = "10"
"""Seconds; a leader on a busy machine renews it within two thirds of that."""


@pytest.mark.timeout(1200)
def test_a_hundred_kills_while_binding(own_cluster: LocalCluster, tmp_path: Path) -> None:
    seed = int(os.environ.get("BERTH_TEST_SEED", random.randrange(10**6)))
    print(f"BERTH_TEST_SEED={seed}")
    rng = random.Random(seed)
    stage = Stage(own_cluster)
    # Room for exactly the pods of all rounds: a core too many anywhere, or one that leaked, would show.
    room = ROUNDS * PER_ROUND // NODES
    stage.nodes(*(f"n{number}" for number in range(NODES)), cpu=f"{room * 100}m", memory="64Gi", pods=room)
    stage.costs()
    # No computed weights to wait for; few bindings at a time, so that there is a middle to be killed in.
    stated = profile(waitSeconds=600) | {"weightSets": ["UserDefined"]}
    arguments = ["--no-leader-elect", *configuration(tmp_path, stated, bindingsInFlight=IN_FLIGHT)]
    in_the_middle = 0
    with BindingHistory(own_cluster) as history:
        for round_ in range(ROUNDS):
            stage.apply(chain(*WORKLOADS, name=f"shop-{round_}"))
            waiting = (round_ + 1) * PER_ROUND - len(history.nodes)
            killed = _start(own_cluster, tmp_path, *arguments)
            for workload in WORKLOADS:
                stage.pod(f"member-{round_}-{workload}", group=f"shop-{round_}", workload=workload)
            for number in range(SINGLES):
                stage.pod(f"single-{round_}-{number}")
            # Some moment between the first binding and the last, or a little before or after.
            for _ in range(rng.randrange(waiting)):
                assert history.bound.acquire(timeout=120), f"nothing is bound in round {round_}\n{killed.tail()}"
            # Not tied to anything that can be observed.
            select.select([], [], [], rng.uniform(0, 0.02))
            killed.kill()
            assert killed.process.returncode == -signal.SIGKILL
            while history.bound.acquire(blocking=False):
                pass
            in_the_middle += 0 < (round_ + 1) * PER_ROUND - len(history.nodes) < waiting
        with _start(own_cluster, tmp_path, *arguments):
            bound = stage.wait_bound(timeout=120)
            stage.pod("too-many")
            assert "0/12 nodes are available" in stage.wait_event("too-many", "FailedScheduling")
    assert len(bound) == len(history.nodes) == ROUNDS * PER_ROUND
    assert history.moved() == {}
    # The server counts a binding as failed when its client died before the answer, at most those in flight at a kill.
    accepted = accepted_bindings(own_cluster)
    assert ROUNDS * (PER_ROUND - IN_FLIGHT) <= accepted <= ROUNDS * PER_ROUND
    assert over_committed(own_cluster) == []
    assert all(stage.decision(name)["node"].endswith(f"-{bound[name]}") for name in rng.sample(sorted(bound), 10))
    # A hundred kills that all came before or after the work would prove little.
    assert in_the_middle >= ROUNDS // 4, f"only {in_the_middle} kills came in the middle"


def _start(cluster: LocalCluster, directory: Path, *arguments: str) -> ControllerProcess:
    return ControllerProcess.start(
        ["placement"], kubeconfig=cluster.kubeconfig, directory=directory, arguments=list(arguments)
    )


def test_a_replica_takes_over_from_a_dead_leader(own_cluster: LocalCluster, tmp_path: Path) -> None:
    stage = Stage(own_cluster)
    stage.nodes("n1")
    arguments = ["--lease-duration", LEASE, "--lease-namespace", stage.name]
    with (
        _start(own_cluster, tmp_path, *arguments) as first,
        BindingHistory(own_cluster) as history,
    ):
        first.wait_leader().wait_ready()
        with _start(own_cluster, tmp_path, *arguments) as second:
            second.wait_ready()
            stage.pod("before")
            stage.wait_bound("before")
            assert list(second.records("became leader")) == []
            first.kill()
            stage.pod("after")
            second.wait_leader()
            stage.wait_bound("after")
            assert second.metric("berth_placement_bindings_total", outcome="bound") == 1
            # And a stop hands over without delay.
            with _start(own_cluster, tmp_path, *arguments) as third:
                third.wait_ready()
                assert second.stop() == 0
                stage.pod("last")
                third.wait_leader()
                stage.wait_bound("last")
    assert history.moved() == {}
    assert len(history.nodes) == 3


def test_a_leader_that_stood_still_writes_nothing_when_it_wakes(own_cluster: LocalCluster, tmp_path: Path) -> None:
    """Frozen with decisions in its hands for longer than its Lease lasts; another has carried them out meanwhile."""
    stage = Stage(own_cluster)
    stage.nodes("n1")
    names = ["held", "decided", "too"]
    arguments = ["--lease-duration", LEASE, "--lease-namespace", stage.name]
    arguments += configuration(tmp_path, profile(), bindingsInFlight=1)
    with FaultProxy(own_cluster, directory=tmp_path) as proxy, BindingHistory(own_cluster) as history:
        rule = proxy.add(Fault.HOLD)
        with ControllerProcess.start(
            ["placement"], kubeconfig=proxy.kubeconfig, directory=tmp_path, arguments=arguments
        ) as first:
            first.wait_leader().wait_ready()
            for name in names:
                stage.pod(name)
            proxy.wait_hits(rule)
            first.wait_until(
                lambda: first.metric("berth_placement_unbound_decisions"), accept=lambda left: left == 2, what="decided"
            )
            os.kill(first.pid, signal.SIGSTOP)
            try:
                with _start(own_cluster, tmp_path, *arguments) as second:
                    second.wait_leader().wait_ready()
                    stage.wait_bound(*names)
                # Its answer is there when the leader wakes, so that it could go on at once.
                proxy.release(rule)
                eventually(lambda: proxy.bindings, what="the binding that was on its way goes on")
            finally:
                os.kill(first.pid, signal.SIGCONT)
            assert first.process.wait(timeout=120) == 1
        assert [binding.fault for binding in proxy.bindings] == [Fault.HOLD]
    assert list(first.records("leadership lost, exiting so that a fresh process can compete"))
    assert history.moved() == {}


def test_api_server_restarted_while_pods_wait(own_cluster: LocalCluster, tmp_path: Path) -> None:
    stage = Stage(own_cluster)
    stage.nodes("n1", cpu="1")
    with _start(own_cluster, tmp_path, "--no-leader-elect") as controller:
        controller.wait_ready()
        stage.pod("large", cpu="2")
        stage.pod("small")
        stage.apply(chain("web", "db"))
        stage.pod("web", group="shop", workload="web")
        stage.wait_event("large", "FailedScheduling", "1 Insufficient cpu")
        stage.wait_event("web", "WaitingForMembers")
        stage.wait_bound("small")
        own_cluster.restart_apiserver(grace=0)
        stage.api.close()
        stage.nodes("n2")
        stage.pod("db", group="shop", workload="db")
        bound = stage.wait_bound(timeout=60)
        assert bound["large"] == "n2"
        assert stage.decision("web")["plannedWith"] == 2
        assert controller.running
        eventually(lambda: controller.get("/readyz")[0] == 200, what="ready again")
    assert over_committed(own_cluster) == []


def test_watch_cut_with_410(own_cluster: LocalCluster, tmp_path: Path) -> None:
    stage = Stage(own_cluster)
    stage.nodes("n1", cpu="1")
    with _start(own_cluster, tmp_path, "--no-leader-elect") as controller:
        controller.wait_ready()
        stage.pod("first", cpu="600m")
        stage.wait_bound("first")
        stage.pod("second", cpu="600m")
        stage.wait_event("second", "FailedScheduling")
        os.kill(controller.pid, signal.SIGSTOP)
        try:
            # What it misses happens before the restart, whose fresh watch cache does not reach back that far.
            stage.delete_pod("first")
            stage.delete_pod("second")
            stage.pod("second", cpu="700m")
            stage.nodes("n2", cpu="1")
            stage.pod("third", cpu="900m")
            own_cluster.restart_apiserver()
        finally:
            os.kill(controller.pid, signal.SIGCONT)
        stage.api.close()
        assert set(stage.wait_bound("second", "third", timeout=60).values()) == {"n1", "n2"}
        expired, failed, ended = (
            controller.metric("berth_watch_restarts_total", resource="pods", reason=reason)
            for reason in ("expired", "error", "ended")
        )
        # An API server that takes long to come back is listed from anew before it can say so; and one that had told all
        # before it ended, in the buffers of the connection, need not say so.
        assert expired >= 1 or failed > MAX_FRUITLESS or ended >= 1
        # The books are those of the new list: what is left on either node is used, and no more.
        stage.pod("fourth", cpu="300m")
        stage.wait_bound("fourth")
        stage.pod("fifth", cpu="100m")
        stage.wait_bound("fifth")
        stage.pod("sixth", cpu="100m")
        stage.wait_event("sixth", "FailedScheduling", "Insufficient cpu")
    assert over_committed(own_cluster) == []
