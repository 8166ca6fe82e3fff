"""Builders: nodes, pods and volumes in a line each, with the defaults a test does not care about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from berth.kube.objects import (
    Container,
    ContainerPort,
    Namespace,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Taint,
    Toleration,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Quantities = dict[str, Any]


def node(
    name: str,
    *,
    cpu: str | int = "4",
    memory: str | int = "16Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    unschedulable: bool = False,
    extra: Mapping[str, str | int] | None = None,
    **resources: str | int,
) -> Node:
    """A node; ``taints`` are ``key=value:Effect``; further resources are keyword arguments or ``extra``."""
    allocatable: Quantities = {"cpu": cpu, "memory": memory, "pods": pods, **_resources(resources), **(extra or {})}
    return Node(
        metadata=ObjectMeta(name=name, uid=f"node-{name}", labels={"kubernetes.io/hostname": name, **(labels or {})}),
        spec=NodeSpec(unschedulable=unschedulable, taints=[taint(text) for text in taints]),
        status=NodeStatus(capacity=dict(allocatable), allocatable=allocatable),
    )


def taint(text: str) -> Taint:
    """``key=value:Effect`` or ``key:Effect`` as a taint."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return Taint(key=key, value=value, effect=effect)


def toleration(key: str = "", operator: str = "", value: str = "", effect: str = "") -> Toleration:
    """A toleration."""
    return Toleration(key=key, operator=operator, value=value, effect=effect)


def container(
    name: str = "main", *, host_ports: Sequence[int | tuple[str, str, int]] = (), sidecar: bool = False, **requests: Any
) -> Container:
    """A container with these requests; host ports are numbers or (address, protocol, number)."""
    ports = [(("", "TCP", port) if isinstance(port, int) else port) for port in host_ports]
    return Container(
        name=name,
        resources=ResourceRequirements(requests=_resources(requests)),
        ports=[ContainerPort(container_port=n, host_port=n, host_ip=ip, protocol=proto) for ip, proto, n in ports],
        restart_policy="Always" if sidecar else None,
    )


def pod(
    name: str,
    *,
    namespace: str = "default",
    on: str = "",
    labels: Mapping[str, str] | None = None,
    phase: str = "",
    deleting: bool = False,
    containers: Sequence[Container] | None = None,
    spec: Mapping[str, Any] | None = None,
    host_ports: Sequence[int | tuple[str, str, int]] = (),
    **requests: Any,
) -> Pod:
    """A pod, bound when ``on`` names a node.

    Keyword arguments that are left are its only container's requests; ``spec`` holds further
    fields of the PodSpec by their API names, e.g. ``{"nodeSelector": {"disk": "ssd"}}``.
    """
    body = msgspec.convert(spec or {}, PodSpec)
    body.node_name = on
    body.containers = list(containers) if containers is not None else [container(host_ports=host_ports, **requests)]
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"pod-{namespace}-{name}",
            labels=dict(labels or {}),
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        ),
        spec=body,
        status=PodStatus(phase=phase or ("Running" if on else "Pending")),
    )


def namespace(name: str, **labels: str) -> Namespace:
    """A namespace with these labels and the one that the API server adds."""
    return Namespace(metadata=ObjectMeta(name=name, labels={"kubernetes.io/metadata.name": name, **labels}))


def required_affinity(*expressions: tuple[str, str, Sequence[str]]) -> dict[str, Any]:
    """A pod spec's ``affinity`` with one required node selector term."""
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [requirement(*e) for e in expressions]}]
            }
        }
    }


def requirement(key: str, operator: str, values: Sequence[str] = ()) -> dict[str, Any]:
    """A label or node selector requirement."""
    return {"key": key, "operator": operator, "values": list(values)}


def pod_term(topology_key: str, labels: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    """A pod affinity term that selects by labels; ``fields`` are further fields by their API names."""
    term: dict[str, Any] = {"topologyKey": topology_key, **fields}
    if labels is not None:
        term["labelSelector"] = {"matchLabels": dict(labels)}
    return term


def spread(topology_key: str, labels: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    """A topologySpreadConstraint, hard with maxSkew 1 unless ``fields`` say otherwise."""
    constraint: dict[str, Any] = {
        "topologyKey": topology_key,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        **fields,
    }
    if labels is not None:
        constraint["labelSelector"] = {"matchLabels": dict(labels)}
    return constraint


def _resources(amounts: Mapping[str, Any]) -> Quantities:
    """Keyword names as resource names: ``ephemeral_storage``, and ``example_com__gpu`` for example.com/gpu."""
    return {_resource_name(name): amount for name, amount in amounts.items()}


def _resource_name(name: str) -> str:
    domain, separator, rest = name.partition("__")
    return f"{domain.replace('_', '.')}/{rest}" if separator else name.replace("_", "-")
