"""The kinds that Berth reads or writes, with their paths on the API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from berth.kube import objects

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A kind on the API server and the Python type its objects decode to."""

    group: str
    """API group, empty for the core group."""
    version: str
    """API version such as v1."""
    plural: str
    """Plural name as in URLs."""
    kind: str
    """Kind as in manifests."""
    type: type[T]
    """msgspec struct (or dict) that objects decode to."""
    namespaced: bool = True
    """False for kinds that live outside namespaces."""

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def names(self) -> tuple[str, str, str]:
        """Group, version and plural, as kopf's decorators take them."""
        return self.group, self.version, self.plural

    @property
    def raw(self) -> Resource[dict[str, Any]]:
        """The same kind, its objects decoded to dicts with every field."""
        return Resource(self.group, self.version, self.plural, self.kind, dict, self.namespaced)

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of the collection, of one object, or of its subresource.

        Args:
            namespace: only this namespace; ignored for kinds outside namespaces.
            name: the object.
            subresource: part of the object, e.g. ``status``.

        Raises:
            ValueError: an object of a namespaced kind is named without namespace, or a subresource without object.
        """
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name!r} needs a namespace: {self.plural} live in namespaces")
        if subresource and not name:
            raise ValueError(f"subresource {subresource!r} of {self.plural} needs the name of an object")
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{_segment(namespace)}")
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def version_number(resource_version: str) -> int:
    """Return a resourceVersion as a number to compare: versions of one resource grow (KEP-5504); -1 if it is none.

    One of more digits than 64 bits have is none: Python refuses to read thousands of them.
    """
    return int(resource_version) if resource_version.isdecimal() and len(resource_version) <= 20 else -1


def _segment(text: str) -> str:
    """One path segment: a name typed by a person must not lead to another object's path."""
    return quote(text, safe=":") if text not in (".", "..") else text.replace(".", "%2E")


PODS = Resource("", "v1", "pods", "Pod", objects.Pod)
NODES = Resource("", "v1", "nodes", "Node", objects.Node, namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", objects.Namespace, namespaced=False)
SERVICES = Resource("", "v1", "services", "Service", objects.Service)
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap", objects.ConfigMap)
PERSISTENT_VOLUMES = Resource(
    "", "v1", "persistentvolumes", "PersistentVolume", objects.PersistentVolume, namespaced=False
)
PERSISTENT_VOLUME_CLAIMS = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", objects.PersistentVolumeClaim
)
STORAGE_CLASSES = Resource(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", objects.StorageClass, namespaced=False
)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", objects.CSINode, namespaced=False)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", objects.CSIDriver, namespaced=False)
CSI_STORAGE_CAPACITIES = Resource(
    "storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", objects.CSIStorageCapacity
)
VOLUME_ATTACHMENTS = Resource(
    "storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", objects.VolumeAttachment, namespaced=False
)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", objects.ReplicaSet)
LEASES: Resource[dict[str, Any]] = Resource("coordination.k8s.io", "v1", "leases", "Lease", dict)
EVENTS: Resource[dict[str, Any]] = Resource("events.k8s.io", "v1", "events", "Event", dict)
APP_GROUPS = Resource("appgroup.diktyo.x-k8s.io", "v1alpha1", "appgroups", "AppGroup", objects.CustomObject)
NETWORK_TOPOLOGIES = Resource(
    "networktopology.diktyo.x-k8s.io", "v1alpha1", "networktopologies", "NetworkTopology", objects.CustomObject
)
SOCKET_STATUSES = Resource(
    "berth.dev", "v1alpha1", "socketstatuses", "SocketStatus", objects.CustomObject, namespaced=False
)
WORKLOAD_PROFILES = Resource("berth.dev", "v1alpha1", "workloadprofiles", "WorkloadProfile", objects.CustomObject)
LATENCY_POLICIES = Resource("berth.dev", "v1alpha1", "latencypolicies", "LatencyPolicy", objects.CustomObject)
TOKEN_REVIEWS: Resource[dict[str, Any]] = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", dict, namespaced=False
)
SECRETS: Resource[dict[str, Any]] = Resource("", "v1", "secrets", "Secret", dict)
