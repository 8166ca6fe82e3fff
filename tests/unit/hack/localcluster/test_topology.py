"""Topology files: what they describe, and errors that name file, field and remedy. Creating the nodes is elsewhere."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hack.localcluster import TopologyError, nodes, topology

REPOSITORY = Path(__file__).resolve().parents[4]
NOW = datetime.datetime(2025, 3, 1, 12, 30, tzinfo=datetime.UTC)


def parse(text: str) -> list[topology.NodeSpec]:
    return topology.parse(yaml.safe_load(text), source="file.yaml")


def one_zone(**extra: Any) -> dict[str, Any]:
    """Smallest document, with *extra* fields in its zone."""
    return {"regions": [{"name": "r", "zones": [{"name": "z", "nodes": 1, **extra}]}]}


def test_minimal_file_gets_defaults() -> None:
    (node,) = topology.parse(one_zone(), source="file.yaml")
    assert (node.name, node.region, node.zone) == ("z-001", "r", "z")
    assert node.capacity == topology.DEFAULT_CAPACITY
    assert node.allocatable == topology.DEFAULT_CAPACITY
    assert (node.labels, node.annotations, node.taints) == ({}, {}, ())


INHERITANCE = """
capacity: {cpu: "8", example.com/gpu: 1}
allocatable: {cpu: 7500m}
labels: {disk: hdd, rack: none}
taints: [{key: top, effect: NoSchedule}]
regions:
  - name: eu
    labels: {disk: ssd}
    zones:
      - name: eu-a
        nodes: 1
      - name: eu-b
        annotations: {note: b}
        nodes:
          - count: 1
          - {count: 2, capacity: {cpu: "32", memory: 256Gi}, allocatable: {cpu: "31"}, namePattern: "big-{index}",
             labels: {rack: r1}, taints: [{key: big, value: "yes", effect: PreferNoSchedule}]}
