"""Sockets on a real API server: the annotation of the Binding, and the assignments of SocketStatuses.

Left out: pinning, which is the node agent's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.api import socketstatus, workloadprofile
from berth.api.labels import ANNOTATION_SOCKET, LABEL_INTERFERENCE_CLASS
from controllers.placement.socket_assignments import FIELD_MANAGER
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.faults import Fault, FaultProxy
from tests.support.placing import Stage, chain, configuration, profile


@pytest.fixture
def stage(own_cluster: LocalCluster) -> Iterator[Stage]:
    """A stage with one node of two sockets."""
    stage = Stage(own_cluster)
    stage.nodes("n1")
    sockets = [{"socket": number, "cpus": f"{2 * number}-{2 * number + 1}", "cpuCount": 2} for number in range(2)]
    for part, body in (("", {}), ("/status", {"status": {"sockets": sockets}})):
        write(stage, body, part=part, manager="agent")
    yield stage
    stage.api.request("DELETE", _path(stage))
    stage.close()


def _path(stage: Stage) -> str:
    return f"/apis/{socketstatus.API_VERSION}/{socketstatus.PLURAL}/{stage.node('n1')}"


def write(stage: Stage, body: dict[str, Any], *, manager: str, part: str = "") -> None:
    """Apply a part of the node's SocketStatus."""
    head = {"apiVersion": socketstatus.API_VERSION, "kind": socketstatus.KIND, "metadata": {"name": stage.node("n1")}}
    path = f"{_path(stage)}{part}?fieldManager={manager}&force=true"
    stage.api.request("PATCH", path, head | body, content_type="application/apply-patch+yaml")


def assigned(stage: Stage) -> dict[str, int]:
    """Socket by name of the pod."""
    spec = stage.api.request("GET", _path(stage)).get("spec", {})
    return {each["name"]: each["socket"] for each in spec.get("assignments", [])}


def annotated(stage: Stage) -> dict[str, int]:
    """The same as the annotations of the pods have it."""
    return {
        name: int(pod["metadata"]["annotations"][ANNOTATION_SOCKET])
        for name, pod in stage.pods().items()
        if ANNOTATION_SOCKET in pod["metadata"].get("annotations", {})
    }


def run(cluster: LocalCluster, directory: Path, policy: str = "LeastSlowdown") -> ControllerProcess:
    return ControllerProcess.start(
        ["placement"],
        kubeconfig=cluster.kubeconfig,
        directory=directory,
        arguments=["--no-leader-elect", *configuration(directory, profile() | {"interference": policy})],
    )


def add(stage: Stage, name: str, letter: str = "") -> str:
    return stage.pod(name, labels={LABEL_INTERFERENCE_CLASS: letter} if letter else {})


def test_bindings_carry_the_socket_and_assignments_follow_pods_as_they_come_and_go(
    stage: Stage, own_cluster: LocalCluster, tmp_path: Path
) -> None:
    with run(own_cluster, tmp_path) as controller:
        controller.wait_ready()
        for name, letter in (("loud", "D"), ("noisy", "D"), ("plain", "")):
            add(stage, name, letter)
            stage.wait_bound(name)
        sockets = annotated(stage)
        assert set(sockets) == {"loud", "noisy"}
        assert sockets["loud"] != sockets["noisy"]
        assert stage.decision("noisy")["slowdown"] == {"suffered": 1.0, "caused": 0.0}
        assert stage.decision("noisy")["socket"] == sockets["noisy"]
        eventually(lambda: assigned(stage), accept=lambda found: found == sockets, what="both are assigned")
        stage.delete_pod("loud")
        eventually(lambda: assigned(stage), accept=lambda found: set(found) == {"noisy"}, what="one is gone")


def test_a_joint_plan_gives_the_pods_of_an_appgroup_sockets(
    stage: Stage, own_cluster: LocalCluster, tmp_path: Path
) -> None:
    """What they do to each other is a term of the plan's cost, beside what their calls cost."""
    letters = {"a": "D", "b": "A", "c": "D", "d": "A"}
    stage.apply(chain(*letters))
    for name, letter in letters.items():
        stage.pod(name, group="shop", workload=name, labels={LABEL_INTERFERENCE_CLASS: letter})
    with run(own_cluster, tmp_path):
        stage.wait_bound()
        sockets = annotated(stage)
        assert sockets["a"] != sockets["c"], "two that disturb each other"
        assert sockets["b"] != sockets["d"], "each beside one that neither suffers nor disturbs"
        for name, letter in letters.items():
            decision = stage.decision(name)
            assert (decision["appGroup"], decision["plannedWith"], decision["interferenceClass"]) == ("shop", 4, letter)
            assert decision["terms"].keys() >= {"network", "interference"}
            assert decision["slowdown"]["suffered"] == (1.07 if letter == "D" else 1.06)
        eventually(lambda: assigned(stage), accept=lambda found: found == sockets, what="all are assigned")


def test_pods_that_are_labelled_while_they_run_are_assigned(
    stage: Stage, own_cluster: LocalCluster, tmp_path: Path
) -> None:
    with run(own_cluster, tmp_path) as controller:
        controller.wait_ready()
        for name in ("one", "two", "plain"):
            add(stage, name)
            stage.wait_bound(name)
        for name in ("one", "two"):
            body = {"metadata": {"labels": {LABEL_INTERFERENCE_CLASS: "D"}}}
            path = f"/api/v1/namespaces/{stage.name}/pods/{name}"
            stage.api.request("PATCH", path, body, content_type="application/merge-patch+json")
        found = eventually(lambda: assigned(stage), accept=lambda found: len(found) == 2, what="both are assigned")
        assert found.keys() == {"one", "two"}
        assert found["one"] != found["two"]


