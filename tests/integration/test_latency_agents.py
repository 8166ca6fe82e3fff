"""Real node agents measure a user whom the real latency controller asks for, and a pod moves by what they found.

The user is this machine, by the address that it has in its network. Left out: how far users are, which one machine
does not say (the meter's tests have links that take their time), and agents that fail
(tests/unit/agents/node/users).
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.node.probing.icmp import Icmp
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.addresses import own_address
from tests.support.latency_stand import LatencyStand

QUICK = 0.05
"""Milliseconds that a meter tells of users about as near as this machine is to itself."""


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind((own_address(), 0))
        return int(unused.getsockname()[1])


@pytest.mark.skipif(not Icmp().permitted, reason="ICMP is not permitted here")
def test_a_user_is_measured_from_all_nodes_and_a_pod_moves(
    module_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    plane = module_cluster()
    latency = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]
    with (
        ControllerProcess.start(["latency"], kubeconfig=plane.kubeconfig, directory=tmp_path, arguments=latency) as one,
        LatencyStand(plane, {"a": 120, "b": QUICK}, agents=False) as stand,
    ):
        one.wait_ready()
        stand.address = own_address()
        node = stand.stage.node("b")
        token = tmp_path / "token"
        token.write_text(stand.agent_token(node))
        options = {
            "name": node,
            "namespace": "default",
            "address": own_address(),
            "port": free_port(),
            "latency-token-file": token,
        }
        arguments = [f"--node-{name}={value}" for name, value in options.items()]
        with ControllerProcess.start(
            ["node"], kubeconfig=plane.kubeconfig, directory=tmp_path, arguments=arguments
        ) as agent:
            stand.deploy()
            stand.want(hardMaxLatency=80, softMaxLatency=30, exploration=["ReverseProbe"])
            found = eventually(
                lambda: {each.node: each for each in stand.status().nodes}.get(node),
                accept=lambda known: known is not None and known.source is not None,
                what="what the agent measured",
                timeout=180.0,
            )
            assert found is not None
            assert (found.source, found.state) == ("Probe", "SoftValid")
            assert 0 < (found.p50_microseconds or 0) < 30_000
            stand.wait_settled("b")
            agent.stop()
