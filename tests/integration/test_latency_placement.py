"""A pod that moves is placed where it is awaited by the placement controller itself, whatever its watches have shown.

Between placement and the API server is a faulty network; users, meters and agents are played. Left out: what is decided
by that (tests/unit/berth/scheduling/plugins/test_user_latency.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.faults import Fault, FaultProxy
from tests.support.latency_stand import LatencyStand

LIMITS: dict[str, Any] = {"hardMaxLatency": 80, "softMaxLatency": 30}
POLICIES = r"/apis/berth\.dev/v1alpha1/latencypolicies"
ONE_POLICY = r"/apis/berth\.dev/v1alpha1/namespaces/[^/]+/latencypolicies/[^/]+"


@contextmanager
def placing(proxy: FaultProxy, directory: Path) -> Iterator[ControllerProcess]:
    """A placement controller behind a faulty network."""
    with ControllerProcess.start(
        ["placement"], kubeconfig=proxy.kubeconfig, directory=directory, arguments=["--no-leader-elect"]
    ) as process:
        yield process.wait_ready()


@contextmanager
def far_away(cluster: LocalCluster) -> Iterator[LatencyStand]:
    """A stand whose nearest node is the last that a scheduler would take by itself.

    No pod explores: where the stand's agents are late, as on a busy machine, one would go to the other node first.
    """
    with LatencyStand(cluster, {"a": 120, "b": 130, "c": 20}) as stand:
        stand.places_pods = False
        stand.stage.change_node("c", {"spec": {"taints": [{"key": "slow", "effect": "PreferNoSchedule"}]}})
        for name in ("b", "c"):
            stand.stage.change_node(name, {"spec": {"unschedulable": True}})
        stand.want(**LIMITS, exploration=["ReverseProbe"])
        yield stand


def let_move(stand: LatencyStand) -> None:
    """Open the node that is nearest first: a move that is decided in between goes there as well."""
    for name in ("c", "b"):
        stand.stage.change_node(name, {"spec": {"unschedulable": False}})


def begin_move(stand: LatencyStand, proxy: FaultProxy, directory: Path) -> None:
    """Have a pod move whose new one waits: nobody places pods any more."""
    with placing(proxy, directory):
        stand.deploy()
        stand.wait_settled("a")
    let_move(stand)
    eventually(stand.outcomes, accept=["Creating"].__eq__, what="move", timeout=120.0)
    eventually(stand.places, accept=["", "a"].__eq__, what="a pod that waits")


@pytest.mark.usefixtures("latency_process")
def test_a_watch_of_policies_that_says_nothing_leads_no_pod_astray(lively: LocalCluster, tmp_path: Path) -> None:
    with FaultProxy(lively, directory=tmp_path) as proxy, far_away(lively) as stand:
        proxy.add(Fault.SILENCE, method="GET", path=POLICIES)
        with placing(proxy, tmp_path):
            stand.deploy()
            stand.wait_settled("a")
            let_move(stand)
            stand.wait_settled("c")
            eventually(stand.outcomes, accept=["Confirmed"].__eq__, what="gain")
            assert (max(stand.serving), stand.least()) == (2, 1)


@pytest.mark.usefixtures("latency_process")
def test_a_placement_controller_that_begins_anew_in_between_puts_it_there_too(
    lively: LocalCluster, tmp_path: Path
) -> None:
    """A pod that waits for it is there before it has heard of any policy."""
    with FaultProxy(lively, directory=tmp_path) as proxy, far_away(lively) as stand:
        begin_move(stand, proxy, tmp_path)
        listing = proxy.add(Fault.HOLD, method="GET", path=POLICIES)
        with placing(proxy, tmp_path):
            proxy.wait_hits(listing)
            before = len(proxy.bindings)
            proxy.release(listing)
            stand.wait_settled("c")
            assert next(each.node for each in proxy.bindings[before:]) == stand.stage.node("c")
            eventually(stand.outcomes, accept=["Confirmed"].__eq__, what="gain")


@pytest.mark.usefixtures("latency_process")
def test_a_policy_that_cannot_be_read_keeps_no_pod_of_others_and_its_own_not_for_ever(
    lively: LocalCluster, tmp_path: Path
) -> None:
    with FaultProxy(lively, directory=tmp_path) as proxy, far_away(lively) as stand, placing(proxy, tmp_path):
        reading = proxy.add(Fault.ANSWER, method="GET", path=ONE_POLICY, status=500)
        stand.deploy()
        proxy.wait_hits(reading, 2)
        stand.stage.witness()
        assert stand.places() == [""]
        stand.wait_settled("a")


@pytest.mark.usefixtures("latency_process")
def test_a_move_to_a_node_that_is_cordoned_before_the_pod_comes_is_given_up_at_once(
    lively: LocalCluster, tmp_path: Path
) -> None:
    with FaultProxy(lively, directory=tmp_path) as proxy, far_away(lively) as stand:
        begin_move(stand, proxy, tmp_path)
        stand.stage.change_node("c", {"spec": {"unschedulable": True}})
        with placing(proxy, tmp_path):
            eventually(lambda: stand.outcomes()[0], accept="Cancelled".__eq__, what="the end of it", timeout=60.0)
            assert "takes no pod any more" in stand.stage.wait_event("web", "MoveCancelled")
            eventually(lambda: (stand.replicas(), len(stand.places())), accept=(1, 1).__eq__, what="one pod")
