"""deploy/pinning fits the agent: its options exist, what they name is mounted, and it has no rights beyond that."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from agents.node.pinning.profiles import PROFILES
from agents.node.pinning.settings import PinningSettings
from agents.node.pinning.status_writer import SOCKET_STATUSES
from berth.cli.run import parse
from berth.kube.resources import PODS, Resource

DEPLOY = Path(__file__).resolve().parents[5] / "deploy"


def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "pinning" / name).read_text())
    return found


@pytest.fixture
def pod() -> dict[str, Any]:
    found: dict[str, Any] = manifest("daemonset.yaml")["spec"]["template"]
    return found


@pytest.fixture
def container(pod: dict[str, Any]) -> dict[str, Any]:
    (found,) = pod["spec"]["containers"]
    return dict(found)


@pytest.fixture
def settings(container: dict[str, Any]) -> PinningSettings:
    command, *arguments = container["args"]
    (selected,), process = parse([text.replace("$(NODE_NAME)", "n1") for text in arguments])
    assert (command, selected.name) == ("run", "pinning")
    assert [port["containerPort"] for port in container["ports"]] == [process.health_port]
    assert isinstance(selected.settings, PinningSettings)
    return selected.settings


def test_it_is_told_its_node(settings: PinningSettings, container: dict[str, Any]) -> None:
    assert settings.name == "n1"
    assert [variable["name"] for variable in container["env"]] == ["NODE_NAME"]
    assert not settings.leader_elected


def test_every_directory_that_it_uses_is_mounted_and_no_other(
    settings: PinningSettings, pod: dict[str, Any], container: dict[str, Any]
) -> None:
    hosts = {volume["name"]: volume["hostPath"]["path"] for volume in pod["spec"]["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    used = {str(settings.runtime.parent), str(settings.cgroups), str(settings.journal), str(settings.kubelet)}
    assert mounts.keys() == used
    writable = {hosts[mount["name"]] for mount in mounts.values() if not mount.get("readOnly")}
    assert writable == {"/sys/fs/cgroup", str(settings.journal)}
    same = {path for path, mount in mounts.items() if hosts[mount["name"]] == path}
    assert used - same == {str(settings.cgroups)}, "the container has a /sys/fs/cgroup of its own"
    assert all(PurePosixPath(path).is_absolute() for path in hosts.values())


def test_mounts_below_its_directories_go_when_they_go_on_the_node(container: dict[str, Any]) -> None:
    """Containers' file systems and pods' volumes are mounted there; the agent is to keep none of them."""
    told = {mount["name"] for mount in container["volumeMounts"] if mount.get("mountPropagation") == "HostToContainer"}
    assert told == {"runtime", "kubelet"}


def test_it_has_root_and_nothing_else(pod: dict[str, Any], container: dict[str, Any]) -> None:
    security = container["securityContext"]
    assert security == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["spec"]["hostPID"]
    assert not {"hostNetwork", "hostIPC"} & pod["spec"].keys()


def test_it_runs_as_the_account_that_has_the_rights(pod: dict[str, Any]) -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "rbac" / "pinning.yaml").read_text()))
    accounts = [item["metadata"] for item in documents if item["kind"] == "ServiceAccount"]
    namespace = manifest("kustomization.yaml")["namespace"]
    assert accounts == [{"name": pod["spec"]["serviceAccountName"], "namespace": namespace}]
    (policy,) = (item for item in documents if item["kind"] == "ValidatingAdmissionPolicy")
    (condition,) = policy["spec"]["matchConditions"]
    assert f':{accounts[0]["name"]}"' in condition["expression"]


@pytest.mark.parametrize("followed", [PODS, SOCKET_STATUSES, PROFILES], ids=lambda resource: resource.plural)
def test_it_may_follow_what_it_follows(followed: Resource[Any]) -> None:
    documents = yaml.safe_load_all((DEPLOY / "rbac" / "pinning.yaml").read_text())
    (role,) = (item for item in documents if item["kind"] == "ClusterRole")
    rules = [rule for rule in role["rules"] if followed.plural in rule["resources"]]
    assert [rule["apiGroups"] for rule in rules] == [[followed.group]]
    assert {"list", "watch"} <= set(rules[0]["verbs"])


def test_it_has_longer_to_end_than_it_takes(pod: dict[str, Any]) -> None:
    assert pod["spec"].get("terminationGracePeriodSeconds", 30) >= 30