"""


def test_inner_levels_override_and_taints_add_up() -> None:
    nodes_by_name = {node.name: node for node in parse(INHERITANCE)}
    assert list(nodes_by_name) == ["eu-a-001", "eu-b-001", "big-2", "big-3"]
    plain, big = nodes_by_name["eu-a-001"], nodes_by_name["big-2"]
    assert plain.labels == {"disk": "ssd", "rack": "none"}
    assert big.labels == {"disk": "ssd", "rack": "r1"}
    assert plain.annotations == {}
    assert big.annotations == {"note": "b"}
    assert (plain.capacity["cpu"], plain.allocatable["cpu"]) == ("8", "7500m")
    assert (big.capacity["cpu"], big.allocatable["cpu"], big.allocatable["memory"]) == ("32", "31", "256Gi")
    assert big.capacity["example.com/gpu"] == "1"
    assert [taint["key"] for taint in plain.taints] == ["top"]
    assert [taint["key"] for taint in big.taints] == ["top", "big"]


@pytest.mark.parametrize(
    ("name", "count", "zones", "smallest"),
    [
        pytest.param("demo", 24, 4, 6, id="demo"),
        pytest.param("scale-1000", 1000, 16, 62, id="scale-1000"),
        pytest.param("scale-5000", 5000, 16, 312, id="scale-5000"),
    ],
)
def test_shipped_files(name: str, count: int, zones: int, smallest: int) -> None:
    found = topology.load(REPOSITORY / "hack" / "topologies" / f"{name}.yaml")
    per_zone = Counter(node.zone for node in found)
    assert (len(found), len(per_zone), min(per_zone.values())) == (count, zones, smallest)
    assert len({node.name for node in found}) == count


ZONE = "regions[0].zones[0]"


@pytest.mark.parametrize(
    ("document", "field", "remedy"),
    [
        pytest.param([], "(top level)", "write 'key: value' pairs", id="no mapping"),
        pytest.param({}, "'regions' is missing", "add 'regions:'", id="no regions"),
        pytest.param({"regions": {"name": "r"}}, "regions", "start each entry with '- '", id="regions no list"),
        pytest.param({"regions": [{"name": "r"}]}, "regions[0]: field 'zones'", "add 'zones:'", id="no zones"),
        pytest.param(
            {"regions": [], "zone": 1}, "unknown field 'zone'", "known fields are regions", id="unknown field"
        ),
        pytest.param({"regions": [{"name": 7, "zones": []}]}, "regions[0].name", "in quotes", id="numeric region"),
        pytest.param(one_zone(nodes="six"), f"{ZONE}.nodes: 'six'", "whole number", id="count is text"),
        pytest.param(one_zone(nodes=True), f"{ZONE}.nodes: True", "whole number", id="count is a boolean"),
        pytest.param(one_zone(nodes=-1), f"{ZONE}.nodes: -1", "whole number", id="negative count"),
        pytest.param(one_zone(nodes=1.5), f"{ZONE}.nodes: 1.5", "whole number", id="fractional count"),
        pytest.param(one_zone(nodes=[{"count": None}]), f"{ZONE}.nodes[0].count", "whole number", id="group count"),
        pytest.param(one_zone(nodes=[{}]), f"{ZONE}.nodes[0]: field 'count'", "add 'count:'", id="group without count"),
        pytest.param(one_zone(capacity={"cpu": "eight"}), f"{ZONE}.capacity.cpu", "32Gi", id="bad quantity"),
        pytest.param(one_zone(allocatable={"cpu": -1}), f"{ZONE}.allocatable.cpu", "32Gi", id="negative quantity"),
        pytest.param(one_zone(labels={"a": 1}), f"{ZONE}.labels.a", "put it in quotes: '1'", id="numeric label"),
        pytest.param(one_zone(labels={"a": "b c"}), f"{ZONE}.labels.a", "at most 63", id="bad label value"),
        pytest.param(one_zone(annotations={"a": []}), f"{ZONE}.annotations.a", "quotes", id="annotation no text"),
        pytest.param(one_zone(taints=["big"]), f"{ZONE}.taints[0]", "pairs", id="taint no mapping"),
        pytest.param(
            one_zone(taints=[{"key": "k", "effect": "Never"}]), f"{ZONE}.taints[0].effect", "NoExecute", id="bad effect"
        ),
        pytest.param(one_zone(namePattern=3), f"{ZONE}.namePattern", "write for example", id="pattern no text"),
        pytest.param(one_zone(namePattern="{rack}"), "namePattern: '{rack}'", "use {region}", id="unknown placeholder"),
        pytest.param(one_zone(namePattern="{"), "namePattern: '{'", "use {region}", id="open brace"),
        pytest.param(one_zone(namePattern="Node_{index}"), "'Node_1'", "lower-case", id="no node name"),
        pytest.param(one_zone(namePattern="n", nodes=2), "gives 'n' twice", "{index}", id="names repeat"),
        pytest.param(
            {"regions": [{"name": r, "zones": [{"name": "z", "nodes": 1}]} for r in "ab"]},
            "regions[1].zones[0].name: 'z' is also regions[0].zones[0].name",
            "a name of its own",
            id="zone twice",
        ),
    ],
)
def test_error_names_file_field_and_remedy(document: Any, field: str, remedy: str) -> None:
    with pytest.raises(TopologyError) as caught:
        topology.parse(document, source="file.yaml")
    message = str(caught.value)
    assert message.startswith("file.yaml: ")
    assert field in message
    assert remedy in message


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(None, "cannot be read", id="missing"),
        pytest.param("regions: [", "is not YAML", id="no YAML"),
        pytest.param("", "(top level): is NoneType", id="empty"),
    ],
)
def test_unreadable_file(tmp_path: Path, content: str | None, problem: str) -> None:
    path = tmp_path / "broken.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(TopologyError) as caught:
        topology.load(path)
    assert str(caught.value).startswith(f"{path}: {problem}")


@given(counts=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=4), min_size=1, max_size=4))
def test_every_zone_gets_its_count_and_every_node_a_name(counts: list[list[int]]) -> None:
    document = {
        "regions": [
            {"name": f"r{r}", "zones": [{"name": f"r{r}-z{z}", "nodes": count} for z, count in enumerate(zones)]}
            for r, zones in enumerate(counts)
        ]
    }
    found = topology.parse(document, source="file.yaml")
    wanted = {f"r{r}-z{z}": count for r, zones in enumerate(counts) for z, count in enumerate(zones) if count}
    assert Counter(node.zone for node in found) == wanted
    assert len({node.name for node in found}) == len(found) == sum(map(sum, counts))
    assert all(node.zone.startswith(f"{node.region}-") for node in found)


def test_manifest_is_a_ready_node_that_kwok_manages() -> None:
    spec = parse(INHERITANCE)[2]
    made = nodes.manifest(spec, address="172.16.0.9", now=NOW)
    assert made["metadata"]["annotations"] == {"note": "b", "kwok.x-k8s.io/node": "fake"}
    labels = made["metadata"]["labels"]
    assert labels["topology.kubernetes.io/region"] == "eu"
    assert labels["topology.kubernetes.io/zone"] == "eu-b"
    assert labels["kubernetes.io/hostname"] == "big-2"
    assert labels["rack"] == "r1"
    assert made["spec"]["taints"][1] == {"key": "big", "value": "yes", "effect": "PreferNoSchedule"}
    conditions = {condition["type"]: condition["status"] for condition in made["status"]["conditions"]}
    assert conditions == {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    assert {item["lastHeartbeatTime"] for item in made["status"]["conditions"]} == {"2025-03-01T12:30:00Z"}
    assert made["status"]["addresses"][0] == {"type": "InternalIP", "address": "172.16.0.9"}
    assert made["status"]["capacity"]["memory"] == "256Gi"


def test_labels_cannot_forge_the_topology() -> None:
    spec = parse("""
regions:
  - name: r
    zones:
      - {name: z, nodes: 1, labels: {topology.kubernetes.io/zone: other, kubernetes.io/arch: arm64}}
""")[0]
    labels = nodes.manifest(spec, address="172.16.0.1", now=NOW)["metadata"]["labels"]
    assert labels["topology.kubernetes.io/zone"] == "z"
    assert labels["kubernetes.io/arch"] == "arm64"


def test_addresses_are_consecutive_and_follow_those_in_use() -> None:
    document = {"regions": [{"name": "r", "zones": [{"name": "z", "nodes": 300}]}]}
    specs = topology.parse(document, source="file.yaml")
    addresses = [item["status"]["addresses"][0]["address"] for item in nodes.manifests(specs, offset=10, now=NOW)]
    assert addresses[0] == "172.16.0.11"
    assert addresses[299] == "172.16.1.54"
    assert len(set(addresses)) == 300
