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

from collections.abc import Iterable, Mapping, Sequence

from berth.kube.objects import TOPOLOGY_MODE, Service
from berth.network.routing import Routing

Labels = Iterable[tuple[str, str]]
"""Keys and values of the labels of a pod."""

_DISTRIBUTIONS: Mapping[str, Routing] = {
    "PreferClose": Routing.SAME_ZONE,
    "PreferSameZone": Routing.SAME_ZONE,
    "PreferSameNode": Routing.SAME_NODE,
}
_HEADLESS = "None"


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
    if next((annotations[name] for name in TOPOLOGY_MODE if name in annotations), "") in ("Auto", "auto"):
        return Routing.ALL
    return _DISTRIBUTIONS.get(spec.traffic_distribution or "", Routing.ALL)


class ServiceIndex:
    """Services of one namespace, for the question which of them callers of a workload are taken to use.

    Nothing says which one they use. One with an address comes before a headless one, which a StatefulSet's members use
    among themselves; then the one named like the workload, since clients know it by name; then the first by name
    (``cart`` before ``cart-metrics``).
    """

    def __init__(self, services: Iterable[Service]) -> None:
        """Put them in order; those without pods of their own say nothing and are left out."""
        self._by_name = {
            service.metadata.name: service
            for service in services
            if service.spec.selector and service.spec.type != "ExternalName"
        }
        self.ordered = sorted(self._by_name.values(), key=lambda service: (headless(service), service.metadata.name))
        """the one that is used comes first, where none is named like the workload"""
        self._labels = {label for service in self.ordered for label in service.spec.selector.items()}

    def used(self, workloads: Sequence[tuple[str, Iterable[Labels]]]) -> list[Service | None]:
        """Return for each workload the Service its callers use, of those that have any of its pods as an endpoint.

        Workloads are given by their selector and the labels of their pods; None is for one that no Service selects. A
        Service is looked at once for all of them: a tenant may have thousands of both.
        """
        having: dict[tuple[str, str], int] = {}  # pods of all workloads by label that is asked for, one bit each
        owners: list[int] = []
        masks: list[int] = []
        for position, (_, pods) in enumerate(workloads):
            first = len(owners)
            for labels in pods:
                bit = 1 << len(owners)
                for label in self._labels.intersection(labels):
                    having[label] = having.get(label, 0) | bit
                owners.append(position)
            masks.append((1 << len(owners)) - (1 << first))
        used: list[Service | None] = [None] * len(workloads)
        left = (1 << len(owners)) - 1
        for service in self.ordered:
            if not left:
                break
            selected = _selected(service, having, left)
            while selected:
                position = owners[selected.bit_length() - 1]
                used[position] = service
                left ^= masks[position]
                selected &= left
        for position, (workload, _) in enumerate(workloads):
            named, other = self._by_name.get(workload), used[position]
            if named is None or other is None or headless(named) != headless(other):
                continue
            if _selected(named, having, masks[position]):
                used[position] = named
        return used


def _selected(service: Service, having: Mapping[tuple[str, str], int], pods: int) -> int:
    """Those of these pods that a Service has as endpoints."""
    for label in service.spec.selector.items():
        pods &= having.get(label, 0)
        if not pods:
            break
    return pods
