"""Options and command lines of real nodes, and when their processes count as ready."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from hack.localcluster import ClusterError, LocalCluster, NodeSpec, Options
from hack.localcluster.instance import Instance
from hack.localcluster.kubelets import cgroups, images, network, packages, processes
from hack.localcluster.kubelets.names import Node
from hack.localcluster.rest import Api, ApiError

NODE = Node(home=Path("/clusters/one"), number=1)


@pytest.fixture
def capable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has all that real nodes need."""
    monkeypatch.setattr(packages, "problem", lambda _home: None)
    monkeypatch.setattr(packages, "locate", lambda name: Path("/programs") / name)
    monkeypatch.setattr(network, "used_networks", lambda: ["192.0.2.0/24"])


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    home = tmp_path / "one"
    home.mkdir()
    return Instance.create(home, Options(kubelets=2, bind_address="10.250.7.1"))


@pytest.mark.usefixtures("capable")
def test_real_nodes_come_with_a_scheduler_and_without_simulation(tmp_path: Path) -> None:
    chosen = processes.options(Options(kubelets=3), tmp_path / "one")
    assert (chosen.kubelets, chosen.scheduler, chosen.kwok) == (3, True, False)
    assert chosen.bind_address.startswith("10.")


@pytest.mark.usefixtures("capable")
def test_a_stopped_instance_keeps_its_network(tmp_path: Path, instance: Instance) -> None:
    alone = processes.options(Options(kubelets=1), tmp_path / "two").bind_address
    instance.options = Options(kubelets=2, bind_address=alone)
    instance.save()
    assert processes.options(Options(kubelets=1), tmp_path / "two").bind_address != alone


def test_the_machines_problem_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "problem", lambda _home: "real nodes need root")
    for action in (processes.check, lambda home: processes.options(Options(kubelets=1), home)):
        with pytest.raises(ClusterError, match="real nodes need root"):
            action(tmp_path)


@pytest.mark.usefixtures("capable")
def test_real_and_simulated_nodes_do_not_mix(tmp_path: Path) -> None:
    spec = NodeSpec(name="a", region="r", zone="z", capacity={}, allocatable={}, labels={}, annotations={}, taints=())
    with pytest.raises(ClusterError, match="do not mix"):
        LocalCluster.start("one", root=tmp_path, nodes=[spec], options=Options(kubelets=1))
    assert LocalCluster.names(tmp_path) == []


@pytest.mark.usefixtures("capable")
def test_an_instance_keeps_its_number_of_real_nodes(instance: Instance) -> None:
    with pytest.raises(ClusterError, match="cluster one has 2 real nodes, not 3: remove it first"):
        LocalCluster.start("one", root=instance.layout.home.parent, options=Options(kubelets=3))


@pytest.mark.usefixtures("capable")
def test_everything_is_there_before_a_process_starts(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(network, "create", lambda _home, gateway, nodes: made.append(f"{len(nodes)} at {gateway}"))
    monkeypatch.setattr(cgroups, "create", made.append)
    processes.prepare(instance)
    first, second = instance.nodes
    assert made == ["2 at 10.250.7.1", first.namespace, second.namespace]
    for node in (first, second):
        assert {path.name for path in node.directory.rglob("*") if path.is_file()} == {
            "containerd.toml",
            "10-berth.conflist",
            "kubelet.yaml",
            "resolv.conf",
        }


@pytest.mark.usefixtures("capable")
@pytest.mark.parametrize(
    ("part", "program"),
    [
        pytest.param("containerd", "/programs/containerd", id="containerd"),
        pytest.param("kubelet", "/tools/kubelet", id="kubelet"),
    ],
)
def test_programs_run_in_the_namespace_of_the_node(instance: Instance, part: str, program: str) -> None:
    node = instance.nodes[1]
    command = processes.command(instance, part, node, Path("/tools/kubelet"))
    assert command[:3] == ["/programs/nsenter", f"--net=/run/netns/{node.namespace}", program]


def test_parts_of_nodes_are_told_from_components(instance: Instance) -> None:
    assert processes.node_of(instance, "etcd") is None
    assert processes.node_of(instance, "kubelet-2") == ("kubelet", instance.nodes[1])


class Answers(Api):
    """An API server with one answer."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        """Prepare."""
        super().__init__("http://127.0.0.1")
        self._answer = answer

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Any:
        assert (method, path) == ("GET", "/api/v1/nodes/node-1")
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, True, id="ready"),
        pytest.param({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, False, id="not yet"),
        pytest.param({"status": {"conditions": [{"type": "DiskPressure", "status": "True"}]}}, False, id="other"),
        pytest.param({"status": {}}, False, id="just registered"),
        pytest.param(ApiError(404, "not found"), False, id="not registered"),
        pytest.param(ConnectionError(), False, id="API server away"),
    ],
)
def test_a_kubelet_is_ready_when_its_node_is(answer: dict[str, Any] | Exception, expected: bool) -> None:
    assert processes.ready("kubelet", NODE, Answers(answer), Path("/log"), 0) is expected


@pytest.mark.parametrize(("before", "expected"), [(0, True), (len("listening\n"), False)])
def test_the_relay_is_ready_when_this_run_of_it_has_said_so(tmp_path: Path, before: int, expected: bool) -> None:
    (tmp_path / "log").write_text("listening\n")
    assert processes.ready("service-relay", NODE, Answers({}), tmp_path / "log", before) is expected


@pytest.mark.parametrize(
    ("code", "says", "expected"),
    [
        pytest.param(0, "Start recovering state\nStart streaming server\n", True, id="ready"),
        pytest.param(0, "Start recovering state\n", False, id="it answers and is not ready for kubelets"),
        pytest.param(1, "Start streaming server\n", False, id="it does not answer"),
    ],
)
def test_containerd_is_ready_when_it_answers_and_has_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, says: str, expected: bool
) -> None:
    before = "Start streaming server\n"
    (tmp_path / "log").write_text(before + says)
    answer = subprocess.CompletedProcess[str]([], code, "", "")
    monkeypatch.setattr(images, "ctr", lambda _node, _arguments: answer)
    assert processes.ready("containerd", NODE, Answers({}), tmp_path / "log", len(before)) is expected


def test_the_pause_image_is_on_every_node_before_its_kubelet(
    instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[tuple[str, list[Path]]] = []
    monkeypatch.setattr(images, "load", lambda node, archives: loaded.append((node.name, archives)))
    (tmp_path / "pause").write_bytes(b"ELF")
    processes.load_pause(instance, tmp_path / "pause")
    assert [name for name, _ in loaded] == ["node-1", "node-2"]
    assert all(archive.is_file() for _, archives in loaded for archive in archives)
