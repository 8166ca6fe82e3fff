"""Kubernetes metadata, selectors and resources: what objects of many kinds have in common; see `berth.kube.objects`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Protocol

import msgspec

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number as Kubernetes has them: a larger one can be written in a manifest, and is refused with its field."""
Amount = str | Int64 | float
"""resource.Quantity as it stands: text, or a number that nobody put in quotes."""


MOST_ENTRIES: Final = 2048
"""Entries of lists and maps of one object that are kept: it may have a hundred thousand, and each takes 150 bytes."""


class Named(Protocol):
    """What has a name, in a namespace or outside of any."""

    name: str
    namespace: str


def object_key(metadata: Named) -> str:
    """``namespace/name``, or the name alone outside namespaces."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


class Struct(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """Base of all partial objects: camelCase on the wire, absent means default."""


class OwnerReference(Struct):
    """metav1.OwnerReference."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Struct):
    """metav1.ObjectMeta."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []

    def bounded(self) -> ObjectMeta:
        """Itself, or without labels, annotations and owners where these are more than `MOST_ENTRIES`."""
        if len(self.labels) + len(self.annotations) + len(self.owner_references) <= MOST_ENTRIES:
            return self
        return msgspec.structs.replace(self, labels={}, annotations={}, owner_references=[])


class HasMetadata(Protocol):
    """Anything with Kubernetes metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace, uid and resourceVersion at least."""


def name_of(item: Any) -> str:
    """Name of an object, decoded to a struct or to a dict with every field."""
    return str(item["metadata"]["name"] if isinstance(item, dict) else item.metadata.name)


def equal(known: HasMetadata, item: HasMetadata) -> bool:
    """Whether two objects are the same. After an etcd restore their versions may be, and their contents not."""
    try:
        return known == item
    except RecursionError:
        return False


class LabelSelectorRequirement(Struct):
    """metav1.LabelSelectorRequirement and corev1.NodeSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(Struct):
    """metav1.LabelSelector."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class NodeSelectorTerm(Struct):
    """corev1.NodeSelectorTerm."""

    match_expressions: list[LabelSelectorRequirement] = []
    match_fields: list[LabelSelectorRequirement] = []


class NodeSelector(Struct):
    """corev1.NodeSelector; the terms are alternatives."""

    node_selector_terms: list[NodeSelectorTerm] = []


class ResourceClaim(Struct):
    """corev1.ResourceClaim (dynamic resource allocation)."""

    name: str = ""


class ResourceRequirements(Struct):
    """corev1.ResourceRequirements; quantities stay text."""

    requests: dict[str, Amount] = {}
    limits: dict[str, Amount] = {}
    claims: list[ResourceClaim] = []
