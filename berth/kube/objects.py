"""Kubernetes objects, cut down to the fields that Berth reads.

Watch streams and lists are decoded straight into these msgspec structs: fields that are not
listed here never become Python objects, which keeps 30,000 cached pods at some tens of
megabytes. ``gc=False`` is safe because none of them can be part of a reference cycle.

Every class mirrors the Kubernetes type of the same name; see the Kubernetes API reference for
the meaning of each field. Absent lists and maps decode as empty ones, and with `berth.kube.decoding` null ones too.
"""

from __future__ import annotations

from typing import Any

import msgspec

from berth.kube.custom_object import CustomObject as CustomObject
from berth.kube.meta import MOST_ENTRIES, Amount, Int64, Struct
from berth.kube.meta import LabelSelector as LabelSelector
from berth.kube.meta import LabelSelectorRequirement as LabelSelectorRequirement
from berth.kube.meta import NodeSelector as NodeSelector
from berth.kube.meta import NodeSelectorTerm as NodeSelectorTerm
from berth.kube.meta import ObjectMeta as ObjectMeta
from berth.kube.meta import OwnerReference as OwnerReference
from berth.kube.meta import ResourceClaim as ResourceClaim
from berth.kube.meta import ResourceRequirements as ResourceRequirements
from berth.kube.storage import ClaimReference as ClaimReference
from berth.kube.storage import CSIDriver as CSIDriver
from berth.kube.storage import CSIDriverSpec as CSIDriverSpec
from berth.kube.storage import CSINode as CSINode
from berth.kube.storage import CSINodeDriver as CSINodeDriver
from berth.kube.storage import CSINodeDriverAllocatable as CSINodeDriverAllocatable
from berth.kube.storage import CSINodeSpec as CSINodeSpec
from berth.kube.storage import CSIPersistentVolumeSource as CSIPersistentVolumeSource
from berth.kube.storage import CSIStorageCapacity as CSIStorageCapacity
from berth.kube.storage import PersistentVolume as PersistentVolume
from berth.kube.storage import PersistentVolumeClaim as PersistentVolumeClaim
from berth.kube.storage import PersistentVolumeClaimSpec as PersistentVolumeClaimSpec
from berth.kube.storage import PersistentVolumeClaimStatus as PersistentVolumeClaimStatus
from berth.kube.storage import PersistentVolumeSpec as PersistentVolumeSpec
from berth.kube.storage import PersistentVolumeStatus as PersistentVolumeStatus
from berth.kube.storage import StorageClass as StorageClass
from berth.kube.storage import TopologySelectorLabelRequirement as TopologySelectorLabelRequirement
from berth.kube.storage import TopologySelectorTerm as TopologySelectorTerm
from berth.kube.storage import VolumeAttachment as VolumeAttachment
from berth.kube.storage import VolumeAttachmentSource as VolumeAttachmentSource
from berth.kube.storage import VolumeAttachmentSpec as VolumeAttachmentSpec
from berth.kube.storage import VolumeNodeAffinity as VolumeNodeAffinity


class PreferredSchedulingTerm(Struct):
    """corev1.PreferredSchedulingTerm."""

    weight: Int64 = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(Struct):
    """corev1.NodeAffinity."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Struct):
    """corev1.PodAffinityTerm."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Struct):
    """corev1.WeightedPodAffinityTerm."""

    weight: Int64 = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(Struct):
    """corev1.PodAffinity and corev1.PodAntiAffinity."""

    required: list[PodAffinityTerm] = msgspec.field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct):
    """corev1.Affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Struct):
    """corev1.Toleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class Taint(Struct):
    """corev1.Taint."""

    key: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(Struct):
    """corev1.TopologySpreadConstraint."""

    max_skew: Int64 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Int64 | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = []


class ContainerPort(Struct):
    """corev1.ContainerPort."""

    container_port: Int64 = 0
    host_port: Int64 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerRestartRule(Struct):
    """corev1.ContainerRestartRule (only the action matters to placement)."""

    action: str = ""


class Container(Struct):
    """corev1.Container."""

    name: str = ""
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    ports: list[ContainerPort] = []
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = []


class PersistentVolumeClaimVolumeSource(Struct):
    """corev1.PersistentVolumeClaimVolumeSource."""

    claim_name: str = ""


class EphemeralVolumeSource(Struct):
    """corev1.EphemeralVolumeSource; the claim's name follows from pod and volume."""


class GCEPersistentDiskVolumeSource(Struct):
    """corev1.GCEPersistentDiskVolumeSource."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Struct):
    """corev1.AWSElasticBlockStoreVolumeSource."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class ISCSIVolumeSource(Struct):
    """corev1.ISCSIVolumeSource."""

    iqn: str = ""
    read_only: bool = False


class RBDVolumeSource(Struct):
    """corev1.RBDVolumeSource."""

    monitors: list[str] = []
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class Volume(Struct):
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


class PodSchedulingGate(Struct):
    """corev1.PodSchedulingGate."""

    name: str = ""


class PodResourceClaim(Struct):
    """corev1.PodResourceClaim (dynamic resource allocation)."""

    name: str = ""


class PodSpec(Struct):
    """corev1.PodSpec: what placement depends on."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: Int64 = 0
    priority_class_name: str = ""
    host_network: bool = False
    host_users: bool | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: dict[str, Amount] = {}
    resources: ResourceRequirements | None = None
    volumes: list[Volume] = []
    scheduling_gates: list[PodSchedulingGate] = []
    resource_claims: list[PodResourceClaim] = []
    scheduling_group: dict[str, Any] | None = None
    omitted_entries: Int64 = 0
    """no field of Kubernetes: how many entries of lists and maps a pod had that is kept without them"""


class PodCondition(Struct):
    """corev1.PodCondition and corev1.NodeCondition, and those of a ReplicaSet."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerStatus(Struct):
    """corev1.ContainerStatus: what a resize in place changes."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Amount] = {}


class PodStatus(Struct):
    """corev1.PodStatus."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Amount] = {}


class Pod(Struct):
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

    @property
    def ready(self) -> bool:
        """Whether its condition says that it serves."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)


class NodeSpec(Struct):
    """corev1.NodeSpec."""

    unschedulable: bool = False
    taints: list[Taint] = []
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeStatus(Struct):
    """corev1.NodeStatus."""

    capacity: dict[str, Amount] = {}
    allocatable: dict[str, Amount] = {}
    conditions: list[PodCondition] = []
    declared_features: list[str] = []


class Node(Struct):
    """corev1.Node."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class Namespace(Struct):
    """corev1.Namespace: its labels decide namespaceSelectors."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class ConfigMap(Struct):
    """corev1.ConfigMap."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    data: dict[str, str] = {}


TOPOLOGY_MODE = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")
"""Annotations of a Service that replace trafficDistribution; where both are there, the first counts."""


class ServiceSpec(Struct):
    """corev1.ServiceSpec: which pods are its endpoints, and which of them a caller reaches."""

    type: str = "ClusterIP"
    cluster_ip: str | None = msgspec.field(default="", name="clusterIP")
    selector: dict[str, str] = {}
    traffic_distribution: str | None = None
    internal_traffic_policy: str | None = None


class Service(Struct):
    """corev1.Service."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)

    def __post_init__(self) -> None:
        """Let go of what is too much; no pod that is placed has the labels of a selector that is."""
        self.metadata = self.metadata.bounded()
        if known := self.metadata.annotations:  # one may have 256 KiB
            self.metadata.annotations = {name: known[name] for name in TOPOLOGY_MODE if name in known}
        if len(self.spec.selector) > MOST_ENTRIES:
            self.spec.selector = {}


class ReplicaSetSpec(Struct):
    """appsv1.ReplicaSetSpec: how many pods it is to have."""

    replicas: Int64 = 1


class ReplicaSetStatus(Struct):
    """appsv1.ReplicaSetStatus."""

    conditions: list[PodCondition] = []


class ReplicaSet(Struct):
    """appsv1.ReplicaSet."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = msgspec.field(default_factory=ReplicaSetStatus)