def test_what_a_leader_left_undone_its_successor_does(stage: Stage, own_cluster: LocalCluster, tmp_path: Path) -> None:
    uid = add(stage, "bound", "D")
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "bound", "uid": uid, "annotations": {ANNOTATION_SOCKET: "1"}},
        "target": {"kind": "Node", "name": stage.node("n1")},
    }
    stage.api.request("POST", f"/api/v1/namespaces/{stage.name}/pods/bound/binding", binding)
    gone = {"uid": "gone", "namespace": stage.name, "name": "gone", "socket": 0}
    write(stage, {"spec": {"assignments": [gone]}}, manager=FIELD_MANAGER)
    assert assigned(stage) == {"gone": 0}
    with run(own_cluster, tmp_path) as controller:
        controller.wait_ready()
        eventually(lambda: assigned(stage), accept=lambda found: found == {"bound": 1}, what="the list is put right")


def test_a_leader_that_is_killed_loses_no_assignment(stage: Stage, own_cluster: LocalCluster, tmp_path: Path) -> None:
    with run(own_cluster, tmp_path) as controller:
        controller.wait_ready()
        for number in range(6):
            add(stage, f"p{number}", "ABCD"[number % 4])
        stage.wait_bound("p0")
        controller.kill()
    with run(own_cluster, tmp_path) as controller:
        controller.wait_ready()
        stage.wait_bound()
        names = {f"p{number}" for number in range(6)}
        eventually(lambda: assigned(stage), accept=lambda found: set(found) == names, what="all are assigned")


def test_what_others_assign_is_left_to_them_and_a_socket_edited_by_hand_is_followed(
    stage: Stage, own_cluster: LocalCluster, tmp_path: Path
) -> None:
    with run(own_cluster, tmp_path) as controller:
        controller.wait_ready()
        uid = add(stage, "p", "D")
        stage.wait_bound("p")
        eventually(lambda: assigned(stage), accept=lambda found: "p" in found, what="it is assigned")
        other = 1 - assigned(stage)["p"]
        entry = {"uid": uid, "namespace": stage.name, "name": "p", "socket": other}
        foreign = {"uid": "elsewhere", "namespace": stage.name, "name": "elsewhere", "socket": 0}
        write(stage, {"spec": {"assignments": [entry, foreign]}}, manager="somebody")
        add(stage, "q", "D")
        stage.wait_bound("q")
        eventually(lambda: assigned(stage), accept=lambda found: "q" in found, what="the next is assigned")
        assert assigned(stage) == {"p": other, "q": 1 - other, "elsewhere": 0}


@pytest.mark.parametrize(
    ("fields", "beside"),
    [
        pytest.param(("uid", "namespace", "name"), True, id="all but its socket"),
        pytest.param(("uid", "socket"), False, id="the socket of the last one"),
    ],
)
def test_an_assignment_of_which_others_own_a_part_goes_with_its_pod(
    stage: Stage, own_cluster: LocalCluster, tmp_path: Path, fields: tuple[str, ...], beside: bool
) -> None:
    with run(own_cluster, tmp_path) as controller:
        controller.wait_ready()
        uid = add(stage, "p", "D")
        stage.wait_bound("p")
        found = eventually(lambda: assigned(stage), accept=lambda found: "p" in found, what="it is assigned")
        entry = {"uid": uid, "namespace": stage.name, "name": "p", "socket": found["p"]}
        elsewhere = {"uid": "elsewhere", "namespace": stage.name, "name": "elsewhere", "socket": 0}
        theirs = [{field: entry[field] for field in fields}, *[elsewhere] * beside]
        write(stage, {"spec": {"assignments": theirs}}, manager="somebody")
        stage.delete_pod("p")
        left = {"elsewhere": 0} if beside else {}
        eventually(lambda: assigned(stage), accept=lambda found: found == left, what="it is assigned no more")
        add(stage, "q", "D")
        eventually(lambda: assigned(stage), accept=lambda found: found.keys() == {*left, "q"}, what="the next is")


def test_where_nobody_asks_for_sockets_they_are_not_followed_and_nobody_is_assigned(
    stage: Stage, own_cluster: LocalCluster, tmp_path: Path
) -> None:
    for name in ("loud", "own"):
        add(stage, name, "D")
    stated = {"metadata": {"annotations": {ANNOTATION_SOCKET: "1"}}}
    path = f"/api/v1/namespaces/{stage.name}/pods/own"
    stage.api.request("PATCH", path, stated, content_type="application/merge-patch+json")
    with FaultProxy(own_cluster, directory=tmp_path) as proxy:
        rules = [
            proxy.add(Fault.ANSWER, method=method, path=rf"/apis/.*/{plural}\b.*")
            for method in ("GET", "PATCH")
            for plural in (socketstatus.PLURAL, workloadprofile.PLURAL)
        ]
        arguments = ["--no-leader-elect"]
        with ControllerProcess.start(
            ["placement"], kubeconfig=proxy.kubeconfig, directory=tmp_path, arguments=arguments
        ) as controller:
            controller.wait_ready()
            stage.wait_bound()
        assert [rule.hits for rule in rules] == [0] * len(rules)
    assert annotated(stage) == {"own": 1}
    assert not {"socket", "slowdown"} & (stage.decision("own").keys() | stage.decision("loud").keys())
    assert assigned(stage) == {}
