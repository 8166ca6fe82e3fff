"""The workload that a pod is of."""

from __future__ import annotations

import pytest

from berth.kube.objects import OwnerReference
from berth.kube.owners import owner_of
from tests.support import builders


@pytest.mark.parametrize(
    ("kind", "name", "labels", "owner"),
    [
        pytest.param("ReplicaSet", "web-7d4", {"pod-template-hash": "7d4"}, "default/Deployment/web", id="Deployment"),
        pytest.param("ReplicaSet", "web-7d4", {}, "default/ReplicaSet/web-7d4", id="ReplicaSet alone"),
        pytest.param("ReplicaSet", "web", {"pod-template-hash": "7d4"}, "default/ReplicaSet/web", id="another name"),
        pytest.param("StatefulSet", "db", {}, "default/StatefulSet/db", id="StatefulSet"),
        pytest.param("Job", "batch", {}, "default/Job/batch", id="Job"),
    ],
)
def test_the_workload_of_a_pod(kind: str, name: str, labels: dict[str, str], owner: str) -> None:
    pod = builders.pod("p", labels=labels)
    pod.metadata.owner_references = [
        OwnerReference(kind="Other", name="x"),
        OwnerReference(kind=kind, name=name, uid="u", controller=True),
    ]
    assert owner_of(pod) == owner


def test_a_pod_that_nobody_controls_is_of_no_workload() -> None:
    assert owner_of(builders.pod("p")) == ""
