"""Plans of pods with claims: volumes, classes and StatefulSets from manifests, as the live filters see them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import plans

NODES = [plans.node("n1", zone="a"), plans.node("n2", zone="b")]


def storage_class(
    name: str, *, mode: str = "WaitForFirstConsumer", default: bool = False, **more: Any
) -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode, **more,
    }  # fmt: skip


def local_volume(name: str, node: str, *, storage_class: str = "local") -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
    }  # fmt: skip


def claim_spec(**spec: Any) -> dict[str, Any]:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}


def claim(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": claim_spec(**spec)}


def user(name: str, claim: str) -> dict[str, Any]:
    return plans.pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])


def test_a_pod_follows_its_local_volume() -> None:
    document = plans.made(
        *NODES, storage_class("local"), local_volume("v", "n2"), claim("c", storageClassName="local"), user("p", "c")
    )
    assert plans.where(document) == {"p": "n2"}


def test_a_volume_serves_one_claim_only() -> None:
    claims = [claim(name, storageClassName="local") for name in ("c1", "c2")]
    document = plans.made(
        *NODES, storage_class("local"), local_volume("v", "n2"), *claims, user("p1", "c1"), user("p2", "c2")
    )
    assert len(plans.where(document)) == 1
    [(_, message)] = plans.why(document).values()
    assert "didn't find available persistent volumes to bind" in message


def test_a_stateful_set_spreads_over_its_volumes() -> None:
    template = {"metadata": {"name": "data"}, "spec": claim_spec(storageClassName="local")}
    document = plans.made(
        *NODES,
        storage_class("local"),
        local_volume("v1", "n1"),
        local_volume("v2", "n2"),
        plans.workload("StatefulSet", "db", spec={"replicas": 2, "volumeClaimTemplates": [template]}),
    )
    assert sorted(plans.where(document).values()) == ["n1", "n2"]


def test_a_claim_without_a_class_gets_the_default_one() -> None:
    document = plans.made(
        *NODES, storage_class("local", default=True), local_volume("v", "n2"), claim("c"), user("p", "c")
    )
    assert plans.where(document) == {"p": "n2"}


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([storage_class("now", mode="Immediate"), claim("c", storageClassName="now")], "unbound immediate"),
    ],
    ids=["no claim", "a claim that nobody binds offline"],
)
def test_a_claim_that_is_not_there_or_not_bound_is_said(extra: list[dict[str, Any]], said: str) -> None:
    document = plans.made(*NODES, *extra, user("p", "c"))
    [(_, message)] = plans.why(document).values()
    assert said in message
