"""The local cluster on which the other integration tests stand: started, used, crashed, removed.

Not here: building the tools (unit tests of hack), and real nodes (end-to-end tests).
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import DEMO_TOPOLOGY, REPOSITORY, Kubectl, bound_pod, eventually
from hack.localcluster import (
    ClusterError,
    LocalCluster,
    Options,
    ProcessRecord,
    cli,
    ports,
    processes,
    topology,
)

SCRIPT = REPOSITORY / "hack" / "cluster"
COMPONENTS = ["etcd", "kube-apiserver", "kube-controller-manager", "kwok"]


@pytest.fixture
def clusters_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of instances for hack/cluster; whatever is left in it is removed."""
    monkeypatch.setenv("BERTH_CLUSTERS_DIR", str(tmp_path))
    yield tmp_path
    for name in LocalCluster.names(tmp_path):
        LocalCluster.remove(name, root=tmp_path)


def hack_cluster(*args: str) -> subprocess.CompletedProcess[str]:
    """Run hack/cluster as a person would."""
    return subprocess.run([sys.executable, str(SCRIPT), *args], capture_output=True, text=True, check=False)


def phases(kubectl: Kubectl) -> list[str]:
    """Phases of the namespace's pods."""
    return [pod["status"]["phase"] for pod in kubectl.get("pods")["items"]]


def running(home: Path) -> list[int]:
    """Processes of the instance in *home* that run."""
    return processes.marked(str(home.resolve()))


# -- nodes and pods -----------------------------------------------------------------------------------------------


def test_simulated_nodes_are_ready_in_their_zones(cluster: LocalCluster, simulated_nodes: list[str]) -> None:
    nodes = {node["metadata"]["name"]: node for node in cluster.api().request("GET", "/api/v1/nodes")["items"]}
    assert set(simulated_nodes) <= set(nodes)
    for spec in topology.load(DEMO_TOPOLOGY):
        node = nodes[spec.name]
        labels = node["metadata"]["labels"]
        assert labels["topology.kubernetes.io/region"] == spec.region
        assert labels["topology.kubernetes.io/zone"] == spec.zone
        assert node["status"]["allocatable"]["cpu"] == "4"
        assert "taints" not in node["spec"]
        assert {"Ready": "True"}.items() <= {c["type"]: c["status"] for c in node["status"]["conditions"]}.items()


def test_pods_bound_to_simulated_nodes_become_running(kubectl: Kubectl, simulated_nodes: list[str]) -> None:
    kubectl.apply(*(bound_pod(f"p{number}", node) for number, node in enumerate(simulated_nodes)))
    eventually(lambda: phases(kubectl), accept=lambda found: found == ["Running"] * 24, what="24 pods Running")
    pods = kubectl.get("pods")["items"]
    # Not 24 different ones: kwok makes its pool of addresses without a lock, twice if two pods come first at once.
    assert all(pod["status"].get("podIP") for pod in pods)
    assert all(pod["status"]["containerStatuses"][0]["ready"] for pod in pods)


def test_init_containers_and_sidecars_have_a_status(kubectl: Kubectl, simulated_nodes: list[str]) -> None:
    first = {"name": "first", "image": "registry.invalid/first:1"}
    beside = {"name": "beside", "image": "registry.invalid/beside:1", "restartPolicy": "Always"}
    kubectl.apply(bound_pod("p", simulated_nodes[0], initContainers=[first, beside]))
    eventually(lambda: phases(kubectl), accept=lambda found: found == ["Running"], what="pod Running")
    states = {
        item["name"]: next(iter(item["state"])) for item in kubectl.get("pod", "p")["status"]["initContainerStatuses"]
    }
    assert states == {"first": "terminated", "beside": "running"}


def test_a_jobs_pod_succeeds(kubectl: Kubectl, simulated_nodes: list[str]) -> None:
    template = {k: v for k, v in bound_pod("unused", simulated_nodes[1], restartPolicy="Never").items() if k == "spec"}
    kubectl.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}})
    kubectl("wait", "job/j", "--for=condition=Complete", "--timeout=100s")


def test_deleted_pods_vanish_despite_their_grace_period(kubectl: Kubectl, simulated_nodes: list[str]) -> None:
    kubectl.apply(bound_pod("p", simulated_nodes[2], terminationGracePeriodSeconds=3600))
    eventually(lambda: phases(kubectl), accept=lambda found: found == ["Running"], what="pod Running")
    kubectl("delete", "pod", "p", "--timeout=100s")
    assert phases(kubectl) == []


