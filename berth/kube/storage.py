"""Volumes, claims and their drivers, as Berth reads them; see `berth.kube.objects`."""

from __future__ import annotations

import msgspec

from berth.kube.meta import Amount, Int64, LabelSelector, NodeSelector, ObjectMeta, ResourceRequirements, Struct

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation on a claim: provision its volume where this node can reach it."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation on a claim: its binding is complete."""
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""Annotation on a claim: its storage class, as it was stated once."""

_OF_CLAIMS = (SELECTED_NODE, BIND_COMPLETED, CLASS_ANNOTATION)


class VolumeNodeAffinity(Struct):
    """corev1.VolumeNodeAffinity."""

    required: NodeSelector | None = None


class ClaimReference(Struct):
    """corev1.ObjectReference of a volume's claim."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIPersistentVolumeSource(Struct):
    """corev1.CSIPersistentVolumeSource."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Struct):
    """corev1.PersistentVolumeSpec."""

    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    capacity: dict[str, Amount] = {}
    access_modes: list[str] = []
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    claim_ref: ClaimReference | None = None
    csi: CSIPersistentVolumeSource | None = None


class PersistentVolumeStatus(Struct):
    """corev1.PersistentVolumeStatus."""

    phase: str = ""


class PersistentVolume(Struct):
    """corev1.PersistentVolume."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = msgspec.field(default_factory=PersistentVolumeStatus)


class PersistentVolumeClaimSpec(Struct):
    """corev1.PersistentVolumeClaimSpec."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: list[str] = []
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)


class PersistentVolumeClaimStatus(Struct):
    """corev1.PersistentVolumeClaimStatus."""

    phase: str = ""


class PersistentVolumeClaim(Struct):
    """corev1.PersistentVolumeClaim."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = msgspec.field(default_factory=PersistentVolumeClaimStatus)

    def __post_init__(self) -> None:
        """Let go of labels and annotations that nobody looks at: anybody may make claims with thousands of them."""
        self.metadata.labels = {}
        known = self.metadata.annotations
        self.metadata.annotations = {name: known[name] for name in _OF_CLAIMS if name in known}


class TopologySelectorLabelRequirement(Struct):
    """corev1.TopologySelectorLabelRequirement."""

    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(Struct):
    """corev1.TopologySelectorTerm."""

    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(Struct):
    """storagev1.StorageClass."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologySelectorTerm] = []


class CSINodeDriverAllocatable(Struct):
    """storagev1.VolumeNodeResources."""

    count: Int64 | None = None


class CSINodeDriver(Struct):
    """storagev1.CSINodeDriver."""

    name: str = ""
    allocatable: CSINodeDriverAllocatable | None = None


class CSINodeSpec(Struct):
    """storagev1.CSINodeSpec."""

    drivers: list[CSINodeDriver] = []


class CSINode(Struct):
    """storagev1.CSINode."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class VolumeAttachmentSource(Struct):
    """storagev1.VolumeAttachmentSource."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct):
    """storagev1.VolumeAttachmentSpec."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = msgspec.field(default_factory=VolumeAttachmentSource)


class VolumeAttachment(Struct):
    """storagev1.VolumeAttachment."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)


class CSIDriverSpec(Struct):
    """storagev1.CSIDriverSpec."""

    storage_capacity: bool = False


class CSIDriver(Struct):
    """storagev1.CSIDriver."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(Struct):
    """storagev1.CSIStorageCapacity."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Amount | None = None
    maximum_volume_size: Amount | None = None
