"""What the API server would fill in when an object is created: the fields that placement reads, and only those.

Sources: the defaults of corev1 (``SetDefaults_Pod``: requests from limits, host ports of host network pods, KEP-2837
for pod-level requests) and the admission plugins that are on by default (Priority, DefaultTolerationSeconds,
DefaultStorageClass). LimitRanges, RuntimeClass overhead and webhooks are not applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from berth.kube.objects import Container, Namespace, PersistentVolumeClaim, Pod, ResourceRequirements, Toleration
from berth.kube.priorities import SYSTEM_PRIORITIES, PriorityClass

DEFAULT_SCHEDULER = "default-scheduler"
TOLERATION_SECONDS = 300
NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"
"""Label of every namespace."""
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def default_pod(pod: Pod, priorities: Mapping[str, PriorityClass]) -> str | None:
    """Fill in a pod that comes from a manifest, in place.

    Args:
        pod: the pod.
        priorities: PriorityClasses by name.

    Returns:
        What is wrong with its priorityClassName, None when nothing is.
    """
    spec = pod.spec
    spec.scheduler_name = spec.scheduler_name or DEFAULT_SCHEDULER
    for container in (*spec.containers, *spec.init_containers):
        container.resources = _requests_from_limits(container.resources)
        if spec.host_network:
            for port in container.ports:
                port.host_port = port.host_port or port.container_port
    if spec.resources is not None:
        spec.resources = _pod_level(spec.resources, spec.containers)
    _add_tolerations(pod)
    return _set_priority(pod, priorities)


def _requests_from_limits(resources: ResourceRequirements) -> ResourceRequirements:
    if not resources.limits:
        return resources
    return ResourceRequirements(
        requests={**resources.limits, **resources.requests}, limits=resources.limits, claims=resources.claims
    )


def _pod_level(resources: ResourceRequirements, containers: Iterable[Container]) -> ResourceRequirements:
    """A pod-level limit is the request too, unless containers request that resource themselves."""
    stated = {name for container in containers for name in container.resources.requests}
    missing = {name: amount for name, amount in resources.limits.items() if name not in stated}
    return ResourceRequirements(
        requests={**missing, **resources.requests}, limits=resources.limits, claims=resources.claims
    )


def _add_tolerations(pod: Pod) -> None:
    for key in _LOST:
        if not any(item.key in (key, "") and item.effect in ("NoExecute", "") for item in pod.spec.tolerations):
            pod.spec.tolerations = [
                *pod.spec.tolerations,
                Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=TOLERATION_SECONDS),
            ]


def _set_priority(pod: Pod, priorities: Mapping[str, PriorityClass]) -> str | None:
    name = pod.spec.priority_class_name
    if not name:
        default = max((item for item in priorities.values() if item.global_default), key=_value, default=None)
        if default is not None:
            pod.spec.priority = default.value
        return None
    found = priorities.get(name)
    if found is not None:
        pod.spec.priority = found.value
    elif name in SYSTEM_PRIORITIES:
        pod.spec.priority = SYSTEM_PRIORITIES[name]
    else:
        known = ", ".join(sorted({*priorities, *SYSTEM_PRIORITIES}))
        return f"there is no PriorityClass {name!r}; add its manifest or use one of {known}"
    return None


def _value(item: PriorityClass) -> int:
    return item.value


def default_namespace(namespace: Namespace) -> None:
    """Give a namespace the label with its name, in place."""
    meta = namespace.metadata
    meta.labels = {**meta.labels, NAME_OF_NAMESPACE: meta.name}


def default_claim(claim: PersistentVolumeClaim, default_class: str | None) -> None:
    """Give a claim that names no class the cluster's default one, in place."""
    if claim.spec.storage_class_name is None and not claim.spec.volume_name and default_class is not None:
        claim.spec.storage_class_name = default_class
