"""deploy/agent-and-pinning is both agents: options, directories and rights as their own manifests have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.cli.run import parse
from berth.runtime.process import Selected

DEPLOY = Path(__file__).resolve().parents[4] / "deploy"
TOGETHER = "agent-and-pinning"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def pod(directory: str) -> dict[str, Any]:
    (document,) = documents(f"{directory}/daemonset.yaml")
    found: dict[str, Any] = document["spec"]["template"]["spec"]
    return found


def container(directory: str) -> dict[str, Any]:
    (found,) = pod(directory)["containers"]
    return dict(found)


def selected(directory: str) -> dict[str, Selected]:
    args = container(directory)["args"]
    arguments = [text.replace("$(NODE_NAME)", "n1").replace("$(NAMESPACE)", "berth-system") for text in args]
    assert arguments.pop(0) == "run"
    components, process = parse(arguments)
    assert {"pinning": 8080}.get(directory, 9471) == process.health_port
    return {component.name: component for component in components}


def test_each_agent_is_told_what_it_is_told_by_itself() -> None:
    together = selected(TOGETHER)
    assert together == selected("agent") | selected("pinning")


def test_it_takes_the_place_of_both_daemonsets() -> None:
    (kustomization,) = documents(f"{TOGETHER}/kustomization.yaml")
    assert kustomization["resources"][:2] == ["../agent", "../pinning"]
    (patched,) = documents(f"{TOGETHER}/daemonset.yaml")
    (agent,) = documents("agent/daemonset.yaml")
    (pinning,) = documents("pinning/daemonset.yaml")
    assert patched["metadata"]["name"] == agent["metadata"]["name"]
    (removed,) = (patch["target"] for patch in kustomization["patches"] if "target" in patch)
    assert removed == {"kind": "DaemonSet", "name": pinning["metadata"]["name"]}


@pytest.mark.parametrize("key", ["hostPID", "volumes"])
def test_the_pod_has_what_pinning_has(key: str) -> None:
    assert pod(TOGETHER)[key] == pod("pinning")[key]


def test_directories_are_mounted_as_for_pinning() -> None:
    def mounts(directory: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = container(directory)["volumeMounts"]
        return found

    assert mounts(TOGETHER) == mounts("pinning")
    places = [mount["mountPath"] for mount in (*mounts("agent"), *mounts(TOGETHER))]
    assert len(places) == len(set(places))


def test_it_is_root_and_says_so_where_the_node_agent_says_that_it_is_not() -> None:
    own, root = pod("agent")["securityContext"], pod("pinning")["securityContext"]
    merged = own | pod(TOGETHER)["securityContext"]
    assert merged == root | {"runAsNonRoot": False}


def test_its_account_has_both_rights_and_both_policies() -> None:
    account = pod("agent")["serviceAccountName"]
    (binding,) = documents(f"{TOGETHER}/rights.yaml")
    (role,) = (each for each in documents("rbac/pinning.yaml") if each["kind"] == "ClusterRole")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == [account]
    (policy,) = (each for each in documents("rbac/pinning.yaml") if each["kind"] == "ValidatingAdmissionPolicy")
    (condition,) = policy["spec"]["matchConditions"]
    for name in (account, pod("pinning")["serviceAccountName"]):
        assert f'endsWith(":{name}")' in condition["expression"]
