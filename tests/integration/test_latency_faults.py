"""Pods move beside an API server that refuses, answers nothing, and breaks off: each once, and nobody goes unserved.

Between the latency controller and the API server is a faulty network. Left out: a controller that is killed
(test_latency_recovery.py), and a placement controller in such a network (test_latency_placement.py).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.faults import Fault, FaultProxy
from tests.support.latency_stand import LatencyStand

STATUS = {"method": "PATCH", "path": r"/apis/berth.dev/v1alpha1/namespaces/[^/]+/latencypolicies/[^/]+/status"}
SCALE = {"method": "PATCH", "path": r"/apis/apps/v1/namespaces/[^/]+/deployments/[^/]+/scale"}
EVICTION = {"method": "POST", "path": r"/api/v1/namespaces/[^/]+/pods/[^/]+/eviction"}
WRITES = (STATUS, SCALE, EVICTION)
ARGUMENTS = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]


@pytest.mark.parametrize(
    ("fault", "fields"),
    [
        pytest.param(Fault.ANSWER, {"status": 409}, id="others write the object"),
        pytest.param(Fault.ANSWER, {"status": 404}, id="something on the way finds nothing"),
        pytest.param(Fault.ANSWER, {"status": 429, "retry_after": 1}, id="too many requests"),
        pytest.param(Fault.ANSWER_AFTER, {"status": 500}, id="done and called a failure"),
        pytest.param(Fault.RESET, {}, id="reset"),
        pytest.param(Fault.RESET_AFTER, {}, id="done and reset"),
    ],
)
def test_two_pods_move_though_writes_fail_and_watches_break_off(
    lively: LocalCluster, tmp_path: Path, fault: Fault, fields: dict[str, Any]
) -> None:
    with (
        LatencyStand(lively, {"a": 120, "b": 60, "c": 20}) as stand,
        FaultProxy(lively, directory=tmp_path) as proxy,
        ControllerProcess.start(
            ["latency"], kubeconfig=proxy.kubeconfig, directory=tmp_path, arguments=ARGUMENTS
        ) as process,
    ):
        process.wait_ready(timeout=180)
        rules = [proxy.add(fault, times=2, **where, **fields) for where in WRITES]
        stand.deploy(replicas=2)
        stand.want(hardMaxLatency=80)
        for rule in rules:
            proxy.wait_hits(rule, 2, timeout=120)
            proxy.cut_watches()
        eventually(
            lambda: (stand.places(), stand.replicas(), stand.status().surge),
            accept=(["b", "c"], 2, None).__eq__,
            timeout=120,
            what="both pods near",
        )
        moved = Counter(move.source_node for move in stand.status().moves if move.outcome != "Cancelled")
        assert moved == {stand.stage.node("a"): 2}
        assert stand.least(2) == 2
        assert max(stand.staying) == 3
