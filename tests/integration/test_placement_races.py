"""The world changes between plan and binding: nodes, other schedulers, kubelets, AppGroups, clocks.

The proxy keeps a binding back while the test changes something; with one binding in flight, the decisions behind it
wait inside the controller. That the controller has seen a change is read from its metrics before the binding goes on.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from berth.scheduling.plugins.recently_rejected import REASON as RECENTLY_REJECTED
from hack.harness.cluster import bound_pod, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.bindings import BindingHistory, over_committed
from tests.support.faults import Fault, FaultProxy, Rule
from tests.support.placing import (
    STAGE_LABEL,
    Stage,
    chain,
    configuration,
    profile,
)
from tests.support.stepped_clock import SteppedClock

WAIT_SECONDS = 4
BEYOND_2038 = 15 * 366 * 86_400
"""Seconds: 32 bits hold none of the times that follow."""


@pytest.fixture(scope="module")
def shared_proxy(own_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    """The network between controller and API server."""
    with FaultProxy(own_cluster, directory=tmp_path_factory.mktemp("proxy")) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def controller(shared_proxy: FaultProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """A controller that sends one binding at a time."""
    directory = tmp_path_factory.mktemp("controller")
    arguments = ["--no-leader-elect", *configuration(directory, profile(waitSeconds=600), bindingsInFlight=1)]
    with ControllerProcess.start(
        ["placement"], kubeconfig=shared_proxy.kubeconfig, directory=directory, arguments=arguments
    ) as process:
        yield process.wait_ready()


@pytest.fixture
def proxy(shared_proxy: FaultProxy, controller: ControllerProcess) -> Iterator[FaultProxy]:
    """The network, whole at the beginning and at the end."""
    yield shared_proxy
    shared_proxy.clear()


@pytest.fixture
def stage(own_cluster: LocalCluster, controller: ControllerProcess) -> Stage:
    """A namespace of the test's own; it adds nodes."""
    return Stage(own_cluster)


class Held:
    """Decisions that are made and not bound: the first is in the proxy, the others wait for it."""

    def __init__(self, proxy: FaultProxy, controller: ControllerProcess, stage: Stage) -> None:
        """Hold back the binding of a pod that concerns nobody."""
        self._proxy, self._controller = proxy, controller
        self._rule: Rule = proxy.add(Fault.HOLD)
        stage.nodes("aside", cpu="100m")
        stage.pod("blocker", nodeSelector={"kubernetes.io/hostname": stage.node("aside")})
        proxy.wait_hits(self._rule)

    def decided(self, count: int) -> None:
        """Wait until so many decisions queue behind the first."""
        self._controller.wait_until(
            lambda: self._controller.metric("berth_placement_unbound_decisions"),
            accept=lambda waiting: waiting == count,
            what=f"{count} decisions that wait",
        )

    def seen(self, resource: str, kind: str, change: Callable[[], None]) -> None:
        """Change something and wait until the controller has heard of it."""

        def events() -> float:
            return self._controller.metric("berth_watch_events_total", resource=resource, type=kind)

        before = events()
        change()
        self._controller.wait_until(events, accept=lambda now: now > before, what=f"{resource} {kind} seen")

    def release(self) -> None:
        """Let everything go on."""
        self._proxy.release(self._rule)


@pytest.fixture
def held(proxy: FaultProxy, controller: ControllerProcess, stage: Stage) -> Held:
    """The binder is stopped."""
    return Held(proxy, controller, stage)


NODE_CHANGES = [
    pytest.param("DELETED", lambda stage: stage.delete_node("n1"), "the node was deleted", id="deleted"),
    pytest.param(
        "MODIFIED",
        lambda stage: stage.change_node("n1", {"spec": {"unschedulable": True}}),
        "the node was cordoned",
        id="cordoned",
    ),
    pytest.param(
        "MODIFIED",
        lambda stage: stage.change_node("n1", {"status": {"allocatable": {"cpu": "1"}}}, status=True),
        "the node has too little room left",
        id="shrunk",
    ),
]


