"""Somebody meddles with the workload, the policy, the nodes or the namespace in the middle of a move.

Whatever it is: there are as many pods afterwards as somebody wants, none was one too many but the one that moves, and
nothing goes on for ever. Left out: who scales the workload (test_latency_controller.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from berth.scheduling.latency.moves import OPEN
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.latency_stand import LatencyStand

LIMITS: dict[str, Any] = {"hardMaxLatency": 80, "softMaxLatency": 30}
FAR = {"a": 120, "b": 20, "c": 150}
Meddling = Callable[[LatencyStand], None]


def autoscaler(stand: LatencyStand) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    path = f"/apis/autoscaling/v2/namespaces/{stand.stage.name}/horizontalpodautoscalers"
    body = {"metadata": {"name": "busy"}, "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}}
    stand.api.request("POST", path, body)


def undeploy(stand: LatencyStand) -> None:
    path = f"/apis/apps/v1/namespaces/{stand.stage.name}/deployments/web"
    stand.api.request("DELETE", path, {"propagationPolicy": "Foreground"})
    eventually(lambda: stand.api.raw("GET", path)[0], accept=(404).__eq__, what="its end")


def node_gone(stand: LatencyStand, name: str) -> None:
    stand.stage.delete_node(name)
    stand.stage._nodes.remove(name)


def new_node_gone(stand: LatencyStand) -> None:
    node_gone(stand, "b")


def made_anew(stand: LatencyStand) -> None:
    undeploy(stand)
    stand.deploy()


def rolled_out(stand: LatencyStand, strategy: str) -> None:
    template = {"metadata": {"annotations": {"example.com/version": "2"}}}
    rolling: dict[str, Any] = {} if strategy == "RollingUpdate" else {"rollingUpdate": None}
    stand.change({"spec": {"strategy": {"type": strategy} | rolling, "template": template}})


def pod_taken(stand: LatencyStand, *, new: bool) -> None:
    """Somebody else takes a pod away, as a VerticalPodAutoscaler's updater does or who drains a node."""
    [name] = [
        name
        for name, pod in stand.stage.pods().items()
        if (pod["spec"].get("nodeName") != stand.stage.node("a")) == new
    ]
    stand.api.request("DELETE", f"/api/v1/namespaces/{stand.stage.name}/pods/{name}")


def others_policy(stand: LatencyStand) -> None:
    """Of the same workload by name, in another namespace."""
    body = {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "LatencyPolicy",
        "metadata": {"name": "web"},
        "spec": {"targetRef": {"name": "web"}, "objective": "Minimum"},
    }
    path = "/apis/berth.dev/v1alpha1/namespaces/default/latencypolicies/web?fieldManager=test&force=true"
    stand.api.request("PATCH", path, body, content_type="application/apply-patch+yaml")


KEPT_TO: Meddling = partial(LatencyStand.want, hardMaxLatency=200)
ALWAYS: list[tuple[str, Meddling, list[str], int, int]] = [
    ("paused", lambda stand: stand.change({"spec": {"paused": True}}), ["b"], 1, 2),
    ("scaled to zero", lambda stand: stand.scale(0), [], 1, 2),
    ("made anew", made_anew, ["b"], 2, 2),
    ("an autoscaler", autoscaler, ["a"], 1, 2),
    ("a second policy", lambda stand: stand.want("also", **LIMITS), ["a"], 1, 2),
    ("another's policy", others_policy, ["b"], 1, 2),
    ("a dry run", lambda stand: stand.want(**LIMITS, moves={"dryRun": True}), ["b"], 1, 2),
    ("each user counts", lambda stand: stand.want(**LIMITS, users={"mode": "PerUser"}), ["b"], 2, 2),
    ("the new node is gone", new_node_gone, ["a"], 1, 2),
    ("the old node is gone", lambda stand: node_gone(stand, "a"), ["b"], 2, 2),
    ("the old pod is taken", partial(pod_taken, new=False), ["b"], 2, 2),
    ("the new pod is taken", partial(pod_taken, new=True), ["b"], 2, 2),
    ("a rollout", partial(rolled_out, strategy="RollingUpdate"), ["b"], 3, 3),  # it has one more of its own
    ("pods made anew", partial(rolled_out, strategy="Recreate"), ["b"], 3, 2),
]
CASES = [
    *(
        pytest.param(stage, *case, id=f"{stage}, {name}")
        for stage in ("Creating", "Evicting")
        for name, *case in ALWAYS
    ),
    pytest.param("Creating", KEPT_TO, ["a"], 1, 2, id="Creating, limits that are kept to"),
    # One of both pods has to go by then.
    pytest.param("Evicting", KEPT_TO, ["b"], 1, 2, id="Evicting, limits that are kept to"),
]