def test_nodes_that_are_not_simulated_are_left_alone(
    cluster: LocalCluster, kubectl: Kubectl, simulated_nodes: list[str]
) -> None:
    name = f"real-{kubectl.namespace}"
    kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    try:
        kubectl.apply(bound_pod("on-real", name), bound_pod("on-simulated", simulated_nodes[0]))
        kubectl("wait", "pod/on-simulated", "--for=condition=Ready", "--timeout=100s")
        assert kubectl.get("pod", "on-real")["status"]["phase"] == "Pending"
        assert "conditions" not in cluster.api().request("GET", f"/api/v1/nodes/{name}")["status"]
    finally:
        kubectl("delete", "node", name)


@pytest.mark.parametrize(
    "args",
    [
        ["pods"],
        ["po", "p"],
        ["pod", "p", "--show-managed-fields"],
        ["pods", "--field-selector=metadata.name=q"],
        ["pods", "-l=app=web"],
        ["events.events.k8s.io"],
        ["events"],
        ["lease"],
        ["nodes"],
        ["nt"],
        ["networktopology", "net"],
        ["serviceaccounts,pods"],
    ],
    ids=" ".join,
)
def test_what_tests_read_is_what_kubectl_prints(kubectl: Kubectl, simulated_nodes: list[str], args: list[str]) -> None:
    topology: dict[str, Any] = {"apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1", "kind": "NetworkTopology"}
    topology |= {"metadata": {"name": "net"}, "spec": {"configmapName": "", "weights": []}}
    labelled = bound_pod("q", simulated_nodes[0])
    labelled["metadata"]["labels"] = {"app": "web"}
    kubectl.apply(topology, bound_pod("p", simulated_nodes[0]), labelled)
    kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=100s")

    def both() -> tuple[Any, Any]:
        return kubectl.get(*args), json.loads(kubectl("get", *args, "-o", "json"))

    # Nodes and what is said of pods may change in between.
    eventually(both, accept=lambda found: found[0] == found[1], what="the same")


# -- authorization ------------------------------------------------------------------------------------------------


def test_rbac_denies_what_nobody_granted_and_allows_what_is(cluster: LocalCluster, kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "reader")
    config = cluster.service_account_kubeconfig(kubectl.namespace, "reader")
    command = ("-n", kubectl.namespace, "get", "pods")
    denied = cluster.kubectl(*command, kubeconfig=config, check=False)
    assert denied.returncode != 0
    assert 'cannot list resource "pods"' in denied.stderr
    kubectl("create", "rolebinding", "reader", "--clusterrole=view", f"--serviceaccount={kubectl.namespace}:reader")
    eventually(
        lambda: cluster.kubectl(*command, kubeconfig=config, check=False).returncode,
        accept=lambda status: status == 0,
        what="role binding in force",
    )
    refused = cluster.kubectl("get", "nodes", kubeconfig=config, check=False)
    assert "Forbidden" in refused.stderr


@pytest.mark.parametrize("token", [pytest.param("", id="none"), pytest.param("guessed", id="wrong")])
def test_nobody_gets_in_without_a_token(cluster: LocalCluster, token: str) -> None:
    assert cluster.api(token=token).raw("GET", "/api/v1/nodes")[0] == 401


# -- instances ----------------------------------------------------------------------------------------------------


def test_two_instances_side_by_side_share_nothing(fresh_cluster: Callable[..., LocalCluster]) -> None:
    one = fresh_cluster(crds=False)
    two = fresh_cluster(crds=False, kwok=False)
    assert one.layout.home != two.layout.home
    assert one.server != two.server
    assert one.components == COMPONENTS
    assert two.components == COMPONENTS[:-1]
    one.kubectl("create", "namespace", "only-in-one")
    assert two.kubectl("get", "namespace", "only-in-one", check=False).returncode != 0
    assert one.api().raw("GET", "/api/v1/nodes")[0] == 200
    assert two.api(token=one.token).raw("GET", "/api/v1/nodes")[0] == 401
    used = [item.port for cluster in (one, two) for item in cluster.status()]
    assert len(set(used)) == len(used) == 7


