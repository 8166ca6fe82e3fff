"""Builders of storage objects, in a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from berth.kube.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from berth.scheduling.cache import ClusterState
    from berth.scheduling.cache.volumes import StorageObject

WAIT, NOW = "wait", "now"


def storage_class(
    name: str = WAIT, *, provisioner: str = "csi.test", zones: Sequence[str] | None = None
) -> StorageClass:
    """A class; ``now`` binds at once, all others wait for their consumer."""
    terms = [] if zones is None else [{"matchLabelExpressions": [{"key": "zone", "values": list(zones)}]}]
    raw = {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "Immediate" if name == NOW else "WaitForFirstConsumer",
        "allowedTopologies": terms,
    }
    return msgspec.convert(raw, StorageClass)


def volume(
    name: str,
    size: str = "1Gi",
    *,
    zone: str = "",
    for_claim: str = "",
    labels: Mapping[str, str] | None = None,
    driver: str = "csi.test",
    **fields: Any,
) -> PersistentVolume:
    """An available volume, reachable in one zone if named; ``for_claim`` reserves it, ``fields`` go into its spec."""
    spec: dict[str, Any] = {
        "storageClassName": WAIT,
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": driver, "volumeHandle": name},
        **fields,
    }
    if zone:
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if for_claim:
        spec["claimRef"] = {"namespace": "default", "name": for_claim}
    metadata = {"name": name, "labels": dict(labels or {})}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Available"}}, PersistentVolume)


def claim(
    name: str, size: str = "1Gi", *, bound_to: str = "", selected: str = "", **fields: Any
) -> PersistentVolumeClaim:
    """A claim of the class ``wait``; ``bound_to`` binds it completely, ``selected`` annotates a node."""
    annotations = {}
    if bound_to:
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
    if selected:
        annotations["volume.kubernetes.io/selected-node"] = selected
    spec = {
        "storageClassName": WAIT,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "volumeName": bound_to,
        **fields,
    }
    metadata = {"name": name, "namespace": "default", "uid": f"claim-{name}", "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": spec}, PersistentVolumeClaim)


def using(*claims: str) -> dict[str, Any]:
    """A pod spec that uses these claims."""
    return {"volumes": [{"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}} for name in claims]}


def csi_node(name: str, *, driver: str = "csi.test", limit: int | None = None) -> CSINode:
    """A CSINode with one driver and perhaps a limit."""
    found: dict[str, Any] = {"name": driver}
    if limit is not None:
        found["allocatable"] = {"count": limit}
    return msgspec.convert({"metadata": {"name": name}, "spec": {"drivers": [found]}}, CSINode)


def attachment(volume_name: str, node_name: str, *, driver: str = "csi.test") -> VolumeAttachment:
    """A VolumeAttachment."""
    spec = {"attacher": driver, "nodeName": node_name, "source": {"persistentVolumeName": volume_name}}
    return msgspec.convert({"metadata": {"name": f"{volume_name}-{node_name}"}, "spec": spec}, VolumeAttachment)


def tracked_driver() -> CSIDriver:
    """A CSIDriver whose storage capacity is tracked."""
    return msgspec.convert({"metadata": {"name": "csi.test"}, "spec": {"storageCapacity": True}}, CSIDriver)


def capacity(zone: str, size: str, **fields: Any) -> CSIStorageCapacity:
    """What the class ``wait`` has left in a zone."""
    raw = {
        "metadata": {"name": f"cap-{zone}", "namespace": "default"},
        "storageClassName": WAIT,
        "nodeTopology": {"matchLabels": {"zone": zone}},
        "capacity": size,
        **fields,
    }
    return msgspec.convert(raw, CSIStorageCapacity)


def store(state: ClusterState, *objects: StorageObject) -> ClusterState:
    """Hand storage objects to a state, and return it."""
    for item in objects:
        state.volumes.update(item)
    return state
