"""Kubernetes objects, cut down to the fields that Berth reads.

Watch streams and lists are decoded straight into these msgspec structs: fields that are not
listed here never become Python objects, which keeps 30,000 cached pods at some tens of
megabytes. ``gc=False`` is safe because none of them can be part of a reference cycle.

Every class mirrors the Kubernetes type of the same name; see the Kubernetes API reference for
the meaning of each field. Absent lists and maps decode as empty ones.
"""

from __future__ import annotations

from typing import Any

import msgspec

EMPTY_MAP: dict[str, str] = {}


class _Struct(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """Base of all partial objects: camelCase on the wire, absent means default."""


class OwnerReference(_Struct):
    """metav1.OwnerReference."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(_Struct):
    """metav1.ObjectMeta."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []


class LabelSelectorRequirement(_Struct):
    """metav1.LabelSelectorRequirement and corev1.NodeSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(_Struct):
    """metav1.LabelSelector."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class NodeSelectorTerm(_Struct):
    """corev1.NodeSelectorTerm."""

    match_expressions: list[LabelSelectorRequirement] = []
    match_fields: list[LabelSelectorRequirement] = []


class NodeSelector(_Struct):
    """corev1.NodeSelector; the terms are alternatives."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(_Struct):
    """corev1.PreferredSchedulingTerm."""

    weight: int = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(_Struct):
    """corev1.NodeAffinity."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(_Struct):
    """corev1.PodAffinityTerm."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(_Struct):
    """corev1.WeightedPodAffinityTerm."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(_Struct):
    """corev1.PodAffinity and corev1.PodAntiAffinity."""

    required: list[PodAffinityTerm] = msgspec.field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(_Struct):
    """corev1.Affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(_Struct):
    """corev1.Toleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Taint(_Struct):
    """corev1.Taint."""

    key: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(_Struct):
    """corev1.TopologySpreadConstraint."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = []


class ContainerPort(_Struct):
    """corev1.ContainerPort."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ResourceClaim(_Struct):
    """corev1.ResourceClaim (dynamic resource allocation)."""

    name: str = ""


class ResourceRequirements(_Struct):
    """corev1.ResourceRequirements; quantities stay text."""

    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}
    claims: list[ResourceClaim] = []


class ContainerRestartRule(_Struct):
    """corev1.ContainerRestartRule (only the action matters to placement)."""

    action: str = ""


class Container(_Struct):
    """corev1.Container."""

    name: str = ""
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    ports: list[ContainerPort] = []
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = []


class PersistentVolumeClaimVolumeSource(_Struct):
    """corev1.PersistentVolumeClaimVolumeSource."""

    claim_name: str = ""


class EphemeralVolumeSource(_Struct):
    """corev1.EphemeralVolumeSource; the claim's name follows from pod and volume."""


class GCEPersistentDiskVolumeSource(_Struct):
    """corev1.GCEPersistentDiskVolumeSource."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(_Struct):
    """corev1.AWSElasticBlockStoreVolumeSource."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class ISCSIVolumeSource(_Struct):
    """corev1.ISCSIVolumeSource."""

    iqn: str = ""
    read_only: bool = False


class RBDVolumeSource(_Struct):
    """corev1.RBDVolumeSource."""

    monitors: list[str] = []
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class Volume(_Struct):
    """corev1.Volume."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = msgspec.field(
        default=None, name="awsElasticBlockStore"
    )
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None


class PodSchedulingGate(_Struct):
    """corev1.PodSchedulingGate."""

    name: str = ""


class PodResourceClaim(_Struct):
    """corev1.PodResourceClaim (dynamic resource allocation)."""

    name: str = ""


class PodSpec(_Struct):
    """corev1.PodSpec: what placement depends on."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    host_network: bool = False
    host_users: bool | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: dict[str, str | int | float] = {}
    resources: ResourceRequirements | None = None
    volumes: list[Volume] = []
    scheduling_gates: list[PodSchedulingGate] = []
    resource_claims: list[PodResourceClaim] = []
    scheduling_group: dict[str, Any] | None = None