@pytest.mark.parametrize(("kind", "change", "words"), NODE_CHANGES)
def test_a_node_changes_between_plan_and_binding(
    own_cluster: LocalCluster, stage: Stage, held: Held, kind: str, change: Callable[[Stage], None], words: str
) -> None:
    stage.nodes("n1", cpu="3")
    stage.apply(chain("web", "db"))
    for workload in ("web", "db"):
        stage.pod(workload, cpu="1200m", group="shop", workload=workload)
    held.decided(2)
    stage.nodes("n2", cpu="3")
    held.seen("nodes", kind, lambda: change(stage))
    with BindingHistory(own_cluster) as history:
        held.release()
        bound = stage.wait_bound("web", "db")
    assert {bound["web"], bound["db"]} == {"n2"}
    notes = [note for name in ("web", "db") for note in stage.events(name, reason="NodeChanged")]
    assert any(words in note for note in notes), notes
    assert history.moved() == {}
    assert over_committed(own_cluster) == []


def test_another_scheduler_takes_the_room(own_cluster: LocalCluster, stage: Stage, held: Held) -> None:
    stage.nodes("n1", cpu="2")
    stage.pod("ours", cpu="1500m")
    held.decided(1)
    body = bound_pod("theirs", stage.node("n1"), schedulerName="default-scheduler")
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    held.seen("pods", "ADDED", lambda: stage.api.request("POST", f"/api/v1/namespaces/{stage.name}/pods", body))
    held.release()
    assert "the node has too little room left" in stage.wait_event("ours", "NodeChanged")
    assert "Insufficient cpu" in stage.wait_event("ours", "FailedScheduling")
    assert "ours" not in stage.bound()
    stage.nodes("n2", cpu="2")
    assert stage.wait_bound("ours")["ours"] == "n2"
    assert over_committed(own_cluster) == []


def test_another_scheduler_binds_our_pod(own_cluster: LocalCluster, stage: Stage, held: Held) -> None:
    stage.nodes("n1", "n2", cpu="1")
    stage.pod("ours", cpu="1", affinity=_prefers(stage, "n1"))
    held.decided(1)
    binding = {"metadata": {"name": "ours"}, "target": {"kind": "Node", "name": stage.node("n2")}}
    path = f"/api/v1/namespaces/{stage.name}/pods/ours/binding"
    with BindingHistory(own_cluster) as history:
        held.seen("pods", "MODIFIED", lambda: stage.api.request("POST", path, binding))
        held.release()
        # The room that was meant for it is free, the room that it has is not.
        stage.pod("next", cpu="1")
        bound = stage.wait_bound("ours", "next")
        assert (bound["ours"], bound["next"]) == ("n2", "n1")
        stage.pod("last", cpu="1m")
        stage.wait_event("last", "FailedScheduling", "Insufficient cpu")
    assert history.moved() == {}


