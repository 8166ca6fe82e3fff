"""Bindings that go wrong on the way: a faulty proxy stands between the controller and the real API server.

Every case ends alike: every pod is bound exactly once, no node is over-committed, and the books are right, which is
shown by filling the stage's nodes to the last core afterwards: room that had leaked would be missing then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.bindings import BindingHistory, accepted_bindings, over_committed
from tests.support.faults import Fault, FaultProxy
from tests.support.placing import (
    InProcess,
    Stage,
    chain,
    configuration,
    profile,
)

PODS = 12
"""Pods of a case, half of them an application; the nodes have room for twice as many."""


@pytest.fixture(scope="module")
def proxy(own_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    """The network between controller and API server."""
    with FaultProxy(own_cluster, directory=tmp_path_factory.mktemp("proxy")) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def shared_controller(proxy: FaultProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """A controller behind the proxy."""
    directory = tmp_path_factory.mktemp("controller")
    arguments = ["--no-leader-elect", *configuration(directory, profile(waitSeconds=600))]
    with ControllerProcess.start(
        ["placement"], kubeconfig=proxy.kubeconfig, directory=directory, arguments=arguments
    ) as process:
        yield process.wait_ready()


@pytest.fixture
def controller(shared_controller: ControllerProcess, proxy: FaultProxy) -> ControllerProcess:
    """The controller, the network whole."""
    proxy.clear()
    proxy.bindings.clear()
    return shared_controller


@pytest.fixture
def stage(own_cluster: LocalCluster, controller: ControllerProcess) -> Stage:
    """Two nodes with room for twelve pods each."""
    return _stage(own_cluster)


def _stage(cluster: LocalCluster) -> Stage:
    stage = Stage(cluster)
    stage.nodes("n1", "n2", cpu="1200m")
    stage.apply(chain(*(f"w{number}" for number in range(PODS // 2))))
    return stage


def _create(stage: Stage) -> None:
    for number in range(PODS // 2):
        stage.pod(f"member-{number}", group="shop", workload=f"w{number}")
        stage.pod(f"single-{number}")


def _fill(stage: Stage) -> None:
    """Fill what is left to the last core, and show that one more pod has no room."""
    for number in range(PODS):
        stage.pod(f"rest-{number}")
    assert len(stage.wait_bound()) == 2 * PODS
    stage.pod("too-many")
    assert "2 Insufficient cpu" in stage.wait_event("too-many", "FailedScheduling")
    stage.delete_pod("too-many")


@dataclass(frozen=True)
class Case:
    """One kind of trouble."""

    fault: Fault
    """what happens to bindings"""
    times: int | None = 5
    """bindings that it happens to"""
    status: int = 500
    """status of an answer"""
    retry_after: int | None = None
    """seconds that an answer asks to wait"""
    outcomes: tuple[str, ...] = ("bound",)
    """what the controller's metric of binding outcomes counts in the course"""
    told: str = ""
    """text of a BindingFailed Event, empty when people need not hear of it"""
    keeps: bool = field(default=False)
    """the faulty bindings took effect: none of them is written again"""


CASES = [
    pytest.param(
        Case(Fault.ANSWER, status=409, outcomes=("bound", "refused"), told="409 Conflict: injected by the test"),
        id="409",
    ),
    pytest.param(Case(Fault.ANSWER, status=429, retry_after=1), id="429 with Retry-After"),
    pytest.param(Case(Fault.ANSWER, status=500), id="500, not written"),
    pytest.param(Case(Fault.ANSWER_AFTER, status=500, keeps=True), id="500, written"),
    pytest.param(Case(Fault.ANSWER_AFTER, status=409, keeps=True), id="409, written"),
    pytest.param(Case(Fault.RESET), id="reset before it is written"),
    pytest.param(Case(Fault.RESET_AFTER, keeps=True), id="reset after it is written"),
    pytest.param(Case(Fault.RESET_AFTER, times=None, keeps=True), id="every answer lost"),
]


