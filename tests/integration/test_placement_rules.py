"""Rules for single pods, live: what is refused, what is left alone, and who comes first when room is scarce.

The filters' own cases are in tests/unit/berth/scheduling/plugins and in the comparison with kube-scheduler; here is
what only a real API server shows: fields that it fills in, Events, conditions, gates that are taken away, nodes that
change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.bindings import over_committed
from tests.support.placing import (
    BARE,
    STAGE_LABEL,
    Stage,
    chain,
    configuration,
    profile,
)


@pytest.fixture(scope="module")
def own_cluster(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A cluster where nothing but the test and Berth changes pods and nodes."""
    # With a field that the API server would drop otherwise: spec.schedulingGroup.
    flags = ("--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true")
    options = replace(BARE["options"], apiserver_args=(*BARE["options"].apiserver_args, *flags))
    return module_cluster(**{**BARE, "options": options})


@pytest.fixture(scope="module")
def controller(own_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """The controller that places everything."""
    directory = tmp_path_factory.mktemp("controller")
    arguments = ["--no-leader-elect", *configuration(directory, profile(waitSeconds=600))]
    with ControllerProcess.start(
        ["placement"], kubeconfig=own_cluster.kubeconfig, directory=directory, arguments=arguments
    ) as process:
        yield process.wait_ready()


@pytest.fixture
def stage(own_cluster: LocalCluster, controller: ControllerProcess) -> Stage:
    """A namespace of the test's own; it adds nodes."""
    return Stage(own_cluster)


GATED: dict[str, Any] = {"schedulingGates": [{"name": "example.com/quota"}]}
CLAIMING: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}


def _ungate(stage: Stage, name: str) -> None:
    path = f"/api/v1/namespaces/{stage.name}/pods/{name}"
    body: dict[str, Any] = {"spec": {"schedulingGates": []}}
    stage.api.request("PATCH", path, body, content_type="application/merge-patch+json")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param(CLAIMING, "spec.resourceClaims", id="resourceClaims"),
        pytest.param({"schedulingGroup": {"podGroupName": "shop"}}, "spec.schedulingGroup", id="schedulingGroup"),
    ],
)
def test_a_field_that_is_not_implemented_keeps_the_pod_pending(stage: Stage, spec: dict[str, Any], field: str) -> None:
    stage.nodes("n1")
    stage.pod("odd", **spec)
    note = stage.wait_event("odd", "FailedScheduling")
    assert f"the pod uses fields that Berth does not implement: {field}" in note
    condition = eventually(lambda: stage.condition("odd"), what="condition")
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Unschedulable", note)
    stage.witness()
    assert "odd" not in stage.bound()


def test_a_pod_with_such_a_field_holds_back_its_group(stage: Stage) -> None:
    stage.nodes("n1")
    stage.apply(chain("web", "db"))
    stage.pod("web", group="shop", workload="web")
    stage.pod("db", group="shop", workload="db", **CLAIMING)
    assert "spec.resourceClaims" in stage.wait_event("db", "FailedScheduling")
    assert "waits for pod db" in stage.wait_event("web", "FailedScheduling")
    stage.witness()
    assert not {"web", "db"} & stage.bound().keys()


def test_pods_of_other_schedulers_are_left_alone(stage: Stage) -> None:
    stage.nodes("n1")
    stage.pod("theirs", schedulerName="default-scheduler")
    stage.pod("nobodys", schedulerName="nobody")
    stage.witness()
    assert not {"theirs", "nobodys"} & stage.bound().keys()
    assert stage.events("theirs") == stage.events("nobodys") == []
    assert stage.condition("theirs") == {}


def test_scheduling_gates_are_waited_for(stage: Stage) -> None:
    stage.nodes("n1")
    stage.pod("gated", **GATED)
    stage.witness()
    assert "gated" not in stage.bound()
    # The API server itself says SchedulingGated; a scheduler that said Unschedulable would wake autoscalers.
    assert stage.condition("gated")["reason"] == "SchedulingGated"
    _ungate(stage, "gated")
    assert stage.wait_bound("gated")["gated"] == "n1"


def test_a_gated_member_is_no_member_yet(stage: Stage) -> None:
    stage.nodes("n1")
    stage.apply(chain("web", "db"))
    stage.pod("web", group="shop", workload="web")
    stage.pod("db", group="shop", workload="db", **GATED)
    stage.wait_event("shop", "WaitingForMembers", "1 of 2 pods; workloads without a pod: db")
    stage.witness()
    assert "web" not in stage.bound()
    _ungate(stage, "db")
    stage.wait_bound("web", "db")
    assert stage.decision("web")["plannedWith"] == 2


def _apart(label: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"apart": label}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_required_anti_affinity_inside_a_group(stage: Stage) -> None:
    stage.nodes("n1", "n2", "n3")
    stage.costs()
    stage.apply(chain("web", "cart", "db"))
    for workload in ("web", "cart", "db"):
        stage.pod(workload, group="shop", workload=workload, labels={"apart": "yes"}, affinity=_apart("yes"))
    assert set(stage.wait_bound().values()) == {"n1", "n2", "n3"}


