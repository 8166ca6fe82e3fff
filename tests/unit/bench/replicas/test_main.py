"""The command line: manifests and plans in, a table out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.replicas.__main__ import boutique_page, documents, growth_page, main
from bench.replicas.boutique import Case, run
from bench.replicas.cluster import read_cluster
from bench.replicas.report import page, table
from tests.support.replicas import EXAMPLES, SMALL, group, placed
from tests.support.replicas import boutique as placed_boutique

EDGE = group(("web", "db"))


def written(directory: Path, *manifests: dict[str, Any]) -> str:
    path = directory / "snapshot.yaml"
    path.write_text(yaml.safe_dump_all(manifests))
    return str(path)


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", "-f", written(tmp_path, *SMALL, EDGE, *placed(web=["a1-1", "a1-2"], db=["a1-1", "a2-1"]))])
    (row,) = rows(capsys.readouterr().out)
    assert row[:9] == [
        "default/shop", "4 on 3", "2.75", "2.75", "50%", "0.50", "2 of 2", "1 of 2", "1.00 / 1.00",
    ]  # fmt: skip


def test_a_plan_of_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [item["metadata"] for item in documents([str(EXAMPLES)]) if item["kind"] == "Deployment"]
    names = [meta["name"] for meta in found if "namespace" not in meta]
    pods = [
        {"namespace": "default", "name": f"{name}-1", "workload": f"Deployment/{name}", "node": "eu-west-a-01"}
        for name in names
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"pods": pods}))
    main(["evaluate", "-f", str(EXAMPLES), "--plan", str(plan)])
    text = capsys.readouterr().out
    assert rows(text)[0][:3] == ["default/online-boutique", "11 on 1", "0.00"]
    assert "Hard rules broken: none" in text


def test_lists_and_json_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"kind": "List", "items": [*SMALL, EDGE, *placed(web=["a1-1"], db=["a1-1"])]}))
    main(["evaluate", "-f", str(path)])
    assert rows(capsys.readouterr().out)[0][1] == "2 on 1"


def test_hard_rules_that_are_broken_are_named() -> None:
    cluster = placed_boutique(["eu-west-a-01"] * 3)
    text = page(cluster)
    assert "Hard rules broken: none" in text
    for pod in cluster.pods:
        pod.spec["containers"][0]["resources"]["requests"]["cpu"] = "1"
    assert "Hard rules broken: 1 resources\n- resources: eu-west-a-01: cpu: 33 of 4" in page(cluster)


def test_several_groups_have_a_row_together() -> None:
    mall = group(("web", "db"), name="mall")
    shops = [*placed(web=["a1-1"], db=["a1-2"]), *placed({"group": "mall"}, web=["a1-1"], db=["a2-1"])]
    found = rows(page(read_cluster([*SMALL, EDGE, mall, *shops])))
    assert [(row[0], row[2]) for row in found] == [
        ("default/mall", "5.00"),
        ("default/shop", "1.00"),
        ("**all**", "3.00"),
    ]


def test_groups_without_pods_have_no_row() -> None:
    cluster = placed_boutique([])
    assert rows(page(cluster)) == []


def test_tables_are_markdown() -> None:
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_cases_of_online_boutique_have_a_row_each() -> None:
    (row,) = rows(boutique_page([run(Case(prefer="PreferSameZone"))]))
    assert row[:4] == ["3 replicas, 24 nodes of 4 cores", "none", "PreferSameZone", row[3]]
    assert row[3].startswith("33 on ")
    assert row[-3:-1] == ["0", "none"]


def test_strategies_are_measured_on_the_same_cases() -> None:
    (default,) = rows(boutique_page([run(Case(prefer="PreferSameZone"))]))
    (other,) = rows(boutique_page([run(Case(prefer="PreferSameZone"), strategy="berth")]))
    assert default[:3] == other[:3]
    assert default[8:10] == ["11 of 11", "11 of 11"]
    assert other[8:10] == ["0 of 11", "0 of 11"]


@pytest.mark.parametrize("strategy", ["berth", "replicas"])
def test_steps_of_a_life_have_a_row_each(strategy: str) -> None:
    found = rows(growth_page([Case(rule="required anti-affinity by host")], strategy=strategy))
    assert [row[2] for row in found] == ["3 replicas", "grown to 6", "shrunk to 2", "rolled out"]
    assert all(row[4].startswith("11 / 11") for row in found)


@pytest.mark.parametrize("strategy", ["berth", "replicas"])
def test_problems_are_compared(strategy: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", "--problems", "2", "--first", "3", "--strategy", strategy])
    assert "| problems | 2 |" in capsys.readouterr().out
