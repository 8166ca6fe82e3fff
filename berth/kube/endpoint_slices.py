"""EndpointSlices: where the pods of a Service are, and whether they want requests. Cut down to what is read."""

from __future__ import annotations

from typing import Final

import msgspec

from berth.kube.meta import ObjectMeta, Struct
from berth.kube.resources import Resource

LABEL_SERVICE: Final = "kubernetes.io/service-name"
"""Label of an EndpointSlice: the Service that it belongs to."""


class Conditions(Struct):
    """discovery.v1.EndpointConditions; what is not stated is unknown."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class TargetReference(Struct):
    """corev1.ObjectReference of an endpoint."""

    kind: str = ""
    name: str = ""


class Endpoint(Struct):
    """discovery.v1.Endpoint."""

    addresses: list[str] = msgspec.field(default_factory=list)
    conditions: Conditions = msgspec.field(default_factory=Conditions)
    node_name: str = ""
    zone: str = ""
    target_ref: TargetReference | None = None


class Port(Struct):
    """discovery.v1.EndpointPort."""

    port: int | None = None
    name: str = ""
    protocol: str = "TCP"


class EndpointSlice(Struct):
    """discovery.v1.EndpointSlice."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    address_type: str = ""
    endpoints: list[Endpoint] | None = None
    ports: list[Port] | None = None


ENDPOINT_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", EndpointSlice)
"""The kind."""
