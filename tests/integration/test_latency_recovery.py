"""A move of a pod whose controller is killed after every single write: each one is continued by the next.

Every process gets one write through and is killed before it learns of it. Left out: replicas that take over by their
Lease (test_kube_lease.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.faults import Fault, FaultProxy, Rule
from tests.support.latency_stand import LatencyStand

WRITES = [
    ("PATCH", r"/apis/berth.dev/v1alpha1/namespaces/[^/]+/latencypolicies/[^/]+/status"),
    ("PATCH", r"/apis/apps/v1/namespaces/[^/]+/deployments/[^/]+/scale"),
    ("POST", r"/api/v1/namespaces/[^/]+/pods/[^/]+/eviction"),
]
MOST = 30
"""Processes that it may take."""


def _stopped(rules: list[Rule], ended: Callable[[], bool]) -> bool:
    return any(rule.hits for rule in rules) or ended()


@pytest.mark.timeout(900)
def test_one_move_is_made_by_processes_that_are_killed_after_each_write(
    module_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    cluster = module_cluster()
    arguments = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]
    with LatencyStand(cluster, {"a": 120, "b": 60, "c": 20}) as stand, FaultProxy(cluster, directory=tmp_path) as proxy:
        stand.deploy()
        # Nothing is to be measured first: what an agent tells is lost with the process that had asked.
        stand.want(hardMaxLatency=80, softMaxLatency=30, exploration=[])
        stand.know(c=20)
        written: list[str] = []

        def ended() -> bool:
            return stand.outcomes() == ["Moved"] and stand.status().surge is None

        for _ in range(MOST):
            rules = [proxy.add(Fault.HANG_AFTER, method=method, path=path) for method, path in WRITES]
            with ControllerProcess.start(
                ["latency"], kubeconfig=proxy.kubeconfig, directory=tmp_path, arguments=arguments
            ) as process:
                eventually(partial(_stopped, rules, ended), timeout=60, what="a write, or the end")
                process.kill()
            written += [rule.path.rpartition("/")[2] for rule in rules if rule.hits]
            proxy.clear()
            if ended():
                break
        assert [step for step in written if step != "status"] == ["scale", "eviction", "scale"]
        with ControllerProcess.start(
            ["latency"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=arguments
        ):
            eventually(stand.outcomes, accept=lambda found: found == ["Confirmed"], timeout=60, what="gain")
            stand.wait_settled("c")
        assert stand.least() == 1
        assert max(stand.serving) == 2
