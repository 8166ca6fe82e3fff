"""WorkloadProfile on a real API server: what `berth classify` writes applies, its columns, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from berth.api.workloadprofile import API_VERSION, KIND
from berth.cli.main import app
from hack.harness.cluster import REPOSITORY, Kubectl

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "report"}
MEASURED = {"method": "CoRun", "sensitivity": "1.379", "contentiousness": "1.358", "qosLimit": "1.2"}


def profile(**spec: Any) -> dict[str, Any]:
    fields = {name: value for name, value in ({"targetRef": TARGET, "interferenceClass": "D"} | spec).items() if value}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "report"}, "spec": fields}


def test_profiles_of_published_run_times_apply(kubectl: Kubectl, tmp_path: Path) -> None:
    runs = str(REPOSITORY / "examples" / "interference" / "spec-cpu2006.csv")
    text = CliRunner().invoke(app, ["classify", runs, "-o", "profiles"]).stdout
    file = tmp_path / "profiles.yaml"
    file.write_text(text)
    kubectl("apply", "--validate=strict", "-f", str(file))
    wanted = {item["metadata"]["name"]: item["spec"] for item in yaml.safe_load_all(text)}
    assert {item["metadata"]["name"]: item["spec"] for item in kubectl.get("wp")["items"]} == wanted
    head, *lines = kubectl("get", "wp", "-o", "wide").splitlines()
    assert head.split() == [
        *("NAME", "TARGET", "CLASS", "SENSITIVITY", "CONTENTIOUSNESS", "LIMIT", "METHOD", "SAMPLES", "MEASURED", "AGE")
    ]
    (line,) = [line.split() for line in lines if line.startswith("soplex2 ")]
    assert line[:8] == ["soplex2", "soplex2", "D", "1.294", "1.212", "1.200", "CoRun", "18"]


def test_profiles_of_workloads_with_odd_names_apply(kubectl: Kubectl) -> None:
    """Names that other readers of YAML take for numbers and answers, and that are no names of objects."""
    names = ["1e3", "y", "089", "0o7", "spec..lbm", "lbm.-_v2", "Ab C"]
    runs = [f"{name},,10\n" for name in names] + [f"{one},{two},11\n" for one in names for two in names]
    text = "workload,beside,seconds\n" + "".join(runs)
    kubectl("apply", "-f", "-", input=CliRunner().invoke(app, ["classify", "-", "-o", "profiles"], input=text).stdout)
    wanted = ["089", "0o7", "1e3", "ab-c", "lbm.v2", "spec.lbm", "y"]
    for name in wanted:
        spec = kubectl.get("wp", name)["spec"]
        assert spec["targetRef"]["name"] == name
        assert sorted(each["beside"] for each in spec["slowdowns"]) == wanted


def test_the_example_applies_without_a_warning(kubectl: Kubectl) -> None:
    example = str(REPOSITORY / "examples" / "interference" / "workloadprofiles.yaml")
    kubectl("apply", "--validate=strict", "-f", example)
    lines = [line.split() for line in kubectl("get", "workloadprofiles").splitlines()]
    assert lines[1][:3] == ["cache", "cache", "A"]
    assert lines[2][:5] == ["report", "report", "D", "1.379", "1.358"]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="class alone"),
        pytest.param(MEASURED, id="measured"),
        pytest.param(MEASURED | {"method": "Stated", "interferenceClass": "A"}, id="measures overruled"),
        pytest.param({"sensitivity": "2", "slowdowns": [{"beside": "x", "slowdown": "0.98"}]}, id="figures in part"),
    ],
)
def test_accepted(kubectl: Kubectl, spec: dict[str, Any]) -> None:
    kubectl.apply(profile(**spec))
    assert kubectl.get("workloadprofile", "report")["spec"] == profile(**spec)["spec"]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param({"interferenceClass": "E"}, "interferenceClass", id="no class"),
        pytest.param({"interferenceClass": None}, "interferenceClass", id="class missing"),
        pytest.param({"targetRef": None}, "targetRef", id="target missing"),
        pytest.param({"sensitivity": 1.2}, "expected string", id="a float"),
        pytest.param({"sensitivity": "1.2x"}, "should match", id="no number"),
        pytest.param({"qosLimit": "0"}, "should match", id="0 is no slowdown"),
        pytest.param({"method": "Guess"}, "method", id="unknown method"),
        pytest.param(MEASURED | {"interferenceClass": "A"}, "must be what follows from them", id="another class"),
        pytest.param(MEASURED | {"qosLimit": None}, "qosLimit must be stated", id="measured at no limit"),
        pytest.param({"slowdowns": [{"beside": "x", "slowdown": "1"}] * 2}, "duplicate entries", id="one twice"),
    ],
)
def test_refused(kubectl: Kubectl, spec: dict[str, Any], text: str) -> None:
    with pytest.raises(Exception, match=text):
        kubectl.apply(profile(**spec))


def test_a_profile_without_spec_is_refused(kubectl: Kubectl) -> None:
    with pytest.raises(Exception, match="spec"):
        kubectl.apply({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "report"}})