@pytest.mark.parametrize("case", CASES)
def test_every_pod_is_bound_once(
    own_cluster: LocalCluster, proxy: FaultProxy, controller: ControllerProcess, stage: Stage, case: Case
) -> None:
    before = accepted_bindings(own_cluster)
    counted = {name: controller.metric("berth_placement_bindings_total", outcome=name) for name in ("bound", "refused")}
    with BindingHistory(own_cluster) as history:
        rule = proxy.add(case.fault, times=case.times, status=case.status, retry_after=case.retry_after)
        _create(stage)
        stage.wait_bound()
        proxy.wait_hits(rule, case.times or PODS)
        proxy.release(rule)
        hit = {binding.pod for binding in proxy.bindings if binding.fault is case.fault}
        assert hit
        _fill(stage)
    assert history.moved() == {}
    assert accepted_bindings(own_cluster) - before == 2 * PODS
    assert over_committed(own_cluster) == []
    if case.keeps:
        # Whoever reads the pod back sees that it is bound, and sends nothing again.
        assert {pod: [b.pod for b in proxy.bindings].count(pod) for pod in hit} == dict.fromkeys(hit, 1)
    eventually(
        lambda: controller.metric("berth_placement_bindings_total", outcome="bound") - counted["bound"],
        accept=lambda more: more == 2 * PODS,
        what="all outcomes known",
    )
    refused = controller.metric("berth_placement_bindings_total", outcome="refused") - counted["refused"]
    assert (refused > 0) == ("refused" in case.outcomes)
    for pod in hit:
        assert stage.wait_event(pod, "Scheduled")
        if case.told:
            note = stage.wait_event(pod, "BindingFailed")
            assert note.startswith("Binding to node ")
            assert case.told in note
        else:
            assert stage.events(pod, reason="BindingFailed") == []


def test_a_binding_that_is_never_accepted_is_given_up_and_tried_anew(
    own_cluster: LocalCluster, proxy: FaultProxy, stage: Stage, controller: ControllerProcess
) -> None:
    rule = proxy.add(Fault.ANSWER, status=500, path=r".*/pods/stubborn/binding")
    stage.pod("stubborn")
    note = stage.wait_event("stubborn", "BindingFailed", "500 InternalError: injected by the test")
    assert note.endswith("the pod will be scheduled again: 500 InternalError: injected by the test")
    # Others do not wait for it.
    stage.witness()
    assert "stubborn" not in stage.bound()
    proxy.release(rule)
    stage.wait_bound("stubborn")
    assert over_committed(own_cluster) == []


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.HANG_AFTER], ids=["never written", "written, never answered"])
def test_a_binding_that_hangs_until_the_client_gives_up(
    own_cluster: LocalCluster, proxy: FaultProxy, fault: Fault
) -> None:
    # A controller of its own, in this process: its client waits one second instead of thirty.
    proxy.clear()
    proxy.bindings.clear()
    scheduler = f"hasty-{fault.name.lower().replace('_', '-')}"
    stage = _stage(own_cluster)
    before = accepted_bindings(own_cluster)
    with BindingHistory(own_cluster) as history, InProcess(proxy.kubeconfig, profile(scheduler), timeout=1.0):
        rule = proxy.add(fault, times=3)
        for number in range(2 * PODS):
            stage.pod(f"single-{number}", schedulerName=scheduler)
        stage.wait_bound()
        proxy.wait_hits(rule, 3)
        stage.pod("too-many", schedulerName=scheduler)
        assert "2 Insufficient cpu" in stage.wait_event("too-many", "FailedScheduling")
    assert history.moved() == {}
    assert accepted_bindings(own_cluster) - before == 2 * PODS
    assert over_committed(own_cluster) == []


