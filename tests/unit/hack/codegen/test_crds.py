"""What every CustomResourceDefinition of ours must have."""

import re

import pytest
import yaml

from berth.api.appgroup import MAX_PODS_SCHEDULED, AppGroupStatus
from berth.api.networktopology import NetworkTopologyStatus
from hack.codegen.crds import crd, manifest
from hack.codegen.kinds import (
    APPGROUP,
    KINDS,
    LATENCYPOLICY,
    NETWORKTOPOLOGY,
    PROBEREPORT,
    SOCKETSTATUS,
    WORKLOADPROFILE,
    KindSpec,
)
from hack.localcluster.paths import REPOSITORY
from tests.unit.hack.codegen.schemas import schema_nodes, version

DIRECTORY = REPOSITORY / "crds"
every_kind = pytest.mark.parametrize("kind", KINDS, ids=[kind.kind for kind in KINDS])


def test_manifests_are_yaml_of_the_definitions() -> None:
    for kind in KINDS:
        assert yaml.safe_load(manifest(kind)) == crd(kind)


def test_the_kustomization_has_every_definition() -> None:
    listed = yaml.safe_load((DIRECTORY / "Kustomization").read_text())["resources"]
    assert sorted(listed) == sorted(path.name for path in DIRECTORY.glob("*.yaml"))
    assert len(listed) == len(KINDS)


@every_kind
def test_names_and_subresource(kind: KindSpec) -> None:
    definition = crd(kind)
    assert definition["metadata"]["name"] == f"{kind.plural}.{kind.group}"
    assert definition["spec"]["names"]["categories"] == ["berth"]
    assert definition["spec"]["scope"] == ("Cluster" if kind in (PROBEREPORT, SOCKETSTATUS) else "Namespaced")
    assert version(kind)["subresources"] == {"status": {}}


def test_short_names() -> None:
    assert {kind.kind: kind.short_names for kind in KINDS} == {
        "AppGroup": ("ag",),
        "NetworkTopology": ("nt",),
        "ProbeReport": (),
        "SocketStatus": ("sst",),
        "WorkloadProfile": ("wp",),
        "LatencyPolicy": ("lp",),
    }


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
        path, _, names = column.path.partition("[")
        # An asterisk: the first that there is of these fields, of spec or status.
        paths = [f".(spec|status).{name}" for name in re.findall("'([^']+)'", names)] if path == ".*" else [path]
        assert paths, column.name
        for each in paths:
            there = any(re.fullmatch(each.replace(".", r"\."), name) for name in fields)
            assert there or each == ".metadata.creationTimestamp", column.name
        assert ".." not in path, "it is looked for among all characters of the object, for each line of a list"
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
        (
            WORKLOADPROFILE,
            ["Target", "Class", "Sensitivity", "Contentiousness", "Measured", "Age"],
            ["Limit", "Method", "Samples"],
        ),
        (SOCKETSTATUS, ["Sockets", "Pinned", "Violations", "Age"], ["Reason", "Pairing"]),
        (PROBEREPORT, ["Zone", "Peers", "P90-Nearest", "P90-Farthest", "Loss", "Age"], ["Dropped"]),
        (
            LATENCYPOLICY,
            ["Target", "Hard", "Soft", "State", "P50", "Moves", "Working", "Age"],
            ["Objective", "Limits", "Moving"],
        ),
    ],
    ids=["AppGroup", "NetworkTopology", "WorkloadProfile", "SocketStatus", "ProbeReport", "LatencyPolicy"],
)
def test_columns(kind: KindSpec, narrow: list[str], wide: list[str]) -> None:
    columns = version(kind)["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == narrow
    assert [column["name"] for column in columns if column.get("priority")] == wide


@pytest.mark.parametrize("kind", [APPGROUP, NETWORKTOPOLOGY], ids=["AppGroup", "NetworkTopology"])
def test_nothing_is_stricter_than_upstreams_schema(kind: KindSpec) -> None:
    for path, node in schema_nodes(kind).items():
        if path.startswith(".spec"):
            strict = {"enum", "pattern", "maxLength", "minLength", "maxItems", "minItems", "x-kubernetes-validations"}
            assert not strict & set(node), path


def test_appgroup_schema_is_upstreams_or_wider() -> None:
    fields = schema_nodes(APPGROUP)
    assert fields[".spec"]["required"] == ["numMembers", "topologySortingAlgorithm", "workloads"]
    assert fields[".spec.workloads[]"]["required"] == ["workload"]
    assert fields[".spec.workloads[].dependencies[]"]["required"] == ["workload"]
    assert fields[".spec.workloads[].workload"]["required"] == ["kind", "name", "selector"]
    assert "required" not in fields[""]
    limits = fields[".spec.workloads[].dependencies[].maxNetworkCost"]
    assert (limits["minimum"], limits["maximum"]) == (0, 10000)
    assert fields[".status.podsScheduled"]["maxItems"] == MAX_PODS_SCHEDULED


def test_networktopology_schema_is_upstreams_or_wider() -> None:
    fields = schema_nodes(NETWORKTOPOLOGY)
    assert fields[".spec"]["required"] == ["weights", "configmapName"]
    cost = ".spec.weights[].topologyList[].originList[].costList[]"
    assert fields[".spec.weights[].topologyList[].originList[]"]["required"] == ["origin"]
    assert fields[cost]["required"] == ["destination"]
    assert fields[f"{cost}.networkCost"]["minimum"] == 0
    assert "default" not in fields[f"{cost}.networkCost"]
    assert fields[f"{cost}.isAllowed"]["type"] == "boolean"


def test_a_kind_of_ours_needs_the_spec_that_its_model_needs() -> None:
    assert schema_nodes(WORKLOADPROFILE)[""]["required"] == ["spec"]
    assert schema_nodes(WORKLOADPROFILE)[".spec"]["required"] == ["targetRef", "interferenceClass"]
    assert "required" not in schema_nodes(PROBEREPORT)[""]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (APPGROUP, ".status"),
        (APPGROUP, ".status.topologyOrder[]"),
        (NETWORKTOPOLOGY, ".spec.weights[].topologyList[].originList[].originInterStatistics"),
        (NETWORKTOPOLOGY, ".spec.weights[].topologyList[].originList[].originIntraStatistics"),
    ],
)
def test_statistics_of_upstreams_controllers_are_kept(kind: KindSpec, path: str) -> None:
    assert schema_nodes(kind)[path]["x-kubernetes-preserve-unknown-fields"] is True


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
