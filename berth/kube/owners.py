"""The workload that a pod is of, by the controllers that own it."""

from __future__ import annotations

from typing import Final

from berth.kube.objects import Pod

_TEMPLATE_HASH: Final = "pod-template-hash"


def owner_key(namespace: str, kind: str, name: str) -> str:
    """Return how a workload is named here; ``/`` is in none of the three."""
    return f"{namespace}/{kind}/{name}"


def owner_of(pod: Pod) -> str:
    """Return the workload that a pod is of, as `owner_key` names it; empty for a pod that nobody controls.

    The ReplicaSet of a Deployment has the Deployment's name with the hash of the pod template behind it.
    """
    if not pod.metadata.owner_references:
        return ""
    owner = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    if owner is None:
        return ""
    kind, name, namespace = owner.kind, owner.name, pod.metadata.namespace
    revision = pod.metadata.labels.get(_TEMPLATE_HASH)
    if kind == "ReplicaSet" and revision and name.endswith(f"-{revision}"):
        return owner_key(namespace, "Deployment", name.removesuffix(f"-{revision}"))
    return owner_key(namespace, kind, name)
