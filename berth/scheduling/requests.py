"""Effective resource requests of a pod, as kube-scheduler counts them.

The rule is the one of Kubernetes' PodRequests helper (KEP-753 "Sidecar containers", section on
resource calculation; KEP-2837 for pod-level resources; KEP-1287 for resizing in place):

- the containers and the restartable init containers (sidecars) run together: their requests add up;
- while init container *i* runs, the sidecars before it run too: its need is its own request plus
  theirs; the pod's request is at least the greatest of these needs;
- pod-level requests for cpu, memory and hugepages replace the sum over the containers;
- overhead comes on top of everything.

Amounts are integers in scheduler units (see units.py). The pod itself counts as one unit of the
resource ``pods``, which the tables add; it is not part of the result here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from berth.scheduling.units import resource_units

if TYPE_CHECKING:
    from berth.kube.objects import Container, ContainerStatus, Pod, ResourceRequirements

Amounts = dict[str, int]
Quantities = Mapping[str, "str | int | float"]

SCORING_DEFAULTS: Amounts = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What a container that requests none counts as in scores (kube-scheduler's defaults), in milli-cpu and bytes."""


def pod_requests(pod: Pod, *, missing: Mapping[str, int] | None = None) -> Amounts:
    """Requests of a pod that is placed or to be placed.

    ``missing`` gives amounts for resources that a container does not mention at all (an explicit
    zero stays zero); scores pass SCORING_DEFAULTS. For pods with container statuses the greatest
    of desired, actual and allocated amounts counts, so that a resize under way is never
    under-counted. Raises ValueError naming the quantity that cannot be read.
    """
    total = _containers_sum(pod, missing)
    resources = pod.spec.resources
    if resources is not None and resources.requests:
        status = pod.status
        desired = {n: q for n, q in resources.requests.items() if n in ("cpu", "memory") or n.startswith("hugepages-")}
        amounts = _amounts(desired)
        if status.resources is not None:
            infeasible = resize_infeasible(pod)
            amounts = _effective(desired, status.resources, status.allocated_resources, infeasible=infeasible)
        total.update({name: amounts.get(name, 0) for name in desired})
    _add(total, _amounts(pod.spec.overhead))
    return total


def _containers_sum(pod: Pod, missing: Mapping[str, int] | None) -> Amounts:
    spec = pod.spec
    actual = _statuses(pod.status.container_statuses, pod.status.init_container_statuses)
    infeasible = resize_infeasible(pod) if actual else False
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _container_amounts(container, actual.get(container.name), infeasible, missing))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            own = _container_amounts(container, actual.get(container.name), infeasible, missing)
            _add(total, own)
            _add(sidecars, own)
            need = sidecars
        else:
            need = _container_amounts(container, None, infeasible, missing)
            _add(need, sidecars)
        _maximise(peak, need)
    _maximise(total, peak)
    return total


def _statuses(*groups: Iterable[ContainerStatus]) -> dict[str, ContainerStatus]:
    return {status.name: status for group in groups for status in group if status.resources is not None}


def _container_amounts(
    container: Container, status: ContainerStatus | None, infeasible: bool, missing: Mapping[str, int] | None
) -> Amounts:
    requests = container.resources.requests
    if status is None or status.resources is None:
        amounts = _amounts(requests)
    else:
        amounts = _effective(requests, status.resources, status.allocated_resources, infeasible=infeasible)
    if missing:
        for name, amount in missing.items():
            amounts.setdefault(name, amount)
    return amounts


def _effective(
    desired: Quantities, actual: ResourceRequirements, allocated: Quantities, *, infeasible: bool
) -> Amounts:
    """Greatest of desired, actual and allocated; a resize that can never happen is not desired any more."""
    amounts = _amounts(actual.requests)
    _maximise(amounts, _amounts(allocated))
    if not infeasible:
        _maximise(amounts, _amounts(desired))
    return amounts


def resize_infeasible(pod: Pod) -> bool:
    """Whether the kubelet has said that a resize in place can never happen on the node."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _amounts(quantities: Quantities) -> Amounts:
    return {name: resource_units(name, quantity) for name, quantity in quantities.items()}


def _add(total: Amounts, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        total[name] = total.get(name, 0) + amount


def _maximise(total: Amounts, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        if amount > total.get(name, -1):
            total[name] = amount
