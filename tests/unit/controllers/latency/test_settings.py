"""deploy/latency fits the controller: its options exist, its ports are its own, and its account is that with rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.cli.run import parse
from berth.runtime.settings import SettingsError, settings_from
from controllers.latency.settings import LatencySettings, networks_of

DEPLOY = Path(__file__).resolve().parents[4] / "deploy"


def documents(*names: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(DEPLOY.joinpath(*names).read_text()))


def test_the_deployment() -> None:
    (pod,) = (
        each["spec"]["template"]["spec"]
        for each in documents("latency", "controller.yaml")
        if each["kind"] == "Deployment"
    )
    (container,) = pod["containers"]
    command, *arguments = container["args"]
    (selected,), process = parse([text.replace("$(POD_IP)", "10.0.0.7") for text in arguments])
    assert (command, selected.name) == ("run", "latency")
    assert isinstance(selected.settings, LatencySettings)
    assert selected.settings.address == "10.0.0.7"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"health": process.health_port, "latency": selected.settings.port}
    assert [variable["name"] for variable in container["env"]] == ["POD_IP"]
    accounts = [each["metadata"] for each in documents("rbac", "latency.yaml") if each["kind"] == "ServiceAccount"]
    (kustomization,) = documents("latency", "kustomization.yaml")
    assert accounts == [{"name": pod["serviceAccountName"], "namespace": kustomization["namespace"]}]


@pytest.mark.parametrize(
    ("text", "networks"),
    [
        pytest.param("", [], id="none"),
        pytest.param("10.96.0.0/12", ["10.96.0.0/12"], id="one"),
        pytest.param("10.96.0.1/12, fd00::/8,", ["10.96.0.0/12", "fd00::/8"], id="two, written by hand"),
    ],
)
def test_networks_that_are_never_probed(text: str, networks: list[str]) -> None:
    assert [str(network) for network in networks_of(text)] == networks


@pytest.mark.parametrize(
    ("option", "value", "remedy"),
    [
        pytest.param("--latency-never-probe", "10.96.0.0/40", "write networks such as 10.96.0.0/12", id="no network"),
        pytest.param("--latency-address", "berth.example", "write an IP address", id="a name for an address"),
        pytest.param("--latency-address", "0.0.0.0", "write an IP address", id="every address"),
        pytest.param("--latency-address", "::", "write an IP address", id="every address, of IPv6"),
    ],
)
def test_what_is_no_address_is_refused_with_its_option(option: str, value: str, remedy: str) -> None:
    with pytest.raises(SettingsError, match=f"{option} '{value}': .*{remedy}"):
        settings_from(LatencySettings, "latency", {option: value})
