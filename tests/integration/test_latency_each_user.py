"""Each user counts, on a real API server: pods go where most users are near, users are routed, the number follows them.

Who places pods, meters that users are routed to and node agents are played (`tests.support.latency_stand`). Left out:
what is decided (tests/unit/berth/scheduling/latency), the router's side (test_router.py), all users as one
(test_latency_controller.py), crashes (test_latency_recovery.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.latency_stand import LatencyStand

pytestmark = pytest.mark.timeout(600)

NODES = {"a": 120, "b": 110, "c": 20, "d": 25}
EAST: dict[str, float] = {"a": 120, "b": 110, "c": 10, "d": 90}
WEST: dict[str, float] = {"a": 120, "b": 110, "c": 90, "d": 12}


@pytest.fixture
def stand(lively: LocalCluster) -> Iterator[LatencyStand]:
    """Users in the east and in the west, and pods that are far from both."""
    with LatencyStand(lively, NODES) as stand:
        stand.users = users(east=3, west=2)
        yield stand


def users(**regions: int) -> dict[str, tuple[str, dict[str, float]]]:
    """Users of regions, each with a network of its own."""
    nets = {"east": ("203.0.113", EAST), "west": ("198.51.100", WEST)}
    return {
        f"{name}{number}": (f"{nets[name][0]}.{number + 1}", nets[name][1])
        for name, count in regions.items()
        for number in range(count)
    }


def want(stand: LatencyStand, *, users: dict[str, Any] | None = None, **spec: Any) -> None:
    stand.want(hardMaxLatency=40, **spec, users={"mode": "PerUser"} | (users or {}))


@pytest.mark.usefixtures("latency_process")
def test_two_pods_go_where_users_are_and_each_user_is_routed_to_the_near_one(stand: LatencyStand) -> None:
    stand.deploy(replicas=2)
    want(stand)
    stand.wait_settled("c", "d", timeout=180)
    wanted = {user: "c" if user.startswith("east") else "d" for user in stand.users}
    eventually(stand.routed, accept=lambda found: found == wanted, timeout=150, what="users with their pods")
    assert (max(stand.serving), stand.least(2)) == (3, 2), stand.serving
    eventually(stand.outcomes, accept=lambda found: found == ["Confirmed"] * 2, timeout=150, what="gain")
    assert {move.reason for move in stand.status().moves} == {"MoreUsers"}
    idle = {"Working": "Measuring", "WithinLimits": "Within", "Moving": "Idle"}
    eventually(stand.reasons, accept=lambda found: found == idle, timeout=150, what="conditions")
    assert "5 users" in stand.message("Working")
    assert (stand.status().state, stand.status().plan) == ("SoftValid 5", ())


@pytest.mark.usefixtures("latency_process")
def test_the_number_of_pods_follows_the_users_and_the_pod_that_is_missed_least_goes(stand: LatencyStand) -> None:
    stand.deploy()
    want(stand, users={"maxReplicas": 3, "expirySeconds": 5})
    eventually(
        stand.replicas, accept=lambda found: found == 3, timeout=150, what="a pod for each region, and a free one"
    )
    eventually(lambda: {"c", "d"} <= {*stand.places()}, accept=bool, timeout=150, what="pods near users")
    assert " pods, for 5 users" in stand.stage.wait_event("web", "ReplicasFollowUsers")
    stand.users = users(east=3)
    eventually(stand.replicas, accept=lambda found: found == 2, timeout=150, what="fewer for users of one region")
    eventually(
        stand.places, accept=lambda found: len(found) == 2 and "c" in found, timeout=150, what="the near one stays"
    )
    stand.meters = False
    eventually(stand.replicas, accept=lambda found: found == 1, timeout=150, what="one for nobody")
    eventually(
        lambda: (len(stand.places()), stand.routed(), stand.status().surge),
        accept=lambda found: found == (1, {}, None),
        timeout=150,
        what="the end",
    )


@pytest.mark.usefixtures("latency_process")
def test_a_user_who_goes_elsewhere_is_routed_to_another_pod(stand: LatencyStand) -> None:
    stand.deploy(replicas=2)
    want(stand)
    stand.wait_settled("c", "d", timeout=180)
    west = {"west0": "d", "west1": "d"}
    eventually(stand.routed, accept=lambda found: west.items() <= found.items(), timeout=150, what="the west's pod")
    stand.users["west0"] = ("203.0.113.77", EAST)
    eventually(stand.routed, accept=lambda found: found.get("west0") == "c", timeout=150, what="the pod in the east")
    assert stand.routed()["west1"] == "d"


@pytest.mark.usefixtures("latency_process")
def test_who_else_scales_the_workload_keeps_pods_and_not_users(stand: LatencyStand) -> None:
    scaler = {
        "metadata": {"name": "busy"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3},
    }
    path = f"/apis/autoscaling/v2/namespaces/{stand.stage.name}/horizontalpodautoscalers"
    stand.api.request("POST", path, scaler)
    stand.deploy()
    want(stand, users={"maxReplicas": 3})
    eventually(stand.routed, accept=lambda found: {*found} == {*stand.users}, timeout=150, what="users with a pod")
    eventually(
        stand.reasons,
        accept=lambda found: (found["Working"], found["Moving"]) == ("Measuring", "Autoscaled"),
        what="who else scales",
    )
    assert "HorizontalPodAutoscaler busy" in stand.message("Moving")
    assert (stand.replicas(), stand.outcomes(), stand.status().surge) == (1, [], None)
    stand.api.request("DELETE", f"{path}/busy")
    eventually(stand.replicas, accept=lambda found: found == 3, timeout=150, what="pods for users")


@pytest.mark.usefixtures("latency_process")
def test_a_dry_run_routes_users_and_moves_no_pod_and_nobody_is_routed_where_all_count_as_one(
    stand: LatencyStand,
) -> None:
    stand.deploy()
    want(stand, users={"maxReplicas": 3}, moves={"dryRun": True})
    eventually(stand.routed, accept=lambda found: {*found} == {*stand.users}, timeout=150, what="users with a pod")
    eventually(stand.reasons, accept=lambda found: found["Moving"] == "DryRun", timeout=150, what="a move that is told")
    assert (stand.replicas(), stand.places(), stand.outcomes()) == (1, ["a"], [])
    stand.want(hardMaxLatency=40, moves={"dryRun": True}, users={"mode": "Single"})
    eventually(stand.routed, accept=lambda found: found == {}, timeout=150, what="nobody routed")


@pytest.mark.usefixtures("latency_process")
def test_the_placement_controller_puts_further_pods_where_the_plan_has_a_node_without_one(
    lively: LocalCluster, stand: LatencyStand, tmp_path: Path
) -> None:
    with ControllerProcess.start(
        ["placement"], kubeconfig=lively.kubeconfig, directory=tmp_path, arguments=["--no-leader-elect"]
    ) as placement:
        placement.wait_ready(timeout=180)
        stand.places_pods = False
        for name in ("b", "c", "d"):  # whom the first pod would be as welcome to
            stand.stage.change_node(name, {"spec": {"unschedulable": True}})
        stand.deploy()
        stand.wait_settled("a")
        for name in ("b", "c", "d"):
            stand.stage.change_node(name, {"spec": {"unschedulable": False}})
        want(stand, users={"maxReplicas": 3}, moves={"maxPerHour": 0})
        eventually(lambda: {"c", "d"} <= {*stand.places()}, accept=bool, timeout=150, what="pods near users")


@pytest.mark.usefixtures("latency_process")
def test_who_forbids_pods_for_more_users_is_told_until_they_may_be_created(stand: LatencyStand) -> None:
    stand.deploy()
    eventually(stand.places, accept=lambda found: len(found) == 1, what="a pod")
    quotas = f"/api/v1/namespaces/{stand.stage.name}/resourcequotas"
    stand.api.request("POST", quotas, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    used = lambda: stand.api.request("GET", f"{quotas}/few").get("status", {}).get("used")  # noqa: E731
    eventually(used, accept=lambda found: found == {"pods": "1"}, what="a quota that is used up")
    want(stand, users={"maxReplicas": 3})
    eventually(stand.reasons, accept=lambda found: found.get("Moving") == "CreationRefused", timeout=150, what="told")
    assert "1 of 3 pods are there; " in stand.message("Moving")
    assert "exceeded quota: few" in stand.message("Moving")
    assert stand.status().moves == ()
    stand.api.request("DELETE", f"{quotas}/few")
    eventually(stand.places, accept=lambda found: len(found) == 3, timeout=240, what="all pods")
    eventually(
        stand.reasons, accept=lambda found: found.get("Moving") != "CreationRefused", timeout=150, what="no news"
    )
