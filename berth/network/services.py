"""Which Service callers of a workload use, and how it routes their calls.

What a Service says and what kube-proxy makes of it (Kubernetes 1.36; the EndpointSlice controller gives hints, the
kube-proxy of each node follows them):

* headless (``clusterIP: None``): not proxied. DNS names every endpoint, and clients call them all.
* ``internalTrafficPolicy: Local``: endpoints of the caller's node or none. It comes before trafficDistribution.
* ``trafficDistribution: PreferSameNode``, ``PreferSameZone`` and its old name ``PreferClose``: see
  `berth.network.routing`.
* the annotation ``service.kubernetes.io/topology-mode: Auto``, or its older name: hints by the zones' shares of
  processors in place of trafficDistribution. They come and go as zones grow and shrink: not counted on.
* ExternalName, or without a selector: has no pods of its own. It says nothing about a workload.

Members of a StatefulSet are not alike: each is called by its own name, so all of them are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from berth.kube.objects import Service
from berth.network.routing import Routing

_DISTRIBUTIONS: Mapping[str, Routing] = {
    "PreferClose": Routing.SAME_ZONE,
    "PreferSameZone": Routing.SAME_ZONE,
    "PreferSameNode": Routing.SAME_NODE,
}
_TOPOLOGY_MODE = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")
"""Annotations that replace trafficDistribution; where both are there, the first counts."""
_HEADLESS = "None"


def selecting(services: Iterable[Service], pods: Iterable[Iterable[tuple[str, str]]]) -> Iterator[Service]:
    """Services that have any of these pods of their namespace as an endpoint.

    Pods are given by their labels. A Service is looked at once for all of them: a tenant may have thousands of both.
    """
    having: dict[tuple[str, str], int] = {}  # pods by label, one bit each
    for number, labels in enumerate(pods):
        for label in labels:
            having[label] = having.get(label, 0) | 1 << number
    for service in services:
        spec = service.spec
        if not spec.selector or spec.type == "ExternalName":
            continue
        selected = -1
        for label in spec.selector.items():
            selected &= having.get(label, 0)
            if not selected:
                break
        if selected:
            yield service


def headless(service: Service) -> bool:
    """Whether clients call the endpoints themselves; an address that is yet to be given is not headless."""
    return service.spec.cluster_ip == _HEADLESS


def routing_of(service: Service) -> Routing:
    """How the Service routes calls; a word that this version of Kubernetes does not know is as good as none."""
    spec = service.spec
    if headless(service):
        return Routing.ALL
    if spec.internal_traffic_policy == "Local":
        return Routing.LOCAL
    annotations = service.metadata.annotations
    if next((annotations[name] for name in _TOPOLOGY_MODE if name in annotations), "") in ("Auto", "auto"):
        return Routing.ALL
    return _DISTRIBUTIONS.get(spec.traffic_distribution or "", Routing.ALL)


def service_for(services: Iterable[Service], workload: str) -> Service | None:
    """Return the Service that callers of a workload are taken to use, of those that select its pods; None without any.

    Nothing says which one they use. One with an address comes before a headless one, which a StatefulSet's members use
    among themselves; then the one named like the workload, since clients know it by name; then the first by name
    (``cart`` before ``cart-metrics``).
    """
    return min(
        services,
        key=lambda service: (headless(service), service.metadata.name != workload, service.metadata.name),
        default=None,
    )