def test_a_port_that_is_taken_meanwhile_is_replaced(
    fresh_cluster: Callable[..., LocalCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as stranger:
        (port,) = ports.allocate(1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        original = ports.allocate

        def unlucky(count: int, **arguments: Any) -> list[int]:
            """First answer as if the stranger had come right after the check: on kube-apiserver's and KWOK's port."""
            monkeypatch.setattr(ports, "allocate", original)
            found = original(count, **arguments)
            return [found[0], port, found[2], found[3], port]

        monkeypatch.setattr(ports, "allocate", unlucky)
        made = fresh_cluster(crds=False, options=Options(controller_manager=False))
        assert [item.state for item in made.status()] == ["running"] * 3
        assert port not in [item.port for item in made.status()]
        assert made.api().healthy("/readyz")


def test_a_component_that_cannot_start_says_why(clusters_dir: Path) -> None:
    with pytest.raises(ClusterError, match=r"kube-apiserver ended during its start(.|\n)*no-such-flag") as caught:
        LocalCluster.start("bad", root=clusters_dir, options=Options(apiserver_args=("--no-such-flag",)))
    assert str(clusters_dir / "bad" / "logs" / "kube-apiserver.log") in str(caught.value)
    assert running(clusters_dir / "bad") == []
    assert LocalCluster.remove("bad", root=clusters_dir)


def test_api_server_restarts_on_its_port_with_its_objects(fresh_cluster: Callable[..., LocalCluster]) -> None:
    made = fresh_cluster(crds=False, kwok=False, options=Options(priority_and_fairness=False))
    made.kubectl("create", "namespace", "kept")
    first, server = made.process("kube-apiserver"), made.server
    made.restart_apiserver()
    second = made.process("kube-apiserver")
    assert not first.alive
    assert second.alive
    assert made.server == server
    made.kubectl("get", "namespace", "kept")
    made.kill_apiserver()
    assert not made.api().healthy("/readyz")
    assert {item.name: item.state for item in made.status()}["kube-apiserver"] == "dead"
    made.start_component("kube-apiserver")
    made.kubectl("get", "namespace", "kept")
    assert made.process("kube-apiserver").rss > 50 * 2**20
    assert made.process("kube-apiserver").cpu_seconds > 0


def test_scheduler_with_an_own_configuration(fresh_cluster: Callable[..., LocalCluster], tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "second"}],
    }
    config.write_text(json.dumps(document))
    made = fresh_cluster(crds=False, nodes=DEMO_TOPOLOGY, scheduler=config)
    kubectl = Kubectl(made, "default")
    pods = [bound_pod(name, "", schedulerName=name) for name in ("second", "default-scheduler")]
    kubectl.apply(*pods)
    kubectl("wait", "pod/second", "--for=condition=Ready", "--timeout=100s")
    assert "nodeName" not in kubectl.get("pod", "default-scheduler")["spec"]
    made.start_scheduler()
    kubectl("wait", "pod/default-scheduler", "--for=condition=Ready", "--timeout=100s")
    made.stop_scheduler()
    assert "kube-scheduler" not in made.components


def test_components_end_with_the_process_that_started_them(clusters_dir: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from hack.localcluster import LocalCluster;"
        "LocalCluster.start('child', root=Path(sys.argv[1]), kwok=False, die_with_parent=True);"
        "print('ready', flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(clusters_dir)], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        assert len(running(clusters_dir / "child")) == 3
        parent.kill()
    eventually(lambda: running(clusters_dir / "child"), accept=lambda pids: not pids, what="no process left")


# -- the command line ---------------------------------------------------------------------------------------------


def test_up_status_list_and_down(clusters_dir: Path) -> None:
    up = hack_cluster("up", "--name", "one", "--nodes-file", str(DEMO_TOPOLOGY), "--json")
    assert up.returncode == 0, up.stderr
    assert "created 24 nodes" in up.stderr
    facts = json.loads(up.stdout)
    assert [item["name"] for item in facts["components"]] == COMPONENTS
    assert {item["state"] for item in facts["components"]} == {"running"}
    assert all(Path(item["log"]).exists() for item in facts["components"])

    found = hack_cluster("kubectl", "--name", "one", "get", "nodes", "-o", "name")
    assert len(found.stdout.split()) == 24, found.stderr
    assert hack_cluster("kubeconfig", "--name", "one").stdout.strip() == facts["kubeconfig"]
    assert "etcd.log" in hack_cluster("logs", "--name", "one").stdout

    again = hack_cluster("up", "--name", "one", "--nodes-file", str(DEMO_TOPOLOGY))
    assert again.stdout.strip() == facts["kubeconfig"]
    assert "created 0 nodes" in again.stderr
    assert "24 existed already" in again.stderr
    assert hack_cluster("nodes", "--name", "one", "--delete", "-f", str(DEMO_TOPOLOGY)).stderr == "deleted 24 nodes\n"

    status = hack_cluster("status", "--name", "one")
    assert status.returncode == 0
    lines = status.stdout.splitlines()
    assert facts["server"] in lines[0]
    assert [line.split()[:2] for line in lines[1:]] == [[name, "running"] for name in COMPONENTS]
    assert hack_cluster("list").stdout.split()[:3] == ["one", "running", facts["server"]]

    down = hack_cluster("down", "--name", "one")
    assert (down.returncode, down.stderr) == (0, "cluster one is removed\n")
    assert not (clusters_dir / "one").exists()
    assert running(clusters_dir / "one") == []
    assert hack_cluster("down", "--name", "one").stderr == "there was no cluster one\n"


def test_after_a_crash_of_everything_status_tells_up_resumes_and_down_removes(clusters_dir: Path) -> None:
    home = clusters_dir / "one"
    assert hack_cluster("up", "--name", "one").returncode == 0
    made = LocalCluster.open("one")
    made.kubectl("create", "namespace", "kept")
    os.kill(made.process("kwok").pid, signal.SIGKILL)
    eventually(lambda: len(running(home)), accept=lambda count: count == 3, what="kwok gone")
    status = hack_cluster("status", "--name", "one", "--json")
    assert status.returncode == 1
    states = {item["name"]: item["state"] for item in json.loads(status.stdout)["components"]}
    assert states == dict.fromkeys(COMPONENTS, "running") | {"kwok": "dead"}
    assert json.loads(hack_cluster("list", "--json").stdout)[0]["state"] == "degraded"

    for pid in running(home):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: running(home), accept=lambda pids: not pids, what="all gone")
    assert json.loads(hack_cluster("list", "--json").stdout)[0]["state"] == "stopped"
    resumed = hack_cluster("up", "--name", "one")
    assert resumed.returncode == 0, resumed.stderr
    made.kubectl("get", "namespace", "kept")

    # A stale record that names a process which is not ours, a lost one and a damaged one: nothing of ours survives.
    victim = subprocess.Popen(["/bin/sleep", "600"])
    stale = ProcessRecord(name="kwok", pid=victim.pid, started="earlier", argv=[], log="")
    stale.save(made.layout.record("kwok"))
    made.layout.record("etcd").unlink()
    made.layout.record("kube-apiserver").write_text("{")
    assert len(running(home)) == 4
    assert hack_cluster("down", "--name", "one").returncode == 0
    assert running(home) == []
    assert not home.exists()
    assert victim.poll() is None
    victim.kill()
    victim.wait()


def test_up_killed_at_a_random_moment_leaves_nothing_that_down_does_not_remove(clusters_dir: Path) -> None:
    home = clusters_dir / "one"
    moment = random.uniform(0.2, 3.0)
    with subprocess.Popen([sys.executable, str(SCRIPT), "up", "--name", "one"], stderr=subprocess.DEVNULL) as up:
        # Not a wait for something: the point is to cut the start anywhere.
        time.sleep(moment)
        up.kill()
    assert hack_cluster("down", "--all").returncode == 0, moment
    assert running(home) == [], moment
    assert not home.exists(), moment


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(["status", "--name", "none"], "there is no cluster 'none'", id="no such cluster"),
        pytest.param(["up", "--name", "Not/Usable"], "not usable: use at most 42", id="bad name"),
        pytest.param(["up", "--nodes-file", "missing.yaml"], "missing.yaml: cannot be read", id="no such file"),
        pytest.param(["build", "docker"], "unknown tool 'docker'", id="no such tool"),
    ],
)
def test_mistakes_are_answered_in_one_line(
    clusters_dir: Path, capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    assert cli.main(args) == 1
    output = capsys.readouterr()
    assert message in output.err
    assert output.err.count("\n") == 1
    assert LocalCluster.names(clusters_dir) == []
