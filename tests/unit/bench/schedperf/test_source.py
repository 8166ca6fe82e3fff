"""Cases read from configuration files as the Go module has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.schedperf.source import read_cases

CONFIG = """
- name: {name}
  featureGates: {{Odd: true}}
  defaultPodTemplatePath: ../templates/pod.yaml
  workloadTemplate:
  - opcode: createNodes
    countParam: $initNodes
  workloads:
  - name: 5Nodes
    labels: [short]
    params: {{initNodes: 5}}
  - name: bare
"""


def write(root: Path, directory: str, name: str) -> None:
    (root / directory).mkdir(parents=True)
    (root / directory / "performance-config.yaml").write_text(CONFIG.format(name=name))


def test_a_case_is_read_with_its_workloads(tmp_path: Path) -> None:
    write(tmp_path, "misc", "SchedulingBasic")
    (case,) = read_cases(tmp_path)
    assert (case.name, case.directory, case.pod_template) == (
        "SchedulingBasic",
        tmp_path / "misc",
        "../templates/pod.yaml",
    )
    assert case.operations == ({"opcode": "createNodes", "countParam": "$initNodes"},)
    assert [(w.name, w.params) for w in case.workloads] == [("5Nodes", {"initNodes": 5}), ("bare", {})]


@pytest.mark.parametrize(
    ("directory", "name", "reason"),
    [
        ("misc", "SchedulingBasic", None),
        ("misc", "PreemptionAsync", "eviction"),
        ("dra", "SchedulingWithResourceClaim", "dynamic resource allocation"),
        ("dra/extendedresource", "ExtendedResource", "dynamic resource allocation"),
        ("nodedeclaredfeatures", "NodeDeclaredFeaturesEnabled", "from code"),
    ],
)
def test_cases_out_of_scope_say_why(tmp_path: Path, directory: str, name: str, reason: str | None) -> None:
    write(tmp_path, directory, name)
    (case,) = read_cases(tmp_path)
    found = case.reason_left_out(tmp_path)
    assert found is None if reason is None else reason in str(found)
