"""Pods that move, come and go while their controller is killed after every write: each one is continued by the next.

Every process gets one step through and is killed before it learns of it. Left out: replicas that take over
by their Lease (test_kube_lease.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.faults import Fault, FaultProxy
from tests.support.latency_stand import LatencyStand
from tests.support.stepped_clock import SteppedClock

STATUS = {"method": "PATCH", "path": r"/apis/berth.dev/v1alpha1/namespaces/[^/]+/latencypolicies/[^/]+/status"}
SCALE = {"method": "PATCH", "path": r"/apis/apps/v1/namespaces/[^/]+/deployments/[^/]+/scale"}
EVICTION = {"method": "POST", "path": r"/api/v1/namespaces/[^/]+/pods/[^/]+/eviction"}
STEPS = [
    STATUS | {"body": '"outcome":"Creating"'},
    SCALE | {"body": '"replicas":2'},
    STATUS | {"body": '"outcome":"Evicting"'},
    EVICTION,
    STATUS | {"body": '"outcome":"Moved"'},
    SCALE | {"body": '"replicas":1'},
    STATUS | {"body": r'^(?!.*"surge").*"outcome":"(Moved|Confirmed)"'},
]
"""The writes of a move, in order; what else a status tells of is let through, more of it on a busy machine."""
MORE = [STATUS | {"body": '"wanted":2'}, SCALE | {"body": '"replicas":2'}]
FEWER = [
    STATUS | {"body": '"leaving":"'},
    EVICTION,
    STATUS | {"body": r'"surge":\{[^}]*"wanted":1'},
    SCALE | {"body": '"replicas":1'},
]
"""The writes that make one pod more, and one less, in order."""
ARGUMENTS = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]


@pytest.fixture(scope="module")
def cluster(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A control plane of the module's own, with KWOK."""
    return module_cluster()


