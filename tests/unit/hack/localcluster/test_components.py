"""Command lines and configuration of the components: what the options change. Whether they work: integration tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.localcluster import ClusterError, Options, components
from hack.localcluster.components import Layout

HOME = Path("/clusters/one")
LAYOUT = Layout(home=HOME)
PORTS = {name: 20001 + number for number, name in enumerate(components.PORTS)}


def flags(component: str, options: Options | None = None) -> dict[str, str]:
    """Flags of *component*, the last value of each."""
    found: dict[str, str] = {}
    for argument in components.arguments(component, LAYOUT, PORTS, options or Options()):
        name, _, value = argument.removeprefix("--").partition("=")
        found[name] = value
    return found


@pytest.mark.parametrize(
    ("component", "flag", "value"),
    [
        pytest.param("etcd", "listen-client-urls", "http://127.0.0.1:20001", id="etcd port"),
        pytest.param("etcd", "unsafe-no-fsync", "", id="etcd without fsync"),
        pytest.param("kube-apiserver", "etcd-servers", "http://127.0.0.1:20001", id="API server finds etcd"),
        pytest.param("kube-apiserver", "secure-port", "20002", id="API server port"),
        pytest.param("kube-apiserver", "authorization-mode", "RBAC", id="RBAC"),
        pytest.param("kube-apiserver", "anonymous-auth", "false", id="nobody anonymous"),
        pytest.param("kube-apiserver", "enable-priority-and-fairness", "true", id="fairness by default"),
        pytest.param("kube-controller-manager", "secure-port", "20003", id="controller manager port"),
        pytest.param("kube-controller-manager", "use-service-account-credentials", "true", id="own accounts"),
        pytest.param("kube-scheduler", "secure-port", "20004", id="scheduler port"),
        pytest.param("kube-scheduler", "config", "/clusters/one/kube-scheduler.yaml", id="scheduler configuration"),
        pytest.param("kwok", "server-address", "127.0.0.1:20005", id="KWOK port"),
        pytest.param("kwok", "manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake", id="KWOK's nodes"),
        pytest.param("kwok", "manage-all-nodes", "false", id="KWOK leaves other nodes alone"),
    ],
)
def test_flags(component: str, flag: str, value: str) -> None:
    assert flags(component)[flag] == value


@pytest.mark.parametrize(
    ("options", "component", "flag", "value"),
    [
        pytest.param(
            Options(bind_address="10.1.2.3"), "kube-apiserver", "bind-address", "10.1.2.3", id="address of the server"
        ),
        pytest.param(
            Options(bind_address="10.1.2.3"), "kube-controller-manager", "bind-address", "127.0.0.1", id="not others'"
        ),
        pytest.param(
            Options(priority_and_fairness=False),
            "kube-apiserver",
            "enable-priority-and-fairness",
            "false",
            id="APF off",
        ),
        pytest.param(Options(kubelets=1), "kube-apiserver", "authorization-mode", "Node,RBAC", id="kubelets' rights"),
        pytest.param(
            Options(kubelets=1), "kube-apiserver", "enable-admission-plugins", "NodeRestriction", id="own node alone"
        ),
        pytest.param(
            Options(kubelets=1), "kube-apiserver", "kubelet-preferred-address-types", "InternalIP", id="logs by address"
        ),
        pytest.param(Options(max_requests_inflight=7), "kube-apiserver", "max-requests-inflight", "7", id="reads"),
        pytest.param(
            Options(max_mutating_requests_inflight=7),
            "kube-apiserver",
            "max-mutating-requests-inflight",
            "7",
            id="writes",
        ),
        pytest.param(
            Options(apiserver_args=("--profiling=true",)), "kube-apiserver", "profiling", "true", id="own flag wins"
        ),
        pytest.param(
            Options(controller_manager_args=("--kube-api-qps=1",)),
            "kube-controller-manager",
            "kube-api-qps",
            "1",
            id="own controller manager flag wins",
        ),
    ],
)
def test_options_change_flags(options: Options, component: str, flag: str, value: str) -> None:
    assert flags(component, options)[flag] == value


@pytest.mark.parametrize(("kubelets", "grace"), [(0, "1h"), (3, None)], ids=["simulated nodes", "real nodes"])
def test_real_nodes_are_lost_after_the_usual_time(kubelets: int, grace: str | None) -> None:
    found = flags("kube-controller-manager", Options(kubelets=kubelets))
    assert found.get("node-monitor-grace-period") == grace


def test_unknown_component() -> None:
    with pytest.raises(ClusterError, match="unknown component 'kubelet': known are etcd, "):
        components.arguments("kubelet", LAYOUT, PORTS, Options())


def test_all_files_lie_in_the_instances_directory() -> None:
    paths = [LAYOUT.kubeconfig, LAYOUT.pki, LAYOUT.authority, LAYOUT.service_account_key, LAYOUT.tokens]
    for name in components.PORTS:
        paths += [LAYOUT.log(name), LAYOUT.record(name), LAYOUT.config(name), LAYOUT.component_kubeconfig(name)]
    assert all(path.is_relative_to(HOME) for path in paths)
    assert len(set(paths)) == len(paths)


def scheduler_config(tmp_path: Path, content: str | None) -> dict[str, Any]:
    own = None
    if content is not None:
        own = str(tmp_path / "own.yaml")
        Path(own).write_text(content)
    loaded: dict[str, Any] = yaml.safe_load(components.scheduler_config(LAYOUT, own))
    return loaded


def test_built_in_scheduler_is_not_throttled(tmp_path: Path) -> None:
    config = scheduler_config(tmp_path, None)
    assert config["clientConnection"] == {
        "kubeconfig": "/clusters/one/pki/kube-scheduler.kubeconfig",
        "qps": 5000,
        "burst": 5000,
    }
    assert config["leaderElection"] == {"leaderElect": False}


def test_own_scheduler_configuration_keeps_what_it_says(tmp_path: Path) -> None:
    config = scheduler_config(
        tmp_path,
        """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {qps: 50, kubeconfig: /elsewhere}
