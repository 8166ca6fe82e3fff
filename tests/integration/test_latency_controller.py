"""Pods move near their users on a real API server: one more is created where it should be before another is evicted.

Who places pods, meters and node agents are played (`tests.support.latency_stand`). Left out: what is decided
(tests/unit/berth/scheduling/latency), crashes (test_latency_recovery.py), input that makes no sense
(test_latency_input.py).
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.latency_stand import LatencyStand

LIMITS: dict[str, Any] = {"hardMaxLatency": 80, "softMaxLatency": 30}


@pytest.mark.usefixtures("latency_process")
def test_a_pod_beyond_the_limit_moves_to_the_nearest_node_that_agents_have_measured(lively: LocalCluster) -> None:
    with LatencyStand(lively, {"a": 120, "b": 60, "c": 20}) as stand:
        stand.deploy()
        stand.want(**LIMITS)
        stand.wait_settled("c")
        eventually(stand.outcomes, accept=lambda found: found == ["Confirmed"], what="gain")
        status = stand.status()
        [move] = status.moves
        assert (move.reason, move.before_microseconds, move.expected_microseconds) == (
            "BeyondHardLimit",
            120_000,
            20_000,
        )
        assert move.after_microseconds == 20_000
        assert (max(stand.serving), stand.least()) == (2, 1)
        eventually(stand.reasons, accept=lambda found: found["WithinLimits"] == "Within", what="conditions")
        assert stand.reasons() == {"Working": "Measuring", "WithinLimits": "Within", "Moving": "Idle"}
        where = ["-n", stand.stage.name, "--kubeconfig", str(lively.kubeconfig)]
        page = CliRunner().invoke(app, ["explain", "lp/web", *where], env={"COLUMNS": "250"}).stdout
        assert "100.0 ms" in next(line for line in page.splitlines() if "Confirmed" in line)
        assert "within the hard limit of 80 ms, beyond the soft limit of 30 ms" in page
        assert (stand.status().state, stand.status().p50, stand.status().moves_last_hour) == ("SoftValid", "20.0 ms", 1)


@pytest.mark.usefixtures("latency_process")
def test_what_users_had_on_a_node_before_says_nothing_against_a_move_there(lively: LocalCluster) -> None:
    with LatencyStand(lively, {"a": 120, "b": 20}) as stand:
        stand.deploy()
        stand.want(**LIMITS)
        stand.wait_settled("b")
        eventually(stand.outcomes, accept=["Confirmed"].__eq__, what="the first gain", timeout=120.0)
        for name, far in {"a": 20, "b": 120}.items():
            stand.far[stand.stage.node(name)] = stand.probed[stand.stage.node(name)] = far
        stand.wait_settled("a", timeout=180.0)
        eventually(stand.outcomes, accept=["Confirmed", "Confirmed"].__eq__, what="the second gain", timeout=120.0)


@pytest.mark.usefixtures("latency_process")
def test_two_replicas_move_one_after_the_other(lively: LocalCluster) -> None:
    with LatencyStand(lively, {"a": 120, "b": 100, "c": 20, "d": 25}) as stand:
        stand.budget(minAvailable=2)
        stand.deploy(replicas=2)
        stand.want(**LIMITS)
        stand.wait_settled("c", "d", timeout=120)
        assert (max(stand.serving), stand.least(2)) == (3, 2), stand.serving
        # Which of both is first goes by whose agent told first.
        assert sorted(move.target_node for move in stand.status().moves) == [
            stand.stage.node("c"),
            stand.stage.node("d"),
        ]


@pytest.mark.usefixtures("latency_process")
def test_users_who_do_not_answer_agents_are_brought_near_by_pods_that_explore(lively: LocalCluster) -> None:
    with LatencyStand(lively, {"a": 120, "b": 100, "c": 20}) as stand:
        stand.probed.clear()
        stand.deploy()
        stand.want(**LIMITS)
        stand.wait_settled("c")
        status = stand.status()
        assert status.unreachable_time is not None
        assert {move.target_node.rpartition("-")[2] for move in status.moves} <= {"b", "c"}
        assert (max(stand.serving), stand.least()) == (2, 1)


@pytest.mark.usefixtures("latency_process")
@pytest.mark.parametrize(
    ("budgets", "text"),
    [
        pytest.param({"none": {"maxUnavailable": 0}}, "The disruption budget none needs", id="one that allows none"),
        pytest.param(
            {"web": {"maxUnavailable": 1}, "other": {"maxUnavailable": 1}},
            "more than one PodDisruptionBudget",
            id="two for one pod",
        ),
    ],
)
def test_budgets_that_forbid_the_eviction_are_told_and_obeyed_until_they_allow_it(
    lively: LocalCluster, budgets: dict[str, dict[str, int]], text: str
) -> None:
    with LatencyStand(lively, {"a": 120, "b": 20}) as stand:
        for name, budget in budgets.items():
            stand.budget(name, **budget)
        stand.deploy()
        stand.want(**LIMITS)
        eventually(stand.reasons, accept=lambda found: found.get("Moving") == "EvictionRefused", what="refusal")
        assert text in stand.message("Moving")
        assert stand.places() == ["a", "b"]
        assert "web-" in stand.stage.wait_event("web", "EvictionRefused")
        for name in budgets:
            stand.api.request("DELETE", f"/apis/policy/v1/namespaces/{stand.stage.name}/poddisruptionbudgets/{name}")
        stand.wait_settled("b")
        assert stand.least() == 1


@pytest.mark.usefixtures("latency_process")
def test_a_quota_that_has_no_room_for_the_new_pod_is_told_until_it_has(lively: LocalCluster) -> None:
    with LatencyStand(lively, {"a": 120, "b": 20}) as stand:
        stand.deploy()
        eventually(stand.places, accept=lambda found: found == ["a"], what="a pod")
        quotas = f"/api/v1/namespaces/{stand.stage.name}/resourcequotas"
        stand.api.request("POST", quotas, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
        used = lambda: stand.api.request("GET", f"{quotas}/few").get("status", {}).get("used")  # noqa: E731
        eventually(used, accept=lambda found: found == {"pods": "1"}, what="a quota that is used up")
        stand.want(**LIMITS)
        eventually(stand.reasons, accept=lambda found: found.get("Moving") == "CreationRefused", what="refusal")
        assert "exceeded quota: few" in stand.message("Moving")
        assert (stand.places(), stand.replicas(), stand.outcomes()) == (["a"], 2, ["Creating"])
        stand.api.request("DELETE", f"{quotas}/few")
        stand.wait_settled("b")
        assert stand.least() == 1


@pytest.mark.usefixtures("latency_process")
def test_a_new_pod_counts_once_it_was_ready_for_as_long_as_the_deployment_says(lively: LocalCluster) -> None:
    with LatencyStand(lively, {"a": 120, "b": 20}) as stand:
        stand.deploy()
        path = f"/apis/apps/v1/namespaces/{stand.stage.name}/deployments/web"
        settles = {"spec": {"minReadySeconds": 10}}
        stand.api.request("PATCH", path, settles, content_type="application/merge-patch+json")
        stand.want(**LIMITS)
        eventually(lambda: [move.ready_time for move in stand.status().moves if move.ready_time], what="a new pod")
        [move] = stand.status().moves
        assert (move.outcome.value, stand.places()) == ("Creating", ["a", "b"])
        stand.wait_settled("b")
        [move] = stand.status().moves
        assert move.ready_time is not None
        assert (datetime.now(UTC) - move.ready_time).total_seconds() >= 10
        assert stand.least() == 1


@pytest.mark.usefixtures("latency_process")
def test_one_replica_that_a_budget_protects_moves_all_the_same(lively: LocalCluster) -> None:
    with LatencyStand(lively, {"a": 120, "b": 20}) as stand:
        stand.budget(minAvailable=1)
        stand.deploy()
        stand.want(**LIMITS)
        stand.wait_settled("b")
        assert stand.least() == 1


@pytest.mark.usefixtures("latency_process")
def test_a_dry_run_tells_the_move_and_makes_none(lively: LocalCluster) -> None:
    with LatencyStand(lively, {"a": 120, "b": 20}) as stand:
        stand.deploy()
        stand.want(**LIMITS, moves={"dryRun": True})
        eventually(stand.reasons, accept=lambda found: found.get("Moving") == "DryRun", what="dry run")
        text = stand.message("Moving")
        assert f"would go from {stand.stage.node('a')} to {stand.stage.node('b')}" in text
        assert (stand.places(), stand.replicas(), stand.outcomes()) == (["a"], 1, [])
        stand.want(**LIMITS)
        stand.wait_settled("b")


@pytest.mark.usefixtures("latency_process")
def test_who_sets_the_number_of_replicas_while_a_pod_moves_has_the_last_word(lively: LocalCluster) -> None:
    with LatencyStand(lively, {"a": 120, "b": 20}) as stand:
        stand.budget(maxUnavailable=0)
        stand.deploy()
        stand.want(**LIMITS)
        eventually(stand.outcomes, accept=lambda found: found == ["Evicting"], what="a move that waits")
        stand.want(**LIMITS, moves={"maxPerHour": 1})
        stand.scale(3)
        eventually(stand.outcomes, accept=lambda found: found == ["Cancelled"], what="the end of it")
        eventually(stand.places, accept=lambda found: len(found) == 3, what="three pods")
        assert "set to 3" in stand.stage.wait_event("web", "ReplicasChanged")
        assert (stand.replicas(), stand.status().surge) == (3, None)


@pytest.mark.usefixtures("latency_process")
def test_nodes_of_a_zone_count_as_one(lively: LocalCluster) -> None:
    with LatencyStand(lively, {"a": 60, "b": 10}) as stand:
        stand.probed.clear()
        stand.deploy()
        stand.want(**LIMITS, sharing="Zone")
        eventually(stand.reasons, accept=lambda found: found.get("WithinLimits") == "BeyondSoftLimit", what="limits")
        eventually(lambda: len(stand.status().nodes), accept=lambda found: found == 2, what="both nodes known")
        assert {known.p50_microseconds for known in stand.status().nodes} == {60_000}
        assert (stand.places(), stand.outcomes()) == (["a"], [])


def test_a_policy_that_is_deleted_while_a_pod_moves_leaves_as_many_replicas_as_before(
    lively: LocalCluster, latency_process: ControllerProcess
) -> None:
    with LatencyStand(lively, {"a": 120, "b": 20}) as stand:
        stand.budget(maxUnavailable=0)
        stand.deploy()
        stand.want(**LIMITS)
        eventually(stand.outcomes, accept=lambda found: found == ["Evicting"], what="a move that waits")
        assert stand.replicas() == 2
        stand.delete()
        eventually(stand.replicas, accept=lambda found: found == 1, what="replicas")
        assert latency_process.running


@pytest.mark.usefixtures("latency_process")
def test_the_placement_controller_puts_the_new_pod_where_it_is_awaited(lively: LocalCluster, tmp_path: Path) -> None:
    with ControllerProcess.start(
        ["placement"], kubeconfig=lively.kubeconfig, directory=tmp_path, arguments=["--no-leader-elect"]
    ) as placement:
        placement.wait_ready()
        with LatencyStand(lively, {"a": 120, "b": 60, "c": 20}) as stand:
            stand.places_pods = False
            for name in ("b", "c"):  # whom the first pod would be as welcome to
                stand.stage.change_node(name, {"spec": {"unschedulable": True}})
            stand.deploy()
            stand.wait_settled("a")
            for name in ("b", "c"):
                stand.stage.change_node(name, {"spec": {"unschedulable": False}})
            stand.want(**LIMITS)
            stand.wait_settled("c")
            eventually(stand.outcomes, accept=lambda found: found == ["Confirmed"], what="gain")
            assert (max(stand.serving), stand.least()) == (2, 1)
