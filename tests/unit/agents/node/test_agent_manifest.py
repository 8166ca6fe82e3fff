"""deploy/agent fits the agent: its options exist, its ports and names are those that the agent takes for granted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.node.probing.responder import DEFAULT_PORT
from agents.node.settings import NodeSettings
from berth.cli.run import parse

DEPLOY = Path(__file__).resolve().parents[4] / "deploy"


def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "agent" / name).read_text())
    return found


@pytest.fixture
def pod() -> dict[str, Any]:
    found: dict[str, Any] = manifest("daemonset.yaml")["spec"]["template"]
    return found


@pytest.fixture
def container(pod: dict[str, Any]) -> dict[str, Any]:
    (found,) = pod["spec"]["containers"]
    return dict(found)


def test_its_arguments_are_options_of_the_agent(container: dict[str, Any]) -> None:
    texts = (text.replace("$(NODE_NAME)", "n1").replace("$(NAMESPACE)", "berth-system") for text in container["args"])
    command, *arguments = texts
    (selected,), process = parse(arguments)
    assert (command, selected.name, selected.settings.name) == ("run", "node", "n1")  # type: ignore[attr-defined]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"probe": DEFAULT_PORT, "health": process.health_port}


def test_every_variable_of_the_arguments_is_set(container: dict[str, Any]) -> None:
    used = {text.partition("$(")[2].rstrip(")") for text in container["args"] if "$(" in text}
    assert used == {variable["name"] for variable in container["env"]}


def test_the_service_is_the_one_that_agents_look_for(pod: dict[str, Any]) -> None:
    service, daemon_set = manifest("service.yaml"), manifest("daemonset.yaml")
    assert service["metadata"]["name"] == NodeSettings().service
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"]
    selector = service["spec"]["selector"]
    assert selector == daemon_set["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    # The agent takes the first port of an EndpointSlice for that of the responder.
    assert [(port["port"], port["targetPort"]) for port in service["spec"]["ports"]] == [(DEFAULT_PORT, "probe")]


def test_it_runs_as_the_account_that_has_the_rights(pod: dict[str, Any]) -> None:
    accounts = [
        item["metadata"]
        for item in yaml.safe_load_all((DEPLOY / "rbac" / "node.yaml").read_text())
        if item["kind"] == "ServiceAccount"
    ]
    namespace = manifest("kustomization.yaml")["namespace"]
    assert accounts == [{"name": pod["spec"]["serviceAccountName"], "namespace": namespace}]
