"""Persistent volumes, claims, storage classes and CSI objects, and what a pod uses of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeAlias

from berth.kube.meta import object_key
from berth.kube.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from berth.kube.storage import BIND_COMPLETED as BIND_COMPLETED
from berth.kube.storage import CLASS_ANNOTATION as CLASS_ANNOTATION
from berth.kube.storage import SELECTED_NODE as SELECTED_NODE
from berth.scheduling.units import whole_units

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from berth.kube.objects import Pod, Volume

StorageObject: TypeAlias = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)

NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT = "WaitForFirstConsumer"
MOST_TOUCHED = 4096
"""Claims and nodes that have changed which are told apart; beyond that, everything has."""

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


class Touched:
    """Which of the CSI volumes that pods use, or that are attached to nodes, may be others than before."""

    def __init__(self) -> None:
        """Begin with none."""
        self.claims: set[str] = set()
        """keys of claims that may have another volume"""
        self.nodes: set[str] = set()
        """names of nodes that may have other attachments, or limits"""
        self.everything = False
        """whether anything may have changed"""

    def note(self, before: StorageObject | None, now: StorageObject | None, attached: Mapping[str, list[str]]) -> None:
        """A storage object is another than before; `attached` are the nodes that each volume is attached to."""
        item = now or before
        if isinstance(item, PersistentVolumeClaim):
            self.claims.add(object_key(item.metadata))
        elif isinstance(item, CSINode):
            self.nodes.add(item.metadata.name)
        elif isinstance(item, VolumeAttachment):
            self.nodes.update(each.spec.node_name for each in (before, now) if isinstance(each, VolumeAttachment))
        elif isinstance(item, StorageClass):
            self.everything |= not (
                isinstance(before, StorageClass)
                and isinstance(now, StorageClass)
                and before.provisioner == now.provisioner
            )
        elif isinstance(item, PersistentVolume):
            self._note_volume(before, now, attached.get(item.metadata.name, ()))
        if len(self.claims) + len(self.nodes) > MOST_TOUCHED:
            self.everything = True
            self.claims.clear()
            self.nodes.clear()

    def _note_volume(self, before: StorageObject | None, now: StorageObject | None, attached: Iterable[str]) -> None:
        known = [each for each in (before, now) if isinstance(each, PersistentVolume)]
        if len(known) == 2 and known[0].spec.csi == known[1].spec.csi:
            return
        self.nodes.update(attached)
        for each in known:
            if each.spec.claim_ref is not None:
                self.claims.add(f"{each.spec.claim_ref.namespace}/{each.spec.claim_ref.name}")
            elif each.spec.csi is not None:
                self.everything = True  # some claim may name it

    def forget(self) -> None:
        """All of it is known."""
        self.claims.clear()
        self.nodes.clear()
        self.everything = False


class VolumeTable:
    """Storage objects by name, and what is assumed about them."""

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
        self.volumes_version = 0
        """Grows with every change of a PersistentVolume."""
        self.touched = Touched()
        """What has changed that limits of nodes count."""
        self._attachments: dict[str, VolumeAttachment] = {}
        self._tables: dict[type, dict[str, Any]] = {
            PersistentVolume: self.volumes,
            PersistentVolumeClaim: self.claims,
            StorageClass: self.classes,
            CSINode: self.csi_nodes,
            CSIDriver: self.drivers,
            CSIStorageCapacity: self.capacities,
            VolumeAttachment: self._attachments,
        }
        self._attached_to: defaultdict[str, dict[str, VolumeAttachment]] = defaultdict(dict)
        self._nodes_of: dict[str, list[str]] = {}
        """nodes that volumes are attached to, by the volume's name"""
        self._reserved: dict[str, str] = {}
        self._selected: dict[str, str] = {}

    def update(self, item: StorageObject) -> None:
        """Record a storage object of any kind; a write of ours that it shows is no longer an assumption."""
        key = object_key(item.metadata)
        table = self._tables[type(item)]
        self.touched.note(table.get(key), item, self._nodes_of)
        if isinstance(item, VolumeAttachment):
            self._detach(key)
            self._attached_to[item.spec.node_name][key] = item
            self._nodes_of.setdefault(item.spec.source.persistent_volume_name or "", []).append(item.spec.node_name)
        elif isinstance(item, PersistentVolume):
            if item.spec.claim_ref is not None:
                self._reserved.pop(key, None)
        elif isinstance(item, PersistentVolumeClaim) and (
            SELECTED_NODE in item.metadata.annotations or fully_bound(item)
        ):
            self._selected.pop(key, None)
        table[key] = item
        self._changed(item)

    def delete(self, item: StorageObject) -> None:
        """Remove a storage object and what was assumed about it."""
        key = object_key(item.metadata)
        self.touched.note(self._tables[type(item)].get(key), None, self._nodes_of)
        if isinstance(item, VolumeAttachment):
            self._detach(key)
        elif isinstance(item, PersistentVolume):
            self._reserved.pop(key, None)
        elif isinstance(item, PersistentVolumeClaim):
            self.forget([key])
        self._tables[type(item)].pop(key, None)
        self._changed(item)

    def _changed(self, item: StorageObject) -> None:
        self.version += 1
        self.volumes_version += isinstance(item, PersistentVolume)

    def _detach(self, key: str) -> None:
        known = self._attachments.get(key)
        if known is not None:
            there = self._attached_to[known.spec.node_name]
            del there[key]
            if not there:
                del self._attached_to[known.spec.node_name]
            nodes = self._nodes_of[volume := known.spec.source.persistent_volume_name or ""]
            nodes.remove(known.spec.node_name)
            if not nodes:
                del self._nodes_of[volume]

    def attachments(self, node_name: str) -> Iterable[VolumeAttachment]:
        """VolumeAttachments of a node."""
        return self._attached_to.get(node_name, {}).values()

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
        keys = set(claims)
        for key in keys:
            self._selected.pop(key, None)
        for volume in [volume for volume, owner in self._reserved.items() if owner in keys]:
            del self._reserved[volume]
        self.version += 1

    @property
    def reserved(self) -> Mapping[str, str]:
        """Volume name to key of the claim that it is assumed to be bound to."""
        return self._reserved

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
