"""Each user counts, and two pods share a node, on a real API server: what it takes of a status, and what follows.

The played placement puts pods that nobody awaits elsewhere on the first node, and so both there. Left out: which of two
pods of a node a request goes to (tests/unit/agents/router), pods that each have a node (test_latency_each_user.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.latency_stand import LatencyStand

pytestmark = pytest.mark.timeout(300)

EAST, WEST = {"c": 10.0, "d": 90.0}, {"c": 90.0, "d": 12.0}
ALL = {f"east{number}": (f"203.0.113.{number}", EAST) for number in (1, 2, 3)} | {
    f"west{number}": (f"198.51.100.{number}", WEST) for number in (1, 2)
}
ROUTED = {user: "c" if user.startswith("east") else "d" for user in ALL}


@pytest.fixture(scope="module")
def cluster(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A control plane of the module's own, with KWOK."""
    return module_cluster()


def want(stand: LatencyStand, **users: int) -> None:
    stand.want(hardMaxLatency=40, users={"mode": "PerUser"} | users)


def test_pods_that_share_a_node_serve_its_users_while_their_number_grows_and_shrinks(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    start = partial(
        ControllerProcess.start,
        ["latency"],
        kubeconfig=cluster.kubeconfig,
        directory=tmp_path,
        arguments=["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"],
    )
    with LatencyStand(cluster, {"c": 20, "d": 25}) as stand:
        stand.users = dict(ALL)
        stand.deploy(replicas=2)
        eventually(stand.places, accept=["c", "c"].__eq__, what="two pods on one node")
        stand.places_pods = False
        want(stand, maxReplicas=3, expirySeconds=5)
        with start() as process:
            # The third waits, so that the status has to name the node that two share in its plan.
            eventually(stand.places, accept=["", "c", "c"].__eq__, timeout=150, what="a third pod")
            plan = sorted(stand.stage.node(name) for name in ("c", "d"))
            eventually(lambda: sorted(stand.status().plan), accept=plan.__eq__, what="each node once")
            assert stand.routed() == dict.fromkeys(ALL, "c")
            process.kill()
        stand.places_pods = True
        with start():
            eventually(stand.places, accept=["c", "c", "d"].__eq__, timeout=150, what="the third where it belongs")
            eventually(stand.routed, accept=ROUTED.__eq__, timeout=150, what="users with the pods that are near")
            eventually(stand.status, accept=lambda found: found.state == "SoftValid 5", what="all of them served")
            assert (stand.replicas(), stand.status().plan, stand.status().moves) == (3, (), ())
            del stand.users["west1"], stand.users["west2"]
            eventually(lambda: (stand.replicas(), len(stand.places())), accept=(2, 2).__eq__, timeout=150, what="fewer")
            east = dict.fromkeys(stand.users, "c")
            eventually(stand.routed, accept=east.__eq__, timeout=150, what="those who are left, where they were")
            assert stand.least(2) == 2


def test_one_of_two_pods_of_a_node_goes_to_users_who_have_none(cluster: LocalCluster, tmp_path: Path) -> None:
    arguments = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]
    with LatencyStand(cluster, {"c": 20, "d": 25}) as stand:
        stand.users = dict(ALL)
        stand.deploy(replicas=2)
        eventually(stand.places, accept=["c", "c"].__eq__, what="two pods on one node")
        want(stand)
        with ControllerProcess.start(
            ["latency"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=arguments
        ):
            stand.wait_settled("c", "d")
            eventually(stand.routed, accept=ROUTED.__eq__, timeout=150, what="users with the pods that are near")
            assert (max(stand.serving), stand.least(2)) == (3, 2), stand.serving
            assert [move.reason for move in stand.status().moves] == ["MoreUsers"]
