"""What is kept of Deployments and autoscalers: anybody may store some with thousands of labels and annotations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.api.labels import ANNOTATION_HARD_MAX_LATENCY, ANNOTATION_SOFT_MAX_LATENCY
from berth.kube.meta import MOST_ENTRIES, HasMetadata
from controllers.latency.objects import PODS, AddressedService, Autoscaler, Deployment, addresses_of

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


@pytest.mark.parametrize(
    ("labels", "phase", "addresses"),
    [
        pytest.param({}, "Running", ("10.77.0.5", "fd00::5"), id="of a pod"),
        pytest.param({f"l{at}": "v" for at in range(5000)}, "Running", ("10.77.0.5", "fd00::5"), id="of a large pod"),
        pytest.param({}, "Succeeded", (), id="of one that is finished"),
    ],
)
def test_addresses_of_pods(labels: dict[str, str], phase: str, addresses: tuple[str, ...]) -> None:
    ips = [{"ip": "10.77.0.5"}, {"ip": "fd00::5"}, {"ip": "10.77.0.6"}]
    body = {"metadata": {"name": "p", "labels": labels}, "status": {"phase": phase, "podIPs": ips}}
    assert addresses_of(msgspec.json.decode(msgspec.json.encode(body), type=PODS.type)) == addresses
    assert addresses_of(None) == ()


@pytest.mark.parametrize(
    ("body", "addresses"),
    [
        pytest.param({"spec": {"clusterIPs": ["10.96.0.7", "fd01::7"]}}, ("10.96.0.7", "fd01::7"), id="two kinds"),
        pytest.param({"spec": {"clusterIPs": ["None"]}}, ("None",), id="headless"),
        pytest.param({"spec": {"externalName": "example.com"}}, (), id="a name"),
        pytest.param(
            {"spec": {"clusterIPs": ["10.96.0.7"], "externalIPs": ["198.51.100.1"]}},
            ("10.96.0.7", "198.51.100.1"),
            id="external",
        ),
        pytest.param(
            {
                "spec": {"clusterIPs": ["10.96.0.7"]},
                "status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.2"}, {"hostname": "lb.example"}]}},
            },
            ("10.96.0.7", "198.51.100.2"),
            id="of a load balancer",
        ),
        pytest.param({"spec": {}, "status": {"loadBalancer": {}}}, (), id="a load balancer to come"),
    ],
)
def test_addresses_of_services(body: dict[str, Any], addresses: tuple[str, ...]) -> None:
    assert read(AddressedService, {"metadata": {"name": "s"}} | body).addresses == addresses
