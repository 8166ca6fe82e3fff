"""What is kept of Deployments and autoscalers: anybody may store some with thousands of labels and annotations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.api.labels import ANNOTATION_HARD_MAX_LATENCY, ANNOTATION_SOFT_MAX_LATENCY
from berth.kube.meta import MOST_ENTRIES, HasMetadata
from controllers.latency.objects import Autoscaler, Deployment

MANY = {f"k{number}": "x" for number in range(MOST_ENTRIES + 1)}


def read(kind: type[HasMetadata], body: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body), type=kind)


@pytest.mark.parametrize("kind", [Deployment, Autoscaler])
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_labels_and_annotations_that_are_too_many_are_let_go(kind: type[HasMetadata], field: str) -> None:
    metadata = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7"}
    found = read(kind, {"metadata": {**metadata, field: MANY}}).metadata
    assert (found.name, found.namespace, found.uid, found.resource_version) == ("web", "shop", "u", "7")
    assert not found.labels
    assert not found.annotations


@pytest.mark.parametrize(
    ("status", "refused"),
    [
        pytest.param(None, "", id="no status"),
        pytest.param({"conditions": [{"type": "Available", "status": "True", "message": "m"}]}, "", id="others"),
        pytest.param({"conditions": [{"type": "ReplicaFailure", "status": "False", "message": "m"}]}, "", id="no more"),
        pytest.param(
            {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}]},
            "exceeded quota",
            id="by a quota",
        ),
        pytest.param(
            {"conditions": [{"type": "ReplicaFailure", "status": "True"}]}, "ReplicaFailure", id="without a word"
        ),
    ],
)
def test_why_a_workload_gets_no_further_pods(status: dict[str, Any] | None, refused: str) -> None:
    found = read(Deployment, {"metadata": {"name": "web"}} | ({"status": status} if status else {}))
    assert found.refused == refused
    assert [each.message for each in found.status.conditions] in ([], [refused], [""])


def test_of_a_template_the_annotations_are_kept_that_state_limits() -> None:
    limits = {ANNOTATION_HARD_MAX_LATENCY: "70", ANNOTATION_SOFT_MAX_LATENCY: "60"}
    template = {"metadata": {"annotations": {**MANY, **limits}}, "spec": {"schedulerName": "berth-scheduler"}}
    found = read(Deployment, {"metadata": {"name": "web"}, "spec": {"replicas": 2, "template": template}})
    assert found.spec.template.metadata.annotations == limits
    assert (found.spec.replicas, found.spec.template.spec.scheduler_name) == (2, "berth-scheduler")