def test_a_pod_that_is_gone_when_its_answer_was_lost(
    own_cluster: LocalCluster, proxy: FaultProxy, stage: Stage, controller: ControllerProcess
) -> None:
    held = proxy.add(Fault.HOLD, path=r".*/pods/doomed/binding")
    stage.pod("doomed", cpu="1200m")
    proxy.wait_hits(held)
    stage.delete_pod("doomed")
    # A namesake is another pod: the uid in the binding keeps the old decision off it.
    stage.pod("doomed", cpu="100m")
    proxy.release(held)
    stage.wait_bound("doomed")
    eventually(lambda: controller.metric("berth_placement_unbound_decisions"), accept=lambda n: n == 0, what="drained")
    for number in range(2 * PODS - 1):
        stage.pod(f"rest-{number}")
    assert len(stage.wait_bound()) == 2 * PODS
    statuses = [binding.status for binding in proxy.bindings if binding.pod == "doomed"]
    # Both bindings may have been held, and then either may be answered first.
    assert {404, 409} & set(statuses)
    assert statuses.count(201) == 1
    assert over_committed(own_cluster) == []


def test_reads_and_events_through_a_bad_network(
    own_cluster: LocalCluster, proxy: FaultProxy, stage: Stage, controller: ControllerProcess
) -> None:
    """What is read back after a lost answer may fail as well, and so may Events and conditions."""
    proxy.add(Fault.RESET_AFTER, times=4)
    reads = proxy.add(Fault.ANSWER, method="GET", path=r"/api/v1/namespaces/[^/]+/pods/[^/]+", status=503, times=6)
    proxy.add(Fault.ANSWER, path=r"/apis/events.k8s.io/.*", status=500, times=4)
    conditions = proxy.add(Fault.RESET_AFTER, method="PATCH", path=r".*/pods/[^/]+/status", times=1)
    with BindingHistory(own_cluster) as history:
        _create(stage)
        stage.wait_bound()
        proxy.wait_hits(reads, 4)
        for number in range(PODS):
            stage.pod(f"rest-{number}")
        stage.wait_bound()
        stage.pod("too-many")
        stage.wait_event("too-many", "FailedScheduling", "2 Insufficient cpu")
        assert eventually(lambda: stage.condition("too-many"), what="condition")["reason"] == "Unschedulable"
        proxy.wait_hits(conditions)
    for name in stage.bound():
        stage.wait_event(name, "Scheduled")
    assert history.moved() == {}
    assert over_committed(own_cluster) == []


def test_watches_that_are_cut_all_the_time(
    own_cluster: LocalCluster, proxy: FaultProxy, stage: Stage, controller: ControllerProcess
) -> None:
    with BindingHistory(own_cluster) as history:
        for number in range(PODS // 2):
            stage.pod(f"member-{number}", group="shop", workload=f"w{number}")
            eventually(proxy.cut_watches, what="watches to cut")
            stage.pod(f"single-{number}")
            eventually(proxy.cut_watches, what="watches that came back")
        stage.wait_bound()
        _fill(stage)
    assert history.moved() == {}
    assert over_committed(own_cluster) == []
    assert controller.running


def test_an_application_is_placed_although_the_watch_of_appgroups_says_nothing(
    own_cluster: LocalCluster, controller: ControllerProcess, proxy: FaultProxy
) -> None:
    """As where large AppGroups of others come first: it is read by itself, and its pods are planned together."""
    before = controller.metric("berth_watch_events_total", resource="appgroups", type="ADDED")
    silence = proxy.add(Fault.SILENCE, method="GET", path=r"/apis/appgroup\.diktyo\.x-k8s\.io/v1alpha1/appgroups")
    proxy.cut_watches()
    proxy.wait_hits(silence, 1)
    stage = _stage(own_cluster)
    for number in range(PODS // 2):
        stage.pod(f"member-{number}", group="shop", workload=f"w{number}")
    stage.wait_bound(*(f"member-{number}" for number in range(PODS // 2)))
    assert controller.metric("berth_watch_events_total", resource="appgroups", type="ADDED") == before
    assert {stage.decision(f"member-{number}")["plannedWith"] for number in range(PODS // 2)} == {PODS // 2}
    proxy.clear()
    proxy.cut_watches()
