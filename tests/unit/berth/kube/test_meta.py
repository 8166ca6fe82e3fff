"""What objects of many kinds have in common."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.custom_object import CustomObject
from berth.kube.decoding import ObjectDecoder
from berth.kube.meta import MOST_ENTRIES, HasMetadata, ObjectMeta, object_key
from berth.kube.objects import PersistentVolumeClaim, Service
from berth.kube.storage import SELECTED_NODE


@pytest.mark.parametrize(
    ("metadata", "key"),
    [(ObjectMeta(name="a", namespace="ns"), "ns/a"), (ObjectMeta(name="node-1"), "node-1")],
    ids=["namespaced", "cluster-scoped"],
)
def test_object_key(metadata: ObjectMeta, key: str) -> None:
    assert object_key(metadata) == key


MANY = {f"k{number}": "x" for number in range(MOST_ENTRIES + 1)}
FEW = {f"k{number}": "x" for number in range(MOST_ENTRIES)}


@pytest.mark.parametrize("kind", [Service, CustomObject], ids=["Service", "AppGroup"])
@pytest.mark.parametrize(
    ("metadata", "kept"),
    [
        pytest.param({"labels": FEW}, True, id="as many as are kept"),
        pytest.param({"labels": MANY}, False, id="labels"),
        pytest.param({"annotations": MANY}, False, id="annotations"),
        pytest.param({"ownerReferences": [{"uid": uid} for uid in MANY]}, False, id="owners"),
        pytest.param({"labels": FEW, "annotations": {"one": "more"}}, False, id="together"),
    ],
)
def test_what_anybody_may_store_is_kept_within_bounds(
    kind: type[HasMetadata], metadata: dict[str, Any], kept: bool
) -> None:
    body = {"metadata": {"name": "web", "namespace": "ns", "uid": "u", "resourceVersion": "7", **metadata}}
    found = ObjectDecoder(kind).decode(msgspec.json.encode(body)).metadata
    assert (found.name, found.namespace, found.uid, found.resource_version) == ("web", "ns", "u", "7")
    assert bool(found.labels or found.annotations or found.owner_references) is kept


@pytest.mark.parametrize(("selector", "kept"), [(FEW, True), (MANY, False)], ids=["as many as a pod has", "more"])
def test_a_service_that_no_pod_has_the_labels_for_selects_none(selector: dict[str, str], kept: bool) -> None:
    body = {"metadata": {"name": "web"}, "spec": {"selector": selector, "trafficDistribution": "PreferSameZone"}}
    found = ObjectDecoder(Service).decode(msgspec.json.encode(body)).spec
    assert (bool(found.selector), found.traffic_distribution) == (kept, "PreferSameZone")


def test_of_a_claim_the_annotations_are_kept_that_placement_reads() -> None:
    body = {"metadata": {"name": "data", "labels": FEW, "annotations": {SELECTED_NODE: "n1", **FEW}}}
    found = ObjectDecoder(PersistentVolumeClaim).decode(msgspec.json.encode(body)).metadata
    assert (found.labels, found.annotations) == ({}, {SELECTED_NODE: "n1"})


def test_of_a_service_the_annotations_are_kept_that_are_read() -> None:
    mode = {"service.kubernetes.io/topology-mode": "Auto", "service.kubernetes.io/topology-aware-hints": "auto"}
    found = msgspec.convert({"metadata": {"name": "s", "annotations": {**mode, "other": "text"}}}, Service)
    assert found.metadata.annotations == mode
