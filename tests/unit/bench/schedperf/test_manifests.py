"""Objects that operations create: names, strategies for nodes, volumes bound to claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.schedperf import manifests
from bench.schedperf.operations import CreateNodes, CreatePods

NODE = "kind: Node\nmetadata: {generateName: n-}\nstatus: {capacity: {cpu: '4'}}\n"
POD = "kind: Pod\nmetadata: {generateName: p-}\nspec: {containers: []}\n"
CLAIM = "kind: PersistentVolumeClaim\nspec: {accessModes: [ReadOnlyMany]}\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "node.yaml").write_text(NODE)
    (tmp_path / "named.yaml").write_text("kind: Node\nmetadata: {name: one}\nstatus: {capacity: {cpu: '4'}}\n")
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "pvc.yaml").write_text(CLAIM)
    (tmp_path / "csi.yaml").write_text("kind: PersistentVolume\nspec: {csi: {driver: ebs}}\n")
    (tmp_path / "aws.yaml").write_text("kind: PersistentVolume\nspec: {awsElasticBlockStore: {volumeID: x}}\n")
    return tmp_path


def test_nodes_have_names_of_their_own_and_carry_them_as_hostname(directory: Path) -> None:
    operation = CreateNodes(count=2, node_template_path="node.yaml")
    made = [*manifests.nodes(operation, directory, number=0, first=0)]
    made += manifests.nodes(operation, directory, number=1, first=2)
    names = [node["metadata"]["name"] for node, _ in made]
    assert len(set(names)) == 4
    assert [node["metadata"]["labels"][manifests.HOSTNAME] for node, _ in made] == names
    assert all("generateName" not in node["metadata"] for node, _ in made)


def test_a_named_node_keeps_its_name(directory: Path) -> None:
    ((node, _),) = manifests.nodes(CreateNodes(count=1, node_template_path="named.yaml"), directory, number=0, first=9)
    assert node["metadata"]["name"] == "one"


def test_nodes_without_a_template_have_room(directory: Path) -> None:
    ((node, csi),) = manifests.nodes(CreateNodes(count=1), directory, number=3, first=0)
    assert node["metadata"]["name"].startswith("node-3-")
    assert node["status"]["allocatable"] == {"pods": "110", "cpu": "4", "memory": "32Gi"}
    assert csi is None


def test_labels_go_round(directory: Path) -> None:
    strategy = {"labelKey": "zone", "labelValues": ["a", "b"]}
    made = manifests.nodes(
        CreateNodes(count=3, node_template_path="node.yaml", label_node_prepare_strategy=strategy),
        directory,
        number=0,
        first=0,
    )
    assert [node["metadata"]["labels"]["zone"] for node, _ in made] == ["a", "b", "a"]


def test_limits_of_volumes_are_on_the_node_and_on_its_csi_node(directory: Path) -> None:
    strategy = {
        "nodeAllocatable": {"attachable-volumes-csi-ebs": "39"},
        "csiNodeAllocatable": {"ebs": {"count": 39}},
        "migratedPlugins": ["kubernetes.io/aws-ebs"],
    }
    ((node, csi),) = manifests.nodes(
        CreateNodes(count=1, node_template_path="node.yaml", node_allocatable_strategy=strategy),
        directory,
        number=0,
        first=0,
    )
    assert node["status"]["allocatable"] == {"cpu": "4", "attachable-volumes-csi-ebs": "39"}
    assert csi is not None
    name = node["metadata"]["name"]
    assert csi["metadata"] == {"name": name, "annotations": {manifests.MIGRATED: "kubernetes.io/aws-ebs"}}
    assert csi["spec"]["drivers"] == [{"name": "ebs", "nodeID": name, "allocatable": {"count": 39}}]


@pytest.mark.parametrize(
    ("own", "default", "prefix"),
    [("pod.yaml", None, "p-"), (None, "pod.yaml", "p-"), (None, None, "pod-")],
    ids=["own template", "the case's template", "no template"],
)
def test_pods_are_for_the_scheduler(directory: Path, own: str | None, default: str | None, prefix: str) -> None:
    made = manifests.pods(
        CreatePods(count=2, pod_template_path=own), directory, default=default, namespace="a", scheduler="berth"
    )
    assert [new.pod["metadata"]["generateName"] for new in made] == [prefix, prefix]
    assert all(new.pod["spec"]["schedulerName"] == "berth" and new.volume is None and new.claim is None for new in made)


@pytest.mark.parametrize(
    ("volume", "source"),
    [
        ("csi.yaml", {"csi": {"driver": "ebs", "volumeHandle": "a-vol-1"}}),
        ("aws.yaml", {"awsElasticBlockStore": {"volumeID": "vol-1"}}),
    ],
    ids=["csi", "in-tree"],
)
def test_volume_and_claim_are_bound_to_each_other(directory: Path, volume: str, source: dict[str, object]) -> None:
    operation = CreatePods(
        count=2,
        pod_template_path="pod.yaml",
        persistent_volume_template_path=volume,
        persistent_volume_claim_template_path="pvc.yaml",
    )
    _, new = manifests.pods(operation, directory, default=None, namespace="a", scheduler="berth")
    assert new.volume is not None
    assert new.claim is not None
    assert new.claim["metadata"]["name"] == "pvc-1"
    assert new.claim["spec"] == {"accessModes": ["ReadOnlyMany"], "volumeName": new.volume["metadata"]["name"]}
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "a", "name": "pvc-1"}
    assert new.volume["spec"] == {**source, "claimRef": reference}
    assert new.pod["spec"]["volumes"] == [{"name": "vol", "persistentVolumeClaim": {"claimName": "pvc-1"}}]
