"""CPUs of a pod: what it requests, and what it is to be able to use. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from berth.kube.objects import Container, ContainerStatus, Pod, ResourceRequirements
from berth.scheduling.requests import pod_requests
from berth.scheduling.units import CPU

MILLI: Final = 1000
"""Thousandths of a CPU in one."""
_MOST: Final = 2**40
"""Thousandths of a CPU, more than any machine has."""

T = TypeVar("T", Container, ContainerStatus)


class PodCpus(NamedTuple):
    """CPUs of a pod, in thousandths."""

    requested: int
    """what its containers request that run together, at the time that they request most"""
    least: int
    """what it is to be able to use: limits where there are some, requests elsewhere"""


def cpus_of(pod: Pod) -> PodCpus:
    """Return the CPUs of a pod as placement counts them; none where they cannot be read: no API server takes these."""
    try:
        requested, limited = _cpus(pod), _cpus(_requesting_limits(pod))
    except ValueError:
        return PodCpus(0, 0)
    return PodCpus(requested, max(requested, limited))


def _cpus(pod: Pod) -> int:
    return min(max(pod_requests(pod).get(CPU, 0), 0), _MOST)


def _requesting_limits(pod: Pod) -> Pod:
    """The same pod, with limits instead of requests of CPUs where there are some."""
    spec, status = pod.spec, pod.status
    return msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(
            spec,
            containers=_each(spec.containers),
            init_containers=_each(spec.init_containers),
            resources=_limits(spec.resources),
        ),
        status=msgspec.structs.replace(
            status,
            container_statuses=_each(status.container_statuses),
            init_container_statuses=_each(status.init_container_statuses),
            resources=_limits(status.resources),
        ),
    )


def _each(items: Sequence[T]) -> list[T]:
    return [msgspec.structs.replace(each, resources=_limits(each.resources)) for each in items]


def _limits(resources: ResourceRequirements | None) -> ResourceRequirements | None:
    if resources is None or CPU not in resources.limits:
        return resources
    return msgspec.structs.replace(resources, requests={**resources.requests, CPU: resources.limits[CPU]})
