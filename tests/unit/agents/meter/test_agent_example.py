"""The manifest of the sidecar agrees with the program. That an API server takes it is tested with a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.meter.agent import MeterAgent
from agents.meter.settings import END_SECONDS, MAX_LINGER, MeterSettings, host_and_port
from berth.api.latency_exchange import AUDIENCE
from berth.cli.run import parse
from berth.runtime.settings import RunSettings

EXAMPLE = Path(__file__).parents[4] / "examples" / "meter" / "deployment.yaml"


@pytest.fixture
def documents() -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in yaml.safe_load_all(EXAMPLE.read_text())}


@pytest.fixture
def pod(documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = documents["Deployment"]["spec"]["template"]["spec"]
    return found


@pytest.fixture
def meter(pod: dict[str, Any]) -> dict[str, Any]:
    [found] = pod["initContainers"]
    assert found["restartPolicy"] == "Always"
    return dict(found)


@pytest.fixture
def settings(meter: dict[str, Any]) -> tuple[MeterSettings, RunSettings]:
    assert meter["args"][0] == "run"
    [selected], process = parse(meter["args"][1:])
    assert selected.kind is MeterAgent
    assert isinstance(selected.settings, MeterSettings)
    return selected.settings, process


def ports(container: dict[str, Any]) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in container["ports"]}


def test_ports_are_those_of_the_program_and_nobody_elses(
    pod: dict[str, Any], meter: dict[str, Any], settings: tuple[MeterSettings, RunSettings]
) -> None:
    own, process = settings
    assert ports(meter) == {"metered": own.port, "meter-health": process.health_port}
    taken = [own.measurements_port, *ports(meter).values(), *ports(pod["containers"][0]).values()]
    assert len(taken) == len(set(taken))


def test_users_reach_the_meter_and_the_meter_the_application(
    documents: dict[str, dict[str, Any]], pod: dict[str, Any], settings: tuple[MeterSettings, RunSettings]
) -> None:
    [port] = documents["Service"]["spec"]["ports"]
    assert port["targetPort"] == "metered"
    assert host_and_port(settings[0].application) == ("127.0.0.1", ports(pod["containers"][0])["http"])
    selector = documents["Service"]["spec"]["selector"]
    assert selector.items() <= documents["Deployment"]["spec"]["template"]["metadata"]["labels"].items()


def test_the_token_is_where_it_is_looked_for(
    pod: dict[str, Any], meter: dict[str, Any], settings: tuple[MeterSettings, RunSettings]
) -> None:
    [volume] = pod["volumes"]
    [source] = volume["projected"]["sources"]
    [mount] = meter["volumeMounts"]
    assert mount["name"] == volume["name"]
    assert source["serviceAccountToken"]["audience"] == AUDIENCE
    assert settings[0].token_file == Path(mount["mountPath"]) / source["serviceAccountToken"]["path"]


def test_the_end_fits_into_the_pods(pod: dict[str, Any]) -> None:
    sleep = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert sleep + MAX_LINGER + END_SECONDS < pod.get("terminationGracePeriodSeconds", 30)


def test_scraping_finds_the_metrics(
    documents: dict[str, dict[str, Any]], settings: tuple[MeterSettings, RunSettings]
) -> None:
    annotations = documents["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(settings[1].health_port)
