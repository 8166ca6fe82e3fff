"""The objects that operations create, complete: in one request each, unless their status needs another."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path

from bench.schedperf.operations import CreateNodes, CreatePods
from bench.schedperf.templates import Manifest, objects

HOSTNAME = "kubernetes.io/hostname"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_ROOM = {"pods": "110", "cpu": "4", "memory": "32Gi"}
_REQUESTS = {"cpu": "100m", "memory": "500Mi"}


def nodes(
    operation: CreateNodes, directory: Path, *, number: int, first: int
) -> list[tuple[Manifest, Manifest | None]]:
    """Nodes of an operation, each with its CSINode if it has one.

    Args:
        operation: what to create.
        directory: where paths count from.
        number: of the operation in its workload.
        first: nodes created before, so that names stay unique.
    """
    path = operation.node_template_path
    made = objects(directory / path, count=operation.count) if path else [_node(number)] * operation.count
    return [_prepared(operation, copy.deepcopy(node), index=index, first=first) for index, node in enumerate(made)]


def _prepared(operation: CreateNodes, node: Manifest, *, index: int, first: int) -> tuple[Manifest, Manifest | None]:
    meta = node["metadata"]
    name = meta["name"] = meta.get("name") or f"{meta.pop('generateName')}{first + index:05d}"
    labels = meta.setdefault("labels", {})
    labels[HOSTNAME] = name
    strategy = operation.label_node_prepare_strategy
    if strategy is not None:
        labels[strategy["labelKey"]] = strategy["labelValues"][index % len(strategy["labelValues"])]
    room = operation.node_allocatable_strategy
    if room is None:
        return node, None
    status = node["status"]
    status["allocatable"] = {**status.get("allocatable", status["capacity"]), **room.get("nodeAllocatable", {})}
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": allocatable}
        for driver, allocatable in room.get("csiNodeAllocatable", {}).items()
    ]
    annotations = {MIGRATED: ",".join(room.get("migratedPlugins", ()))}
    csi = {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}
    return node, {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", **csi}


def _node(number: int) -> Manifest:
    status = {"capacity": _ROOM, "allocatable": _ROOM, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"generateName": f"node-{number}-"}, "status": status}


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod with what must exist before it."""

    pod: Manifest
    volume: Manifest | None = None
    """its PersistentVolume, bound to the claim"""
    claim: Manifest | None = None
    """its PersistentVolumeClaim, bound to the volume"""


def pods(
    operation: CreatePods, directory: Path, *, default: str | None, namespace: str, scheduler: str
) -> list[NewPod]:
    """Pods of an operation.

    Args:
        operation: what to create.
        directory: where paths count from.
        default: template of pods that have none of their own.
        namespace: where they are created.
        scheduler: their spec.schedulerName.
    """
    path = operation.pod_template_path or default
    made = objects(directory / path, count=operation.count) if path else [_pod()] * operation.count
    made = [assigned(pod, scheduler) for pod in made]
    claim, volume = operation.persistent_volume_claim_template_path, operation.persistent_volume_template_path
    if claim is None or volume is None:
        return [NewPod(pod) for pod in made]
    claims = objects(directory / claim, count=operation.count)
    volumes = objects(directory / volume, count=operation.count)
    return [
        _with_volume(pod, own_volume, own_claim, index=index, namespace=namespace)
        for index, (pod, own_volume, own_claim) in enumerate(zip(made, volumes, claims, strict=True))
    ]


def assigned(pod: Manifest, scheduler: str) -> Manifest:
    """The pod for a scheduler."""
    return {**pod, "spec": {**pod["spec"], "schedulerName": scheduler}}


def _pod() -> Manifest:
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause",
        "ports": [{"containerPort": 80}],
        "resources": {"limits": _REQUESTS, "requests": _REQUESTS},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-"},
        "spec": {"containers": [container]},
    }


def _with_volume(pod: Manifest, volume: Manifest, claim: Manifest, *, index: int, namespace: str) -> NewPod:
    volume, claim = copy.deepcopy(volume), copy.deepcopy(claim)
    claim_name, volume_name = f"pvc-{index}", f"{namespace}-vol-{index}"
    volume.setdefault("metadata", {})["name"] = volume_name
    if "csi" in volume["spec"]:
        volume["spec"]["csi"]["volumeHandle"] = volume_name
    elif "awsElasticBlockStore" in volume["spec"]:
        volume["spec"]["awsElasticBlockStore"]["volumeID"] = f"vol-{index}"
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespace, "name": claim_name}
    volume["spec"]["claimRef"] = reference
    claim.setdefault("metadata", {})["name"] = claim_name
    claim["spec"]["volumeName"] = volume_name
    mount = {"name": "vol", "persistentVolumeClaim": {"claimName": claim_name}}
    return NewPod({**pod, "spec": {**pod["spec"], "volumes": [mount]}}, volume, claim)
