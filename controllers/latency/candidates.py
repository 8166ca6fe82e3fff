"""Which nodes would take one more pod of a workload: those that the scheduler's own filters admit. No I/O.

The scheduling library is asked about a pod like those that are there, without a node. It sees nodes, pods, namespaces
and volumes; what AppGroups ask for, and sockets, is judged by the placement controller alone.
"""

from __future__ import annotations

from typing import Final

import msgspec

from berth.kube import resources as kinds
from berth.kube.objects import Namespace, Node, Pod
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.volumes import StorageObject
from berth.scheduling.configuration import Profile
from berth.scheduling.framework.framework import Framework
from berth.scheduling.gang.infrastructure import InfrastructureView
from berth.scheduling.plugins import PLUGINS
from berth.scheduling.single import cycle_of

STORAGE: Final = (
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.STORAGE_CLASSES,
    kinds.CSI_NODES,
    kinds.CSI_DRIVERS,
    kinds.CSI_STORAGE_CAPACITIES,
    kinds.VOLUME_ATTACHMENTS,
)
"""Kinds that decide where volumes can be reached."""
_NAME: Final = "one-more"


class Candidates:
    """Follows what nodes have room for."""

    def __init__(self, cache: Cache) -> None:
        """Begin with what the cache has, which is this one's own."""
        self._cache = cache
        self._profile = Profile()
        self._framework = Framework(plugin.of(self._profile) for plugin in PLUGINS)
        self._view = InfrastructureView(cache.state, self._profile)

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """A node came, changed or went."""
        if new is not None:
            self._cache.update_node(new)
        elif old is not None:
            self._cache.delete_node(old)

    def namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        """A namespace came, changed or went; affinity goes by their labels."""
        if new is not None:
            self._cache.update_namespace(new)
        elif old is not None:
            self._cache.delete_namespace(old)

    def storage_changed(self, old: StorageObject | None, new: StorageObject | None) -> None:
        """An object that decides where volumes are came, changed or went."""
        if new is not None:
            self._cache.update_storage(new)
        elif old is not None:
            self._cache.delete_storage(old)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """A pod came, changed or went."""
        if new is not None:
            self._cache.update_pod(new)
        elif old is not None:
            self._cache.delete_pod(old)

    def like(self, pod: Pod) -> tuple[str, ...]:
        """Return the nodes that would take one more pod like that, the best by the scheduler's scores first."""
        one_more = msgspec.structs.replace(
            pod,
            metadata=msgspec.structs.replace(pod.metadata, name=_NAME, uid=_NAME, deletion_timestamp=None),
            spec=msgspec.structs.replace(pod.spec, node_name=""),
        )
        costs = self._cache.costs_for(pod.metadata.namespace, self._profile)
        infrastructure = self._view.current(costs, self._cache.bandwidth())
        cycle = cycle_of(one_more, None, self._cache, infrastructure, limits_known=False)
        feasible = self._framework.filter(cycle).mask
        scores = self._framework.score(cycle, feasible).total
        slots = sorted(feasible.nonzero()[0].tolist(), key=lambda slot: (-scores[slot], slot))
        return tuple(cycle.cluster.node_name(slot) for slot in slots)
