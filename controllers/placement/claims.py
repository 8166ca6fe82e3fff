"""Claims of a pod that is about to be bound: what has to be written, and when it is done. Pure.

As kube-scheduler does it: a claim that waits for its first consumer either gets an available volume, by that
volume's ``spec.claimRef``, or is provisioned for the chosen node, by the annotation
``volume.kubernetes.io/selected-node``. The pod is bound once Kubernetes' volume controller (or the class's
provisioner) has completed the binding of every claim.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from berth.kube.objects import PersistentVolume, PersistentVolumeClaim, Pod
from berth.kube.resources import version_number
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.volume_matching import volume_nodes
from berth.scheduling.cache.volumes import SELECTED_NODE, claim_keys, claimed_by, fully_bound

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation on a volume whose claimRef was set by a program: the volume controller may take it back."""


class VolumeError(Exception):
    """The claims cannot be bound for this node; the text says why."""


@dataclass(frozen=True, slots=True)
class Written:
    """The resourceVersions as of which storage objects have what we wrote into them; older copies mean nothing.

    A later copy without it means that it was taken back. So does any copy, by its version -1 here, once the watch has
    shown it: after an etcd restore versions are given anew.
    """

    claims: dict[str, int] = field(default_factory=dict)
    """by claim (``namespace/name``): annotated with the node, or that was found"""
    volumes: dict[str, int] = field(default_factory=dict)
    """by name of the volume: reserved"""
    reserved: dict[str, str] = field(default_factory=dict)
    """claim by name of the volume that is reserved for it"""

    def note_shown(self, pod: Pod, node: str, state: ClusterState) -> None:
        """Note what the watches have shown by now of a pod's claims, also what another process has written."""
        for key in claim_keys(pod):
            claim = state.volumes.claims.get(key)
            if claim is not None and claim.metadata.annotations.get(SELECTED_NODE) == node:
                self.claims[key] = -1
        for name, key in self.reserved.items():
            volume, claim = state.volumes.volumes.get(name), state.volumes.claims.get(key)
            if volume is not None and claim is not None and claimed_by(volume, claim):
                self.volumes[name] = -1


def unfinished(pod: Pod, node: str, state: ClusterState, *, written: Written) -> str:
    """What the claims of a pod that is to run on `node` still wait for, empty when all have a volume it reaches.

    Args:
        pod: the pod.
        node: name of the chosen node.
        state: what the watches have shown so far.
        written: what we wrote. A claim that has lost the annotation is one that the provisioner gave up.

    Raises:
        VolumeError: they will not be bound for this node.
    """
    slot = state.node_index.get(node)
    if slot is None:
        raise VolumeError(f"node {node} was deleted")
    waiting = ""
    for key in claim_keys(pod):
        claim = state.volumes.claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            raise VolumeError(f"claim {key} was deleted")
        if not fully_bound(claim):
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected is not None and selected != node:
                raise VolumeError(f"claim {key} is being provisioned for node {selected}")
            if selected is None and _later(claim, written.claims.get(key)):
                raise VolumeError(f"the provisioner of claim {key} could not serve node {node}")
            _check_reserved(key, claim, state, written)
            waiting = waiting or f"claim {key} is not bound yet"
            continue
        volume = state.volumes.volumes.get(claim.spec.volume_name)
        if volume is None:
            waiting = waiting or f"volume {claim.spec.volume_name} of claim {key} is not known yet"
        elif not volume_nodes(volume, state)[slot]:
            raise VolumeError(f"claim {key} got volume {volume.metadata.name}, which node {node} cannot reach")
    return waiting


def _check_reserved(key: str, claim: PersistentVolumeClaim, state: ClusterState, written: Written) -> None:
    """Raise VolumeError if a volume that was reserved for an unbound claim is so no more."""
    for name in (name for name, reserved_for in written.reserved.items() if reserved_for == key):
        volume = state.volumes.volumes.get(name)
        if volume is None:
            raise VolumeError(f"volume {name} for claim {key} was deleted")
        if not claimed_by(volume, claim) and _later(volume, written.volumes[name]):
            raise VolumeError(f"volume {name} is not reserved for claim {key} any more")


def _later(item: PersistentVolume | PersistentVolumeClaim, version: int | None) -> bool:
    return version is not None and version_number(item.metadata.resource_version) > version


def selection_patch(claim: PersistentVolumeClaim, node: str) -> dict[str, Any]:
    """Merge patch that has a claim provisioned for a node; it fails with a Conflict if the claim has changed."""
    return {
        "metadata": {
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
            "annotations": {SELECTED_NODE: node},
        }
    }


def reservation_patch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> dict[str, Any] | None:
    """Merge patch that binds a volume to a claim, conditional like the other; None when it is bound to it already."""
    reference = volume.spec.claim_ref
    if reference is not None and reference.uid and claimed_by(volume, claim):
        return None
    metadata: dict[str, Any] = {
        "uid": volume.metadata.uid,
        "resourceVersion": volume.metadata.resource_version,
    }
    if reference is None:
        # Someone who reserved the volume by hand keeps that reservation when the claim goes.
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    return {
        "metadata": metadata,
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.metadata.namespace,
                "name": claim.metadata.name,
                "uid": claim.metadata.uid,
            }
        },
    }
