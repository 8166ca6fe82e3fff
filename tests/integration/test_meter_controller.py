"""A real meter, latency controller and API server: a user who is far by the kernel has a pod moved.

Node agents and who places pods are played (`tests.support.latency_stand`). As root, for the user's network namespace.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from berth.api.latencypolicy import MeasurementSource
from hack.harness.cluster import eventually
from hack.harness.delayed_link import delayed_link
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.integration.test_meter_round_trips import APPLICATION, USER
from tests.support.latency_stand import LatencyStand, token_of

MILLISECONDS = 120.0


def test_a_user_whom_the_meter_finds_far_has_a_pod_moved(
    module_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    cluster, token = module_cluster(), tmp_path / "token"
    listening = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]
    with (
        ControllerProcess.start(
            ["latency"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=listening
        ) as controller,
        subprocess.Popen([sys.executable, "-c", APPLICATION], stdout=subprocess.PIPE) as application,
        delayed_link("berth-mc", milliseconds=MILLISECONDS, number=1) as link,
        LatencyStand(cluster, {"a": MILLISECONDS, "b": 20}) as stand,
    ):
        try:
            controller.wait_ready()
            stand.meters = False
            stand.deploy()
            stand.want(hardMaxLatency=80, softMaxLatency=30)
            pods = eventually(
                stand.stage.pods,
                accept=lambda found: any("nodeName" in pod["spec"] for pod in found.values()),
                what="a pod with a node",
            )
            [pod] = pods.values()
            token.write_text(token_of(stand.api, pod))
            assert application.stdout is not None
            options = {
                "address": link.near,
                "port": 0,
                "application": f"127.0.0.1:{int(application.stdout.readline())}",
                "controller-namespace": "default",
                "token-file": token,
                "linger": 0,
            }
            with ControllerProcess.start(
                ["meter"],
                kubeconfig=cluster.kubeconfig,
                directory=tmp_path,
                arguments=[f"--meter-{name}={value}" for name, value in options.items()],
            ) as meter:
                [line] = eventually(lambda: list(meter.records("users are measured")), what="the meter")
                words = [link.near, line["port"], 400, "user", 0.05, 1, 0, 1, 0]
                with subprocess.Popen([*link.enter(), sys.executable, "-c", USER, *map(str, words)]) as user:
                    try:
                        # While it serves: once the pod has left, agents' probes take the place of what was told.
                        node = eventually(
                            lambda: next((each for each in stand.status().nodes if each.node.endswith("-a")), None),
                            accept=lambda found: found is not None and found.source is MeasurementSource.METER,
                            what="what the meter tells of its node",
                        )
                        assert node is not None
                        assert node.p50_microseconds is not None
                        assert abs(node.p50_microseconds / 1000 - MILLISECONDS) <= MILLISECONDS / 10
                        stand.wait_settled("b")
                        [move] = stand.status().moves
                        assert move.before_microseconds is not None
                        assert abs(move.before_microseconds / 1000 - MILLISECONDS) <= MILLISECONDS / 10
                    finally:
                        user.kill()
            assert stand.least() == 1
        finally:
            application.kill()
