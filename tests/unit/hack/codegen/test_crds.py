"""The generated files: up to date, and what every CRD of ours must have."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.api import rules
from berth.api.appgroup import MAX_PODS_SCHEDULED, AppGroupStatus, SortingAlgorithm
from berth.api.networktopology import NetworkTopologyStatus
from hack.codegen.crds import ROOT, crd, drift, generated_files, main
from hack.codegen.kinds import APPGROUP, KINDS, NETWORKTOPOLOGY, KindSpec

every_kind = pytest.mark.parametrize("kind", KINDS, ids=[kind.kind for kind in KINDS])


def version(kind: KindSpec) -> dict[str, Any]:
    [only] = crd(kind)["spec"]["versions"]
    return only


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")


def schema_nodes(kind: KindSpec) -> dict[str, dict[str, Any]]:
    return dict(nodes(version(kind)["schema"]["openAPIV3Schema"]))


def test_files_in_the_tree_are_up_to_date() -> None:
    assert drift(ROOT) == []


def test_check_shows_a_diff_and_fails_when_a_file_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(tmp_path)]) == 0
    assert main(["--root", str(tmp_path), "--check"]) == 0
    capsys.readouterr()
    target = tmp_path / "crds" / "appgroup.diktyo.x-k8s.io_appgroups.yaml"
    target.write_text(target.read_text().replace("minimum: 1\n", "minimum: 2\n", 1))
    assert main(["--root", str(tmp_path), "--check"]) == 1
    shown = capsys.readouterr().out
    assert "-                minimum: 2" in shown
    assert "+                minimum: 1" in shown
    assert "make manifests" in shown


@pytest.mark.parametrize("missing", sorted(generated_files()))
def test_a_missing_file_is_drift(missing: str, tmp_path: Path) -> None:
    main(["--root", str(tmp_path)])
    (tmp_path / missing).unlink()
    assert any(missing in line for line in drift(tmp_path))


def test_a_manifest_of_no_kind_is_drift(tmp_path: Path) -> None:
    main(["--root", str(tmp_path)])
    (tmp_path / "crds" / "old.yaml").write_text("")
    assert drift(tmp_path) == ["crds/old.yaml: no model generates this file; delete it"]


def test_manifests_are_yaml_of_the_definitions() -> None:
    files = generated_files()
    for kind in KINDS:
        assert yaml.safe_load(files[f"crds/{kind.group}_{kind.plural}.yaml"]) == crd(kind)


@every_kind
def test_names_and_subresource(kind: KindSpec) -> None:
    definition = crd(kind)
    assert definition["metadata"]["name"] == f"{kind.plural}.{kind.group}"
    assert definition["spec"]["names"]["categories"] == ["berth"]
    assert definition["spec"]["scope"] == "Namespaced"
    assert version(kind)["subresources"] == {"status": {}}


def test_short_names_are_upstreams() -> None:
    assert {kind.kind: kind.short_names for kind in KINDS} == {"AppGroup": ("ag",), "NetworkTopology": ("nt",)}


@every_kind
def test_every_field_is_described(kind: KindSpec) -> None:
    silent = [path for path, node in schema_nodes(kind).items() if not node.get("description") and path != ".metadata"]
    assert silent == []


@every_kind
def test_the_schema_is_structural(kind: KindSpec) -> None:
    for path, node in schema_nodes(kind).items():
        assert not {"$ref", "$defs", "title", "default", "nullable"} & set(node), path
        assert "type" in node or node.get("x-kubernetes-int-or-string"), path
        if node.get("type") == "integer":
            assert node.get("format") in ("int32", "int64"), path
        if node.get("type") == "array":
            assert "x-kubernetes-list-type" in node, path


@every_kind
def test_columns_point_at_fields(kind: KindSpec) -> None:
    fields = schema_nodes(kind)
    for column in kind.columns:
        path = column.path.partition("[")[0]
        assert path in fields or path == ".metadata.creationTimestamp", column.name
        assert column.description, column.name


@pytest.mark.parametrize(
    ("kind", "narrow", "wide"),
    [
        (APPGROUP, ["Members", "Running", "Algorithm", "Order", "Age"], ["Ordered", "Placed"]),
        (
            NETWORKTOPOLOGY,
            ["Weight-Sets", "Nodes", "Regions", "Zones", "Data-Age", "Age"],
            ["Source", "Computed", "Complete"],
        ),
    ],
    ids=["AppGroup", "NetworkTopology"],
)
def test_columns(kind: KindSpec, narrow: list[str], wide: list[str]) -> None:
    columns = version(kind)["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == narrow
    assert [column["name"] for column in columns if column.get("priority")] == wide


@every_kind
def test_rules_say_what_to_do(kind: KindSpec) -> None:
    for path, node in schema_nodes(kind).items():
        for rule in node.get("x-kubernetes-validations", ()):
            assert rule["message"], path
            # The API server allows no line break in a message and cuts long ones.
            assert "\n" not in rule["message"] + rule.get("messageExpression", ""), path


def test_appgroup_schema_is_upstreams_or_wider() -> None:
    fields = schema_nodes(APPGROUP)
    assert fields[".spec"]["required"] == ["numMembers", "topologySortingAlgorithm", "workloads"]
    assert fields[".spec.workloads[]"]["required"] == ["workload"]
    assert fields[".spec.workloads[].dependencies[]"]["required"] == ["workload"]
    assert fields[".spec.workloads[].workload"]["required"] == ["kind", "name", "selector"]
    assert "required" not in fields[""]
    assert fields[".spec.topologySortingAlgorithm"]["enum"] == [item.value for item in SortingAlgorithm]
    limits = fields[".spec.workloads[].dependencies[].maxNetworkCost"]
    assert (limits["minimum"], limits["maximum"]) == (0, 10000)
    assert fields[".spec.workloads"]["maxItems"] == rules.MAX_WORKLOADS == 10_000
    assert fields[".status.podsScheduled"]["maxItems"] == MAX_PODS_SCHEDULED


def test_networktopology_schema_is_upstreams_or_wider() -> None:
    fields = schema_nodes(NETWORKTOPOLOGY)
    assert fields[".spec"]["required"] == ["weights", "configmapName"]
    cost = ".spec.weights[].topologyList[].originList[].costList[]"
    assert fields[".spec.weights[].topologyList[].originList[]"]["required"] == ["origin"]
    assert fields[cost]["required"] == ["destination"]
    assert fields[f"{cost}.networkCost"]["minimum"] == 0
    assert "default" not in fields[f"{cost}.networkCost"]
    assert fields[f"{cost}.bandwidthCapacity"]["pattern"] == rules.QUANTITY_PATTERN


@pytest.mark.parametrize(
    ("kind", "status"),
    [(APPGROUP, AppGroupStatus), (NETWORKTOPOLOGY, NetworkTopologyStatus)],
    ids=["AppGroup", "NetworkTopology"],
)
def test_status_has_no_required_field(
    kind: KindSpec, status: type[AppGroupStatus] | type[NetworkTopologyStatus]
) -> None:
    # A controller of an older version must be able to write what it knows.
    assert "required" not in schema_nodes(kind)[".status"]
    assert set(schema_nodes(kind)[".status"]["properties"]) == {
        field.alias or name for name, field in status.model_fields.items()
    }


def test_the_reference_page_names_every_field_and_rule() -> None:
    page = generated_files()["docs/reference/kinds.md"]
    for kind in KINDS:
        for path, node in schema_nodes(kind).items():
            if path.startswith((".spec", ".status")) and not path.endswith("[]"):
                assert f"| `{path[1:]}` |" in page, path
            for rule in node.get("x-kubernetes-validations", ()):
                assert rule["message"] in page