leaderElection: {leaderElect: true}
profiles: [{schedulerName: other}]
""",
    )
    assert config["profiles"] == [{"schedulerName": "other"}]
    assert (config["clientConnection"]["qps"], config["clientConnection"]["burst"]) == (50, 5000)
    # These two belong to the instance, whatever the file says.
    assert config["clientConnection"]["kubeconfig"].startswith("/clusters/one/")
    assert config["leaderElection"]["leaderElect"] is False


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("kind: Deployment", "kind must be KubeSchedulerConfiguration", id="another kind"),
        pytest.param("- a", "kind must be KubeSchedulerConfiguration", id="no mapping"),
        pytest.param("a: [", "cannot read the scheduler configuration", id="no YAML"),
    ],
)
def test_bad_scheduler_configuration(tmp_path: Path, content: str, problem: str) -> None:
    with pytest.raises(ClusterError, match=problem) as caught:
        scheduler_config(tmp_path, content)
    assert str(tmp_path / "own.yaml") in str(caught.value)


def test_missing_scheduler_configuration() -> None:
    with pytest.raises(ClusterError, match=r"/nonexistent\.yaml: cannot read"):
        components.scheduler_config(LAYOUT, "/nonexistent.yaml")


def test_kwok_stages_cover_the_life_of_nodes_and_pods() -> None:
    documents = list(yaml.safe_load_all(components.KWOK_STAGES.read_text()))
    stages = {item["metadata"]["name"]: item["spec"] for item in documents if item["kind"] == "Stage"}
    assert set(stages) == {"node-initialize", "node-heartbeat", "pod-ready", "pod-complete", "pod-delete"}
    # A pod runs at once; only a Job's pod lives a moment before it succeeds.
    assert "delay" not in stages["pod-ready"]
    assert stages["pod-delete"]["next"] == {"delete": True}