@pytest.mark.parametrize(("stage", "meddle", "places", "moves", "most"), CASES)
@pytest.mark.usefixtures("latency_process")
def test_afterwards_there_are_as_many_pods_as_somebody_wants(
    lively: LocalCluster, stage: str, meddle: Meddling, places: list[str], moves: int, most: int
) -> None:
    with LatencyStand(lively, FAR) as stand:
        begin(stand, stage)
        meddle(stand)
        if places == ["a"] and meddle is not KEPT_TO:
            # Else the new pod may be ready before that, and then either goes.
            eventually(lambda: not going(stand), what="a move that is given up", timeout=60.0)
        go_on(stand, stage)
        # Of two ready pods that are about as old, on a logarithmic scale, a ReplicaSet lets either go.
        either = stage == "Evicting" and places == ["a"] and meddle is not new_node_gone
        wait_quiet(stand, places, *([["b"]] if either else []))
        assert len(stand.outcomes()) <= moves
        assert max(stand.staying) <= most


def begin(stand: LatencyStand, stage: str) -> None:
    """Have a pod move, and wait in the middle of that."""
    stand.deploy()
    stand.wait_settled("a")
    if stage == "Creating":
        stand.places_pods = False
    else:
        stand.budget(maxUnavailable=0)
    stand.want(**LIMITS)
    eventually(stand.outcomes, accept=[stage].__eq__, what="a move that waits", timeout=120.0)
    eventually(lambda: len(stand.places()), accept=(2).__eq__, what="one pod more")


def go_on(stand: LatencyStand, stage: str) -> None:
    """Have what the move waits for happen."""
    if stage == "Creating":
        stand.places_pods = True
    else:
        budgets = f"/apis/policy/v1/namespaces/{stand.stage.name}/poddisruptionbudgets"
        stand.api.request("DELETE", f"{budgets}/web")


def going(stand: LatencyStand) -> bool:
    """Whether a pod moves."""
    return any(each.outcome in OPEN for each in stand.status().moves)


def wait_quiet(stand: LatencyStand, *places: list[str]) -> None:
    """Wait until pods are there and no others, and nothing moves."""

    def look() -> tuple[list[str], int, bool, bool]:
        return stand.places(), stand.replicas(), going(stand), stand.status().surge is not None

    wanted = [(each, len(each), False, False) for each in places]
    eventually(look, accept=wanted.__contains__, what=f"pods on {places}", timeout=150.0)


@pytest.mark.parametrize("stage", ["Creating", "Evicting"])
def test_a_namespace_that_is_deleted_goes(lively: LocalCluster, latency_process: ControllerProcess, stage: str) -> None:
    with LatencyStand(lively, FAR) as stand:
        begin(stand, stage)
        path = f"/api/v1/namespaces/{stand.stage.name}"
        stand.api.request("DELETE", path)
        eventually(lambda: stand.api.raw("GET", path)[0], accept=(404).__eq__, what="its end", timeout=150.0)
        assert latency_process.running
        assert not list(latency_process.records("work failed, will be tried again"))


@pytest.mark.parametrize("stage", ["Creating", "Evicting"])
@pytest.mark.usefixtures("latency_process")
def test_a_workload_that_is_deleted_is_told_of(lively: LocalCluster, stage: str) -> None:
    with LatencyStand(lively, FAR) as stand:
        begin(stand, stage)
        undeploy(stand)
        eventually(stand.reasons, accept=lambda found: found["Working"] == "TargetNotFound", what="the condition")
        assert (stand.outcomes(), stand.status().surge, stand.places()) == (["Cancelled"], None, [])


@pytest.mark.parametrize("stage", ["Creating", "Evicting"])
@pytest.mark.parametrize("scaled", [False, True], ids=["alone", "and scaled"])
@pytest.mark.usefixtures("latency_process")
def test_a_policy_that_is_deleted_leaves_as_many_pods_as_somebody_wants(
    lively: LocalCluster, stage: str, scaled: bool
) -> None:
    with LatencyStand(lively, FAR) as stand:
        begin(stand, stage)
        stand.delete()
        if scaled:
            stand.scale(3)
        go_on(stand, stage)
        stand.want(**LIMITS, moves={"dryRun": True})
        # The controller has done with the one before by then.
        eventually(stand.reasons, accept=lambda found: "Working" in found, what="another policy")
        wanted = 3 if scaled else 1
        eventually(lambda: (stand.replicas(), len(stand.places())), accept=(wanted, wanted).__eq__, what="pods")