class PodCondition(_Struct):
    """corev1.PodCondition and corev1.NodeCondition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerStatus(_Struct):
    """corev1.ContainerStatus: what a resize in place changes."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str | int | float] = {}


class PodStatus(_Struct):
    """corev1.PodStatus."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str | int | float] = {}


class Pod(_Struct):
    """corev1.Pod."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def finished(self) -> bool:
        """True once the pod has ended and holds no resources any more."""
        return self.status.phase in ("Succeeded", "Failed")


class NodeSpec(_Struct):
    """corev1.NodeSpec."""

    unschedulable: bool = False
    taints: list[Taint] = []
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeStatus(_Struct):
    """corev1.NodeStatus."""

    capacity: dict[str, str | int | float] = {}
    allocatable: dict[str, str | int | float] = {}
    conditions: list[PodCondition] = []
    declared_features: list[str] = []


class Node(_Struct):
    """corev1.Node."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class Namespace(_Struct):
    """corev1.Namespace: its labels decide namespaceSelectors."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class ConfigMap(_Struct):
    """corev1.ConfigMap."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    data: dict[str, str] = {}


class VolumeNodeAffinity(_Struct):
    """corev1.VolumeNodeAffinity."""

    required: NodeSelector | None = None


class ClaimReference(_Struct):
    """corev1.ObjectReference of a volume's claim."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIPersistentVolumeSource(_Struct):
    """corev1.CSIPersistentVolumeSource."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(_Struct):
    """corev1.PersistentVolumeSpec."""

    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    capacity: dict[str, str | int | float] = {}
    access_modes: list[str] = []
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    claim_ref: ClaimReference | None = None
    csi: CSIPersistentVolumeSource | None = None


class PersistentVolumeStatus(_Struct):
    """corev1.PersistentVolumeStatus."""

    phase: str = ""


class PersistentVolume(_Struct):
    """corev1.PersistentVolume."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = msgspec.field(default_factory=PersistentVolumeStatus)


class PersistentVolumeClaimSpec(_Struct):
    """corev1.PersistentVolumeClaimSpec."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: list[str] = []
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)


class PersistentVolumeClaimStatus(_Struct):
    """corev1.PersistentVolumeClaimStatus."""

    phase: str = ""


class PersistentVolumeClaim(_Struct):
    """corev1.PersistentVolumeClaim."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = msgspec.field(default_factory=PersistentVolumeClaimStatus)


class TopologySelectorLabelRequirement(_Struct):
    """corev1.TopologySelectorLabelRequirement."""

    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(_Struct):
    """corev1.TopologySelectorTerm."""

    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(_Struct):
    """storagev1.StorageClass."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologySelectorTerm] = []


class CSINodeDriverAllocatable(_Struct):
    """storagev1.VolumeNodeResources."""

    count: int | None = None


class CSINodeDriver(_Struct):
    """storagev1.CSINodeDriver."""

    name: str = ""
    allocatable: CSINodeDriverAllocatable | None = None


class CSINodeSpec(_Struct):
    """storagev1.CSINodeSpec."""

    drivers: list[CSINodeDriver] = []


class CSINode(_Struct):
    """storagev1.CSINode."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class CustomObject(_Struct):
    """An object of one of Berth's kinds before validation: `berth.api` models are made from `document`."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}

    def document(self, *, api_version: str, kind: str) -> dict[str, Any]:
        """The object as the API server would show it, for pydantic models."""
        return {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": msgspec.to_builtins(self.metadata),
            "spec": self.spec,
            "status": self.status,
        }


class VolumeAttachmentSource(_Struct):
    """storagev1.VolumeAttachmentSource."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(_Struct):
    """storagev1.VolumeAttachmentSpec."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = msgspec.field(default_factory=VolumeAttachmentSource)


class VolumeAttachment(_Struct):
    """storagev1.VolumeAttachment."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)


class CSIDriverSpec(_Struct):
    """storagev1.CSIDriverSpec."""

    storage_capacity: bool = False


class CSIDriver(_Struct):
    """storagev1.CSIDriver."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(_Struct):
    """storagev1.CSIStorageCapacity."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None
