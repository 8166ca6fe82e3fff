"""CPUs of a pod: what it requests, and what it is to be able to use. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final, NamedTuple

from berth.api.quantity import QuantityRangeError, parse_quantity
from berth.kube.objects import Pod, ResourceRequirements

_CPU: Final = "cpu"
_NEVER: Final = "PodResizePending", "Infeasible"
"""What the kubelet says of a resize in place that can never happen on the node."""
_MOST: Final = 2**40
"""Thousandths of a CPU, more than any machine has."""


class PodCpus(NamedTuple):
    """CPUs of a pod, in thousandths."""

    requested: int
    """what its containers request that run together, at the time that they request most"""
    least: int
    """what it is to be able to use: limits where there are some, requests elsewhere"""


def cpus_of(pod: Pod) -> PodCpus:
    """Return the CPUs of a pod; what cannot be read counts as none, for the API server refuses it."""
    requested = least = 0
    whole_pod, had = pod.spec.resources, dict[str, ResourceRequirements]()
    if any((each.type, each.reason) == _NEVER for each in pod.status.conditions):
        # It runs on with what it has, whatever its spec asks for.
        whole_pod, had = whole_pod and (pod.status.resources or whole_pod), _actual(pod)
    for requested_then, least_then in _at_a_time(pod, had):
        requested, least = max(requested, requested_then), max(least, least_then)
    if whole_pod is not None:
        whole = _of(whole_pod)
        requested, least = whole.requested or requested, whole.least or least
    return PodCpus(min(requested, _MOST), min(max(requested, least), _MOST))


def _actual(pod: Pod) -> dict[str, ResourceRequirements]:
    """What containers have, by name."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return {each.name: each.resources for each in statuses if each.resources is not None}


def _at_a_time(pod: Pod, had: Mapping[str, ResourceRequirements]) -> Iterator[PodCpus]:
    """CPUs while each init container runs, beside the sidecars before it, and then: as placement counts requests."""
    sidecars = PodCpus(0, 0)
    for each in pod.spec.init_containers:
        own = _of(had.get(each.name, each.resources))
        together = PodCpus(sidecars.requested + own.requested, sidecars.least + own.least)
        yield together
        if each.restart_policy == "Always":
            sidecars = together
    later = [sidecars, *(_of(had.get(each.name, each.resources)) for each in pod.spec.containers)]
    yield PodCpus(sum(each.requested for each in later), sum(each.least for each in later))


def _of(resources: ResourceRequirements) -> PodCpus:
    limit = _milli(str(resources.limits.get(_CPU, 0)))
    requested = _milli(str(resources.requests[_CPU])) if _CPU in resources.requests else limit
    return PodCpus(requested, max(requested, limit))


@lru_cache(1024)
def _milli(text: str) -> int:
    try:
        amount = parse_quantity(text)
    except QuantityRangeError as error:
        amount = error.nearest
    except ValueError:
        return 0
    return min(_MOST, max(0, ceil(Fraction(amount) * 1000)))
