"""deploy/meter fits the meter and the example. What the policies do is tested on a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.meter.agent import MeterAgent
from agents.meter.settings import MeterSettings
from berth.api.latency_exchange import AUDIENCE
from berth.api.meter_injection import CONTAINER, PATCH, PORT
from berth.cli.run import parse
from hack.codegen import injection

ROOT = Path(__file__).parents[4]


def read(path: str) -> dict[str, Any]:
    found: dict[str, Any] = next(yaml.safe_load_all((ROOT / path).read_text()))
    return found


@pytest.fixture
def template() -> dict[str, Any]:
    found = read("deploy/meter/template.yaml")
    assert (found["kind"], found["metadata"]["name"]) == ("PodTemplate", CONTAINER)
    spec: dict[str, Any] = found["template"]["spec"]
    return spec


@pytest.fixture
def meter(template: dict[str, Any]) -> dict[str, Any]:
    [found] = template["containers"]
    assert found["name"] == CONTAINER
    return dict(found)


def test_its_options_and_those_that_the_policy_adds_exist(meter: dict[str, Any]) -> None:
    added = ["--meter-application=127.0.0.1:80", "--meter-controller-namespace=x"]
    assert all(option.partition("=")[0] in PATCH for option in added)
    command, *arguments = meter["args"]
    [selected], process = parse([*arguments, *added])
    assert (command, selected.kind) == ("run", MeterAgent)
    assert isinstance(selected.settings, MeterSettings)
    ports = {port["name"]: port["containerPort"] for port in meter["ports"]}
    assert ports == {PORT: selected.settings.port, "meter-health": process.health_port}


def test_its_token_is_where_the_meter_looks(template: dict[str, Any], meter: dict[str, Any]) -> None:
    [mount], [volume] = meter["volumeMounts"], template["volumes"]
    assert mount["name"] == volume["name"]
    [source] = volume["projected"]["sources"]
    token = source["serviceAccountToken"]
    assert token["audience"] == AUDIENCE
    assert Path(mount["mountPath"]) / token["path"] == MeterSettings().token_file


def test_otherwise_it_is_the_one_that_is_written_by_hand(meter: dict[str, Any]) -> None:
    pod = read("examples/meter/deployment.yaml")["spec"]["template"]["spec"]
    [by_hand] = pod["initContainers"]
    security = {**pod["securityContext"], **by_hand["securityContext"]}
    same = {key: value for key, value in by_hand.items() if key not in ("name", "image", "args", "restartPolicy")}
    # The name of its volume is unlikely to be another's of the pod.
    same |= {"securityContext": security, "volumeMounts": [{**by_hand["volumeMounts"][0], "name": "berth-meter-token"}]}
    assert {key: meter[key] for key in meter if key not in ("name", "image", "args")} == same


def test_the_policies_keep_no_pod_from_being_created() -> None:
    by_kind = {item["kind"]: item["spec"] for item in injection.policies()}
    mutating, warning = by_kind["MutatingAdmissionPolicy"], by_kind["ValidatingAdmissionPolicy"]
    assert [mutating["failurePolicy"], warning["failurePolicy"]] == ["Ignore", "Ignore"]
    bindings = [by_kind[f"{kind}AdmissionPolicyBinding"] for kind in ("Mutating", "Validating")]
    assert [binding["paramRef"]["parameterNotFoundAction"] for binding in bindings] == ["Allow", "Allow"]
    assert bindings[1]["validationActions"] == ["Warn"]


def test_the_policies_look_for_the_template_where_it_is() -> None:
    kustomization = read("deploy/meter/kustomization.yaml")
    wanted = {"name": CONTAINER, "namespace": kustomization["namespace"]}
    bindings = [item["spec"]["paramRef"] for item in injection.policies() if item["kind"].endswith("Binding")]
    assert [{key: each[key] for key in wanted} for each in bindings] == [wanted, wanted]
