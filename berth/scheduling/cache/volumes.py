"""Persistent volumes, claims, storage classes and CSI objects, and what a pod uses of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from berth.scheduling.cache.units import whole_units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berth.kube.objects import (
        CSIDriver,
        CSINode,
        CSIStorageCapacity,
        PersistentVolume,
        PersistentVolumeClaim,
        Pod,
        StorageClass,
        Volume,
        VolumeAttachment,
    )

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation on a claim: provision its volume where this node can reach it."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT = "WaitForFirstConsumer"

DiskUse = tuple[tuple[str, ...], bool]
"""(identity of an in-tree disk, may be shared with other readers); conflicts unless both may."""


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Name of the claim behind a volume: named, or derived for a generic ephemeral volume."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def claims_of(pod: Pod) -> Iterator[tuple[Volume, str]]:
    """(volume, claim name) of the pod's volumes that stand on a claim."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            yield volume, name


def claim_keys(pod: Pod) -> tuple[str, ...]:
    """Distinct ``namespace/name`` of the claims a pod uses."""
    if not pod.spec.volumes:
        return ()
    return tuple(sorted({f"{pod.metadata.namespace}/{name}" for _, name in claims_of(pod)}))


def disk_uses(pod: Pod) -> tuple[DiskUse, ...]:
    """In-tree disks that the pod mounts directly and that kube-scheduler keeps from being shared."""
    uses: list[DiskUse] = []
    for volume in pod.spec.volumes:
        if volume.gce_persistent_disk is not None:
            uses.append((("gce", volume.gce_persistent_disk.pd_name), volume.gce_persistent_disk.read_only))
        if volume.aws_elastic_block_store is not None:
            uses.append((("aws", volume.aws_elastic_block_store.volume_id), False))
        if volume.iscsi is not None:
            uses.append((("iscsi", volume.iscsi.iqn), volume.iscsi.read_only))
        if volume.rbd is not None:
            disk = volume.rbd
            uses.extend((("rbd", monitor, disk.pool, disk.image), disk.read_only) for monitor in disk.monitors)
    return tuple(uses)


def storage_class_of(claim: PersistentVolumeClaim) -> str:
    """Name of a claim's storage class, empty for none; the old annotation wins, as in Kubernetes."""
    annotated = claim.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def storage_request(claim: PersistentVolumeClaim) -> int:
    """Bytes that a claim asks for, 0 when it does not say."""
    return whole_units(claim.spec.resources.requests.get("storage", 0))


def claimed_by(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound, or reserved by its claimRef, to this very claim."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
        and reference.uid in ("", claim.metadata.uid)
    )


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume and the binding is complete."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


