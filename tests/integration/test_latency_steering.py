"""Users who do not answer agents are steered through nodes on a real API server, while their pod stays.

Routers are played: one on each node, which tells of the user who is sent to it. Left out: what a router does with the
instruction (tests/unit/agents/router), which user is steered (tests/unit/controllers/latency/test_routers.py).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from berth.api import latency_exchange as exchange
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.latency_stand import LatencyStand

ARGUMENTS = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]
HOME = "b"
"""Node of the router that the user comes to."""


def router_pods(stand: LatencyStand) -> dict[str, dict[str, Any]]:
    """A router's pod on each node, by short name of the node."""
    path = f"/api/v1/namespaces/{stand.stage.name}/pods"
    containers = [{"name": "router", "image": "registry.invalid/router:1"}]
    found = {}
    for name in ("a", "b", "c", "d"):
        spec = {"nodeName": stand.stage.node(name), "containers": containers}
        body = {"metadata": {"name": f"router-{name}"}, "spec": spec}
        found[name] = dict(stand.api.request("POST", path, body))
    return found


async def route(stand: LatencyStand, far: dict[str, float], done: Callable[[], bool]) -> set[str]:
    """Play the routers until that is so; returns the nodes that the user was sent to.

    Those that the user does not come to tell only once it is known how far the pod and the user's own router are.
    """
    pods, target, sent = await asyncio.to_thread(router_pods, stand), HOME, set[str]()
    late = True
    async with aiohttp.ClientSession() as session, asyncio.timeout(150):
        for number in itertools.count(1):
            for name, pod in pods.items():
                if late and name != HOME:
                    continue
                served = {HOME, target}
                users = (exchange.UserRoundTrips("u", (round(far[name] * 1000),)),) if name in served else ()
                message = exchange.RoundTrips(pod["metadata"]["uid"], number, users, "web", steers=True)
                body = await stand.post(session, pod, exchange.ROUND_TRIPS_PATH, message)
                instructions = msgspec.json.decode(body, type=exchange.Instructions)
                if name == HOME:
                    target = instructions.steer.get("u", stand.stage.node(HOME)).rpartition("-")[2]
                    sent |= {target} - {HOME}
            if await asyncio.to_thread(done):
                return sent
            late = late and len((await asyncio.to_thread(stand.status)).nodes) < 2
            await asyncio.sleep(0.7)
    return sent


@pytest.mark.timeout(300)
def test_a_user_is_sent_through_the_nodes_before_the_pod_goes_to_the_nearest(
    module_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    cluster, far = module_cluster(), {"a": 120.0, "b": 60.0, "c": 20.0, "d": 90.0}
    with (
        ControllerProcess.start(
            ["latency"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=ARGUMENTS
        ) as controller,
        LatencyStand(cluster, far, agents=False) as stand,
    ):
        controller.wait_ready(timeout=180)
        stand.deploy()
        listens = f"/api/v1/namespaces/default/configmaps/{exchange.CONFIGMAP}"
        eventually(lambda: stand.api.healthy(listens), what="where the controller listens")

        def moved() -> bool:
            return stand.places() == ["c"] and stand.outcomes() == ["Confirmed"]

        stand.want(objective="Minimum", exploration=["Steer"])
        try:
            sent = asyncio.run(route(stand, far, moved))
        except TimeoutError:
            raise AssertionError(f"the pod has not moved: {stand.status()!r}") from None
        assert {"c", "d"} <= sent
        [move] = stand.status().moves
        assert (move.reason, move.expected_microseconds) == ("Nearer", 20_000)
        known = {node.node.rpartition("-")[2]: str(node.source) for node in stand.status().nodes}
        assert (known["b"], known["d"]) == ("Router", "Router")