def _prefers(stage: Stage, node: str) -> dict[str, object]:
    values = {"key": "kubernetes.io/hostname", "operator": "In", "values": [stage.node(node)]}
    term = {"weight": 100, "preference": {"matchExpressions": [values]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_a_kubelet_that_rejects_is_avoided(own_cluster: LocalCluster, stage: Stage, proxy: FaultProxy) -> None:
    owner = "8a5c0e4e-0000-4000-8000-000000000001"
    stage.nodes("n1", "n2", cpu="2")
    stage.pod("web-1", owner=owner, affinity=_prefers(stage, "n1"))
    assert stage.wait_bound("web-1")["web-1"] == "n1"
    rejected = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}
    stage.change_status("web-1", rejected)
    note = stage.wait_event("web-1", "RejectedByNode")
    assert note == (
        f"Node {stage.node('n1')} rejected the pod (OutOfcpu): Node didn't have enough resource: cpu; "
        "pods of the same owner avoid this node for 300 s"
    )
    # The replacement that the owner makes must not go there again; other pods may.
    stage.pod("web-2", owner=owner, affinity=_prefers(stage, "n1"))
    assert stage.wait_bound("web-2")["web-2"] == "n2"
    assert {"plugin": "RecentlyRejected", "reason": RECENTLY_REJECTED, "nodes": 1} in stage.decision("web-2")[
        "rejected"
    ]
    stage.pod("other", affinity=_prefers(stage, "n1"), nodeSelector={STAGE_LABEL: stage.name})
    assert stage.wait_bound("other")["other"] == "n1"


@pytest.mark.parametrize("change", ["deleted", "edited"])
def test_an_app_group_that_changes_in_mid_plan(
    own_cluster: LocalCluster, stage: Stage, held: Held, controller: ControllerProcess, change: str
) -> None:
    stage.nodes("n1", "n2", cpu="1")
    stage.costs()
    stage.apply(chain("web", "cart", "db"))
    for workload in ("web", "cart", "db"):
        stage.pod(workload, cpu="300m", group="shop", workload=workload)
    held.decided(3)
    if change == "deleted":
        held.seen("appgroups", "DELETED", lambda: stage.delete_group("shop"))
    else:
        held.seen("appgroups", "MODIFIED", lambda: stage.apply(chain("web", "cart", "db", "cache")))
    with BindingHistory(own_cluster) as history:
        held.release()
        # What was decided under the old rules stands: it was right when it was decided.
        bound = stage.wait_bound("web", "cart", "db")
        assert len({bound["web"], bound["cart"], bound["db"]}) == 1
        if change == "edited":
            stage.pod("cache", cpu="300m", group="shop", workload="cache")
            stage.wait_bound("cache")
    assert history.moved() == {}
    assert controller.running
    assert over_committed(own_cluster) == []


def test_a_member_deleted_in_mid_plan(own_cluster: LocalCluster, stage: Stage, held: Held) -> None:
    stage.nodes("n1", cpu="1")
    stage.apply(chain("web", "db"))
    for workload in ("web", "db"):
        stage.pod(workload, cpu="500m", group="shop", workload=workload)
    held.decided(2)
    held.seen("pods", "DELETED", lambda: stage.delete_pod("db"))
    held.release()
    stage.wait_bound("web")
    # Its room is free again: exactly one replacement fits.
    stage.pod("db", cpu="500m", group="shop", workload="db")
    assert stage.wait_bound("db")["db"] == "n1"
    assert over_committed(own_cluster) == []


def test_a_wall_clock_that_is_wrong_and_steps(own_cluster: LocalCluster, tmp_path: Path) -> None:
    """What counts time counts monotonic time: neither the Lease nor a group's wait goes by the clock."""
    stage = Stage(own_cluster)
    stage.nodes("n1")
    clock = SteppedClock(tmp_path / "clock", seconds=900)
    arguments = ["--lease-namespace", stage.name]
    arguments += configuration(tmp_path, profile("stepped", waitSeconds=WAIT_SECONDS))
    with ControllerProcess.start(
        ["placement"],
        kubeconfig=own_cluster.kubeconfig,
        directory=tmp_path,
        arguments=arguments,
        environment=clock.environment,
    ) as controller:
        controller.wait_leader().wait_ready()
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{stage.name}/leases/berth-placement"

        def renewal_day() -> str:
            return str(stage.api.request("GET", lease)["spec"]["renewTime"])[:10]

        for number, step in enumerate((86_400, -86_400, BEYOND_2038, -BEYOND_2038)):
            renewed = renewal_day()
            stage.apply(chain("web", "missing", name=f"shop-{number}"))
            begun = time.monotonic()
            stage.pod(f"web-{number}", group=f"shop-{number}", workload="web", schedulerName="stepped")
            stage.wait_event(f"web-{number}", "WaitingForMembers")
            clock.step(step)
            # Another renewal under the new time, which shows that the step has arrived.
            eventually(renewal_day, accept=partial(operator.ne, renewed), what="a renewal after the step")
            stage.pod(f"single-{number}", schedulerName="stepped")
            stage.wait_bound(f"single-{number}")
            assert stage.wait_event(f"single-{number}", "Scheduled")
            stage.wait_bound(f"web-{number}")
            assert time.monotonic() - begun >= WAIT_SECONDS
        assert controller.running
        assert len(list(controller.records("became leader"))) == 1
    assert over_committed(own_cluster) == []