def test_anti_affinity_that_leaves_no_node_binds_nothing(stage: Stage) -> None:
    stage.nodes("n1", "n2")
    stage.apply(chain("web", "cart", "db"))
    for workload in ("web", "cart", "db"):
        stage.pod(workload, group="shop", workload=workload, labels={"apart": "yes"}, affinity=_apart("yes"))
    notes = [stage.wait_event(name, "FailedScheduling") for name in ("web", "cart", "db")]
    assert any("didn't match pod anti-affinity rules" in note for note in notes), notes
    stage.witness()
    assert not {"web", "cart", "db"} & stage.bound().keys()
    stage.nodes("n3")
    placed = stage.wait_bound()
    assert {placed[name] for name in ("web", "cart", "db")} == {"n1", "n2", "n3"}


def test_tainted_and_cordoned_nodes(stage: Stage) -> None:
    stage.nodes("free")
    stage.nodes("tainted", taint="special:NoSchedule", cpu="64")
    stage.nodes("cordoned", cpu="64")
    stage.change_node("cordoned", {"spec": {"unschedulable": True}})
    stage.apply(chain("web", "db"))
    for workload in ("web", "db"):
        stage.pod(workload, cpu="1500m", group="shop", workload=workload)
    assert set(stage.wait_bound("web", "db").values()) == {"free"}
    stage.pod("late", cpu="1500m")
    note = stage.wait_event("late", "FailedScheduling")
    for reason in ("1 Insufficient cpu", "1 node(s) had untolerated taint", "1 node(s) were unschedulable"):
        assert reason in note
    stage.pod("tolerant", cpu="1500m", tolerations=[{"key": "special", "operator": "Exists"}])
    assert stage.wait_bound("tolerant")["tolerant"] == "tainted"
    assert "late" not in stage.bound()
    stage.change_node("cordoned", {"spec": {"unschedulable": None}})
    assert stage.wait_bound("late")["late"] == "cordoned"


def _priority_class(stage: Stage, name: str, value: int) -> str:
    body = {"metadata": {"name": f"{stage.name}-{name}"}, "value": value}
    stage.api.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    return f"{stage.name}-{name}"


LATE = "late-scheduler"
"""Scheduler name of pods that are there before their controller."""


@pytest.fixture
def late_controller(
    own_cluster: LocalCluster, tmp_path: Path
) -> Callable[[], AbstractContextManager[ControllerProcess]]:
    """Starts a second controller, which meets everything that is there at once, in its first lists."""
    arguments = ["--no-leader-elect", *configuration(tmp_path, profile(LATE, waitSeconds=600))]

    def start() -> AbstractContextManager[ControllerProcess]:
        return ControllerProcess.start(
            ["placement"], kubeconfig=own_cluster.kubeconfig, directory=tmp_path, arguments=arguments
        )

    return start


def test_priority_comes_first_when_room_is_scarce(
    own_cluster: LocalCluster, stage: Stage, late_controller: Callable[[], AbstractContextManager[ControllerProcess]]
) -> None:
    low, high = _priority_class(stage, "low", 1), _priority_class(stage, "high", 1000)
    stage.nodes("n1", cpu="1")
    for number in range(3):
        stage.pod(f"low-{number}", cpu="500m", priorityClassName=low, schedulerName=LATE)
    for number in range(2):
        stage.pod(f"high-{number}", cpu="500m", priorityClassName=high, schedulerName=LATE)
    with late_controller():
        for number in range(3):
            assert "1 Insufficient cpu" in stage.wait_event(f"low-{number}", "FailedScheduling")
        assert set(stage.wait_bound("high-0", "high-1")) == {"high-0", "high-1"}
    assert over_committed(own_cluster) == []


def test_an_urgent_group_goes_before_an_earlier_one(
    stage: Stage, late_controller: Callable[[], AbstractContextManager[ControllerProcess]]
) -> None:
    high = _priority_class(stage, "high", 1000)
    stage.nodes("n1", cpu="1")
    stage.apply(chain("web", "db", name="early"))
    stage.apply(chain("web", "db", name="urgent"))
    for workload in ("web", "db"):
        stage.pod(f"early-{workload}", cpu="400m", group="early", workload=workload, schedulerName=LATE)
    for workload in ("web", "db"):
        urgent: dict[str, Any] = {"group": "urgent", "workload": workload, "priorityClassName": high}
        stage.pod(f"urgent-{workload}", cpu="400m", schedulerName=LATE, **urgent)
    with late_controller():
        for workload in ("web", "db"):
            stage.wait_event(f"early-{workload}", "FailedScheduling")
        assert set(stage.wait_bound("urgent-web", "urgent-db")) == {"urgent-web", "urgent-db"}


def test_requests_of_init_containers_sidecars_and_overhead_count(own_cluster: LocalCluster, stage: Stage) -> None:
    stage.nodes("n1", cpu="2")
    request = {"image": "registry.invalid/main:1", "resources": {"requests": {"cpu": "800m"}}}
    stage.pod(
        "wide",
        cpu="800m",
        initContainers=[{"name": "sidecar", "restartPolicy": "Always", **request}, {"name": "setup", **request}],
    )
    stage.wait_bound("wide")
    stage.pod("second", cpu="500m")
    assert "1 Insufficient cpu" in stage.wait_event("second", "FailedScheduling")
    stage.pod("third", cpu="400m", nodeSelector={STAGE_LABEL: stage.name})
    assert stage.wait_bound("third")["third"] == "n1"
    assert over_committed(own_cluster) == []
