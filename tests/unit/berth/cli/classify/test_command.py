"""``berth classify``: the examples, its forms of answer, its exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from berth.api.workloadprofile import WorkloadProfile
from berth.cli.main import app

EXAMPLES = Path(__file__).parents[5] / "examples"
PUBLISHED = str(EXAMPLES / "interference" / "spec-cpu2006.csv")
RUNS = str(EXAMPLES / "interference" / "runs.csv")
HEADING = "workload,beside,seconds\n"


@pytest.fixture(autouse=True)
def _wide_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def run(*arguments: str, text: str = "") -> Any:
    return CliRunner().invoke(app, ["classify", *arguments], input=text)


def document(*arguments: str, text: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "-o", "json", text=text).stdout)
    return found


def test_published_run_times() -> None:
    result = run(PUBLISHED)
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["namd", "A", "1.017", "-0.183", "1.046", "-0.154"] in rows
    assert ["soplex2", "D", "1.294", "+0.094", "1.212", "+0.012"] in rows
    assert ["A", "6", "A,", "B,", "C,", "D"] in rows
    assert ["D", "4", "A"] in rows
    assert ["omnetpp", "libquantum2", "1.259"] in rows, "beyond the limit although their classes fit"


def test_published_document() -> None:
    found = document(PUBLISHED)
    assert (found["qosLimit"], found["notes"]) == (1.2, [])
    assert {name: len(workloads) for name, workloads in found["classes"].items()} == {"A": 6, "B": 0, "C": 0, "D": 4}
    assert found["misjudged"] == [{"workload": "omnetpp", "beside": "libquantum2", "slowdown": 1.259}]
    omnetpp = next(item for item in found["workloads"] if item["workload"] == "omnetpp")
    assert omnetpp["sensitivity"] == {
        "slowdown": 1.166,
        "fromLimit": -0.034,
        "lowerWhisker": 1.029,
        "firstQuartile": 1.039,
        "median": 1.046,
        "thirdQuartile": 1.107,
        "outliers": [1.259],
        "samples": 9,
    }


@pytest.mark.parametrize(
    ("limit", "counts"), [("1.1", [2, 1, 1, 6]), ("1.2", [6, 0, 0, 4]), ("1.3", [8, 1, 1, 0]), ("2", [10, 0, 0, 0])]
)
def test_the_limit_is_selectable(limit: str, counts: list[int]) -> None:
    found = document(PUBLISHED, "--qos", limit)
    assert [len(workloads) for workloads in found["classes"].values()] == counts
    for item in found["workloads"]:
        for name in ("sensitivity", "contentiousness"):
            assert item[name]["fromLimit"] == pytest.approx(item[name]["slowdown"] - float(limit))


@pytest.mark.parametrize("limit", ["1", "0", "-2", "nan"])
def test_a_limit_that_everything_is_beyond_is_refused(limit: str) -> None:
    assert run(PUBLISHED, "--qos", limit).exit_code == 2


def test_profiles_are_those_of_the_example() -> None:
    result = run(RUNS, "-o", "profiles")
    assert (result.exit_code, result.stderr) == (0, "")
    found = {item["metadata"]["name"]: item for item in yaml.safe_load_all(result.stdout)}
    assert {name: item["spec"]["interferenceClass"] for name, item in found.items()} == {
        "search": "B",
        "cache": "A",
        "index": "B",
        "report": "D",
        "thumbnails": "C",
        "backup": "C",
    }
    _, example = yaml.safe_load_all((EXAMPLES / "interference" / "workloadprofiles.yaml").read_text())
    for item in (example, found["report"]):
        del item["spec"]["measuredTime"]
    assert found["report"] == example


def test_names_and_namespace_of_profiles() -> None:
    result = run(PUBLISHED, "-o", "profiles", "--namespace", "bench")
    found = [WorkloadProfile.parse(item) for item in yaml.safe_load_all(result.stdout)]
    assert {item.metadata.namespace for item in found} == {"bench"}
    assert [item.metadata.name for item in found][5:8] == ["cactusadm", "libquantum2", "gemsfdtd2"]
    names = {item.metadata.name for item in found}
    assert all({other.beside for other in item.spec.slowdowns} == names - {item.metadata.name} for item in found)


def test_standard_input_and_what_has_no_class() -> None:
    text = f"{HEADING}a,,10\nb,,10\na,b,15\nb,a,10\nc,,10\na,c,10\n"
    result = run("-", text=text)
    assert result.exit_code == 3
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["c", "?", "?", "?", "1.000", "-0.200"] in rows
    assert "- c: no run time beside others; its sensitivity is not known" in result.stdout
    assert "- a: 1 neighbour; fewer than 4 do not tell an outlier" in result.stdout
    result = run("-", "-o", "profiles", text=text)
    assert result.stderr.startswith("berth classify: no profile of c, whose class is not known; ")
    manifests = yaml.safe_load_all(result.stdout)
    profiles = [WorkloadProfile.parse(item) for item in manifests]
    assert [item.metadata.name for item in profiles] == ["a", "b"]
    assert all(item.spec.measured_time is None for item in profiles)


def test_a_neighbour_that_never_ran_alone() -> None:
    found = document("-", text=f"{HEADING}a,,10\na,a,11\na,x,12\nx,a,9\n")
    assert found["workloads"][0]["sensitivity"]["samples"] == 2
    assert found["notes"][0] == "x: no run time alone; what it suffers beside others is left out"


@pytest.mark.parametrize(
    ("text", "arguments", "problem"),
    [
        pytest.param("a,b\n", (), "-: line 1: no column workload", id="no run times"),
        pytest.param(f"{HEADING}a,,1\na,a,5000\n", (), "a beside a takes 5e+03 times", id="milliseconds"),
        pytest.param(f"{HEADING}é,,1\né,é,1\n", ("-o", "profiles"), "'é' gives no name of an object", id="no name"),
        pytest.param(
            f"{HEADING}a_b,,1\nA-b,,1\na_b,A-b,1\nA-b,a_b,1\n",
            ("-o", "profiles"),
            "'a_b' and 'A-b' both give the name a-b",
            id="one name for two",
        ),
        pytest.param(f"{HEADING}a,,1\n", ("-n", "A B"), "'A B' is no name of a namespace", id="no namespace"),
        pytest.param(
            f"{HEADING}a\x1b[31m,,1\nb\n", (), r"line 2: 'a\x1b[31m' is no name", id="one that commands terminals"
        ),
    ],
)
def test_bad_input_ends_with_2(text: str, arguments: tuple[str, ...], problem: str) -> None:
    result = run("-", *arguments, text=text)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("none.csv", "none.csv: no such file or directory; name a readable file", id="not there"),
        pytest.param(".", ": is a directory; name a readable file", id="a directory"),
        pytest.param("latin", "latin: not UTF-8 text; name a readable file", id="another encoding"),
    ],
)
def test_a_file_that_cannot_be_read_ends_with_2(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    result = run(str(tmp_path / name))
    assert result.exit_code == 2
    assert problem in result.stderr
