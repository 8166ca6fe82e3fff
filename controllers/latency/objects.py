"""What the controller reads of Deployments, autoscalers, pods, Services and nodes, and nothing more."""

from __future__ import annotations

from typing import Final

import msgspec

from berth.api.labels import ANNOTATION_HARD_MAX_LATENCY, ANNOTATION_SOFT_MAX_LATENCY
from berth.kube.meta import Int64, ObjectMeta, Struct
from berth.kube.objects import Node, NodeSpec, NodeStatus, Pod, PodCondition, PodStatus
from berth.kube.resources import Resource
from berth.scheduling.cache.large_pods import BoundedPod

_MOST_ADDRESSES: Final = 2
_MOST_EXTERNAL: Final = 100
_REFUSED: Final = "ReplicaFailure"
_OF_TEMPLATES: Final = (ANNOTATION_HARD_MAX_LATENCY, ANNOTATION_SOFT_MAX_LATENCY)


class PodTemplateSpec(Struct):
    """corev1.PodSpec of a template: who places the pods."""

    scheduler_name: str = ""


class PodTemplateMeta(Struct):
    """metav1.ObjectMeta of a template: what its annotations say."""

    annotations: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Let go of annotations that nobody looks at: anybody may make templates with thousands of them."""
        known = self.annotations
        self.annotations = {name: known[name] for name in _OF_TEMPLATES if name in known}


class PodTemplate(Struct):
    """corev1.PodTemplateSpec."""

    metadata: PodTemplateMeta = msgspec.field(default_factory=PodTemplateMeta)
    spec: PodTemplateSpec = msgspec.field(default_factory=PodTemplateSpec)


class DeploymentSpec(Struct):
    """appsv1.DeploymentSpec: how many pods, from when on one counts, and their template."""

    replicas: Int64 = 1
    min_ready_seconds: Int64 = 0
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class DeploymentStatus(Struct):
    """appsv1.DeploymentStatus: whether its pods may be created."""

    conditions: list[PodCondition] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        """Let go of what nobody looks at."""
        self.conditions = [each for each in self.conditions if each.type == _REFUSED and each.status == "True"]


class Deployment(Struct):
    """appsv1.Deployment."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)

    def __post_init__(self) -> None:
        """Let go of labels and annotations that are too many."""
        self.metadata = self.metadata.bounded()

    @property
    def refused(self) -> str:
        """Why the API server refuses further pods, in its words, as by a ResourceQuota; empty: it does not."""
        return next((each.message or each.reason or _REFUSED for each in self.status.conditions), "")


class ScaleTarget(Struct):
    """autoscalingv2.CrossVersionObjectReference."""

    kind: str = ""
    name: str = ""


class AutoscalerSpec(Struct):
    """autoscalingv2.HorizontalPodAutoscalerSpec: what is scaled."""

    scale_target_ref: ScaleTarget = msgspec.field(default_factory=ScaleTarget)


class Autoscaler(Struct):
    """autoscalingv2.HorizontalPodAutoscaler."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: AutoscalerSpec = msgspec.field(default_factory=AutoscalerSpec)

    def __post_init__(self) -> None:
        """Let go of labels and annotations that are too many."""
        self.metadata = self.metadata.bounded()


class PodAddress(Struct):
    """corev1.PodIP."""

    ip: str = ""


class AddressedPodStatus(PodStatus):
    """corev1.PodStatus, with its addresses."""

    pod_ips: list[PodAddress] = msgspec.field(default_factory=list, name="podIPs")


class AddressedPod(BoundedPod):
    """A pod as it is followed, with its addresses: networks of a node do not tell those that a CNI gives by itself."""

    status: AddressedPodStatus = msgspec.field(default_factory=AddressedPodStatus)
    addresses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Keep the addresses, in little, of a pod that is too large as well; one has two, of either kind."""
        self.addresses = tuple(each.ip for each in self.status.pod_ips[:_MOST_ADDRESSES])
        self.status.pod_ips = []
        BoundedPod.__post_init__(self)


class ServiceAddresses(Struct):
    """corev1.ServiceSpec: where it is reached."""

    cluster_ips: list[str] = msgspec.field(default_factory=list, name="clusterIPs")
    external_ips: list[str] = msgspec.field(default_factory=list, name="externalIPs")


class LoadBalancerIngress(Struct):
    """corev1.LoadBalancerIngress; without an address it has a name."""

    ip: str = ""


class LoadBalancerStatus(Struct):
    """corev1.LoadBalancerStatus."""

    ingress: list[LoadBalancerIngress] = msgspec.field(default_factory=list)


class ServiceStatus(Struct):
    """corev1.ServiceStatus: where its load balancer is reached, which nodes answer themselves with some."""

    load_balancer: LoadBalancerStatus = msgspec.field(default_factory=LoadBalancerStatus)


class AddressedService(Struct):
    """corev1.Service, with its addresses."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ServiceAddresses = msgspec.field(default_factory=ServiceAddresses)
    status: ServiceStatus = msgspec.field(default_factory=ServiceStatus)

    def __post_init__(self) -> None:
        """Let go of what nobody looks at, and of labels and annotations that are too many."""
        self.metadata = self.metadata.bounded()
        self.spec.external_ips = self.spec.external_ips[:_MOST_EXTERNAL]
        self.status.load_balancer.ingress = self.status.load_balancer.ingress[:_MOST_EXTERNAL]

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its addresses; one without any states ``None``, which is no address."""
        balanced = (each.ip for each in self.status.load_balancer.ingress if each.ip)
        return *self.spec.cluster_ips, *self.spec.external_ips, *balanced


class NodeAddress(Struct):
    """corev1.NodeAddress."""

    address: str = ""


class NetworkNodeSpec(NodeSpec):
    """corev1.NodeSpec, with the networks of its pods."""

    pod_cidrs: list[str] = msgspec.field(default_factory=list, name="podCIDRs")


class NetworkNodeStatus(NodeStatus):
    """corev1.NodeStatus, with its addresses."""

    addresses: list[NodeAddress] = msgspec.field(default_factory=list)


class NetworkNode(Node):
    """corev1.Node, with what says which addresses are the cluster's."""

    spec: NetworkNodeSpec = msgspec.field(default_factory=NetworkNodeSpec)
    status: NetworkNodeStatus = msgspec.field(default_factory=NetworkNodeStatus)

    def networks(self) -> list[str]:
        """Return the networks of its pods, and its addresses."""
        return [*self.spec.pod_cidrs, *(each.address for each in self.status.addresses)]


PODS: Final[Resource[Pod]] = Resource("", "v1", "pods", "Pod", AddressedPod)
SERVICES: Final = Resource("", "v1", "services", "Service", AddressedService)
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", Deployment)
AUTOSCALERS: Final = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", Autoscaler)
NETWORK_NODES: Final = Resource("", "v1", "nodes", "Node", NetworkNode, namespaced=False)


def is_ready(pod: Pod) -> bool:
    """Return whether a pod serves."""
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def addresses_of(pod: Pod | None) -> tuple[str, ...]:
    """Return the addresses of a pod that has any; one that is finished has given them back."""
    return pod.addresses if isinstance(pod, AddressedPod) and not pod.finished else ()