@pytest.mark.timeout(1200)
def test_one_move_is_made_by_processes_that_are_killed_after_each_write(cluster: LocalCluster, tmp_path: Path) -> None:
    with LatencyStand(cluster, {"a": 120, "b": 60, "c": 20}) as stand, FaultProxy(cluster, directory=tmp_path) as proxy:
        stand.deploy()
        # Nothing is to be measured first: what an agent tells is lost with the process that had asked.
        stand.want(hardMaxLatency=80, softMaxLatency=30, exploration=[])
        stand.know(c=20)
        for step in STEPS:
            if step is EVICTION:
                # One without a node is what a ReplicaSet deletes first; of ready ones it may delete either.
                stand.places_pods = False
            rule = proxy.add(Fault.HANG_AFTER, **step)
            with ControllerProcess.start(
                ["latency"], kubeconfig=proxy.kubeconfig, directory=tmp_path, arguments=ARGUMENTS
            ) as process:
                proxy.wait_hits(rule, timeout=180)
                process.kill()
            proxy.clear()
        assert stand.status().surge is None
        with ControllerProcess.start(
            ["latency"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=ARGUMENTS
        ):
            eventually(stand.outcomes, accept=lambda found: found == ["Confirmed"], timeout=150, what="gain")
            stand.wait_settled("c")
        assert stand.least() == 1
        assert max(stand.serving) == 2


@pytest.mark.timeout(1200)
def test_pods_come_and_go_with_users_by_processes_that_are_killed_after_each_write(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    with LatencyStand(cluster, {"a": 120, "c": 20}) as stand, FaultProxy(cluster, directory=tmp_path) as proxy:

        def one_write_each(steps: list[dict[str, str]]) -> None:
            for step in steps:
                rule = proxy.add(Fault.HANG_AFTER, **step)
                with ControllerProcess.start(
                    ["latency"], kubeconfig=proxy.kubeconfig, directory=tmp_path, arguments=ARGUMENTS
                ) as process:
                    proxy.wait_hits(rule, timeout=180)
                    process.kill()
                proxy.clear()

        far = {"a": 120.0, "c": 10.0}
        stand.users = {"u": ("203.0.113.7", far), "v": ("203.0.113.8", far)}
        stand.deploy()
        users = {"mode": "PerUser", "maxReplicas": 2, "expirySeconds": 5}
        stand.want(hardMaxLatency=40, users=users, moves={"maxPerHour": 0})
        one_write_each(MORE)
        eventually(lambda: len(stand.places()), accept=lambda found: found == 2, timeout=150, what="two pods")
        stand.meters = False
        one_write_each(FEWER)
        with ControllerProcess.start(
            ["latency"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=ARGUMENTS
        ):
            eventually(
                lambda: (stand.status().surge, stand.replicas(), len(stand.places())),
                accept=lambda found: found == (None, 1, 1),
                timeout=150,
                what="one pod",
            )


def test_a_new_pod_that_is_taken_while_no_controller_runs_is_followed_by_another_on_its_node(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    """Nobody says in between that one is awaited there again: placement sees by itself that none is there.

    Where the other pod is would be nearer.
    """
    start = partial(
        ControllerProcess.start, ["latency"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=ARGUMENTS
    )
    limits: dict[str, Any] = {"hardMaxLatency": 80, "softMaxLatency": 30}
    with LatencyStand(cluster, {"a": 120, "c": 20, "d": 25}) as stand:
        stand.deploy(replicas=2)
        stand.want(**limits, moves={"maxPerHour": 1})
        with start() as process:
            stand.wait_settled("a", "c")
            stand.budget(maxUnavailable=0)
            stand.want(**limits, moves={"maxPerHour": 2})
            eventually(lambda: stand.outcomes()[1:], accept=["Evicting"].__eq__, timeout=150, what="a move that waits")
            process.kill()
        stand.places_pods = False
        with ControllerProcess.start(
            ["placement"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=["--no-leader-elect"]
        ) as placement:
            placement.wait_ready()
            [new] = [name for name, pod in stand.stage.pods().items() if pod["spec"]["nodeName"].endswith("-d")]
            stand.api.request("DELETE", f"/api/v1/namespaces/{stand.stage.name}/pods/{new}")
            placed = eventually(
                stand.places,
                accept=lambda found: len(found) == 3 and "" not in found and new not in stand.stage.pods(),
                what="another pod",
            )
            assert placed == ["a", "c", "d"]
            stand.api.request("DELETE", f"/apis/policy/v1/namespaces/{stand.stage.name}/poddisruptionbudgets/web")
            with start():
                stand.wait_settled("c", "d")
        assert len(stand.outcomes()) == 2


@pytest.mark.parametrize("replaced", [pytest.param(False, id="deleted"), pytest.param(True, id="replaced by another")])
def test_what_a_policy_raised_is_let_down_when_it_goes_although_the_deployment_has_just_changed(
    cluster: LocalCluster, tmp_path: Path, replaced: bool
) -> None:
    with LatencyStand(cluster, {"a": 120, "c": 20}) as stand, FaultProxy(cluster, directory=tmp_path) as proxy:
        stand.budget(maxUnavailable=0)
        stand.deploy()
        stand.want(hardMaxLatency=80)
        with ControllerProcess.start(["latency"], kubeconfig=proxy.kubeconfig, directory=tmp_path, arguments=ARGUMENTS):
            eventually(
                stand.outcomes, accept=lambda found: found == ["Evicting"], timeout=150, what="a move that waits"
            )
            rule = proxy.add(Fault.ANSWER, status=409, times=2, **SCALE)
            stand.delete()
            if replaced:
                stand.want(hardMaxLatency=80, moves={"dryRun": True})
            eventually(stand.replicas, accept=lambda found: found == 1, what="replicas")
        assert rule.hits == 2


def test_after_a_clock_was_set_back_by_an_hour_what_users_have_counts_at_once(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    clock = SteppedClock(tmp_path / "clock", seconds=3600)
    with LatencyStand(cluster, {"a": 20}) as stand:
        stand.deploy()
        # Neither agents nor moves, whose times in the status would have it written anew.
        stand.want(hardMaxLatency=80, exploration=[])
        arguments = [*ARGUMENTS, "--latency-status-interval", "1"]
        start = partial(
            ControllerProcess.start, ["latency"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=arguments
        )
        with start() as process:  # makes the certificate, which is not to be had with a clock that is stepped
            process.wait_until(lambda: list(process.records("listening")), what="the certificate")
        with start(environment=clock.environment):
            eventually(lambda: stand.status().p50, accept=lambda found: found == "20.0 ms", timeout=150, what="20 ms")
            clock.step(0)
            stand.far[stand.stage.node("a")] = 60
            eventually(lambda: stand.status().p50, accept=lambda found: found == "60.0 ms", what="60 ms")