class VolumeTable:
    """Storage objects by name."""

    def __init__(self) -> None:
        """Begin without any."""
        self.volumes: dict[str, PersistentVolume] = {}
        """PersistentVolumes by name."""
        self.claims: dict[str, PersistentVolumeClaim] = {}
        """PersistentVolumeClaims by ``namespace/name``."""
        self.classes: dict[str, StorageClass] = {}
        """StorageClasses by name."""
        self.csi_nodes: dict[str, CSINode] = {}
        """CSINodes by node name."""
        self.drivers: dict[str, CSIDriver] = {}
        """CSIDrivers by name."""
        self.capacities: dict[str, CSIStorageCapacity] = {}
        """CSIStorageCapacities by ``namespace/name``."""
        self.version = 0
        """Grows with every change."""
        self._attachments: dict[str, VolumeAttachment] = {}
        self._attached_to: defaultdict[str, set[str]] = defaultdict(set)
        self._reserved: dict[str, str] = {}
        self._selected: dict[str, str] = {}

    def upsert_volume(self, volume: PersistentVolume) -> None:
        """Record a PersistentVolume; one that has a claimRef now needs no reservation any more."""
        self.volumes[volume.metadata.name] = volume
        if volume.spec.claim_ref is not None:
            self._reserved.pop(volume.metadata.name, None)
        self.version += 1

    def remove_volume(self, name: str) -> None:
        """Forget a PersistentVolume."""
        self.volumes.pop(name, None)
        self._reserved.pop(name, None)
        self.version += 1

    def upsert_claim(self, claim: PersistentVolumeClaim) -> None:
        """Record a PersistentVolumeClaim; its own annotation replaces a selected node we assumed."""
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        self.claims[key] = claim
        if SELECTED_NODE in claim.metadata.annotations or fully_bound(claim):
            self._selected.pop(key, None)
        self.version += 1

    def remove_claim(self, key: str) -> None:
        """Forget a claim (``namespace/name``) and what was assumed for it."""
        self.claims.pop(key, None)
        self.forget([key])

    def upsert_class(self, storage_class: StorageClass) -> None:
        """Record a StorageClass."""
        self.classes[storage_class.metadata.name] = storage_class
        self.version += 1

    def remove_class(self, name: str) -> None:
        """Forget a StorageClass."""
        self.classes.pop(name, None)
        self.version += 1

    def upsert_csi_node(self, csi_node: CSINode) -> None:
        """Record a CSINode."""
        self.csi_nodes[csi_node.metadata.name] = csi_node
        self.version += 1

    def remove_csi_node(self, name: str) -> None:
        """Forget a CSINode."""
        self.csi_nodes.pop(name, None)
        self.version += 1

    def upsert_driver(self, driver: CSIDriver) -> None:
        """Record a CSIDriver."""
        self.drivers[driver.metadata.name] = driver
        self.version += 1

    def remove_driver(self, name: str) -> None:
        """Forget a CSIDriver."""
        self.drivers.pop(name, None)
        self.version += 1

    def upsert_capacity(self, capacity: CSIStorageCapacity) -> None:
        """Record a CSIStorageCapacity."""
        self.capacities[f"{capacity.metadata.namespace}/{capacity.metadata.name}"] = capacity
        self.version += 1

    def remove_capacity(self, key: str) -> None:
        """Forget a CSIStorageCapacity (``namespace/name``)."""
        self.capacities.pop(key, None)
        self.version += 1

    def upsert_attachment(self, attachment: VolumeAttachment) -> None:
        """Record a VolumeAttachment."""
        self.remove_attachment(attachment.metadata.name)
        self._attachments[attachment.metadata.name] = attachment
        self._attached_to[attachment.spec.node_name].add(attachment.metadata.name)

    def remove_attachment(self, name: str) -> None:
        """Forget a VolumeAttachment."""
        old = self._attachments.pop(name, None)
        if old is not None:
            names = self._attached_to[old.spec.node_name]
            names.discard(name)
            if not names:
                del self._attached_to[old.spec.node_name]
        self.version += 1

    def attachments(self, node_name: str) -> Iterator[VolumeAttachment]:
        """VolumeAttachments of a node."""
        return (self._attachments[name] for name in self._attached_to.get(node_name, ()))

    def assume(self, *, reserved: dict[str, str], selected: dict[str, str]) -> None:
        """Count on writes that are under way.

        ``reserved``: volume name to claim key; ``selected``: claim key to node name. Each entry
        holds until the object is seen with the write in it, or ``forget`` is called.
        """
        self._reserved.update(reserved)
        self._selected.update(selected)
        self.version += 1

    def forget(self, claims: list[str]) -> None:
        """Drop what was assumed for these claims."""
        for key in claims:
            self._selected.pop(key, None)
            for volume in [volume for volume, owner in self._reserved.items() if owner == key]:
                del self._reserved[volume]
        self.version += 1

    def reserved_for(self, volume_name: str) -> str | None:
        """Key of the claim that a volume is assumed to be bound to."""
        return self._reserved.get(volume_name)

    def selected_node(self, claim: PersistentVolumeClaim) -> str | None:
        """Node that a claim's volume is being provisioned for, written or assumed."""
        written = claim.metadata.annotations.get(SELECTED_NODE)
        if written is not None:
            return written
        return self._selected.get(f"{claim.metadata.namespace}/{claim.metadata.name}")

    def waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim's class delays binding until a pod needs the volume."""
        storage_class = self.classes.get(storage_class_of(claim))
        return storage_class is not None and storage_class.volume_binding_mode == WAIT
