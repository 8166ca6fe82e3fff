"""What the socketstatus controller reacts to. Every handler only says which SocketStatuses are due."""

from __future__ import annotations

from typing import Any, Final

import kopf
import structlog

from berth.kube.objects import CustomObject
from berth.kube.resources import SOCKET_STATUSES
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.workload_profiles import WorkloadProfiles
from controllers.socketstatus.pods import NodePods, SocketPod

log = structlog.get_logger(__name__)

CHANGE_DELAY: Final = 1.0
"""Seconds for which changes of a SocketStatus are gathered."""
POD_DELAY: Final = 5.0
"""Seconds for which changes of a node's pods are gathered; placement assigns and takes out its own meanwhile."""
PROFILE_DELAY: Final = 30.0
"""Seconds for which changes of WorkloadProfiles are gathered: each is followed by a look at all nodes of a workload."""


class Handlers:
    """All handlers of the controller."""

    def __init__(
        self,
        queue: WorkQueue[str],
        versions: SeenVersions[str],
        *,
        pods: NodePods,
        profiles: WorkloadProfiles,
    ) -> None:
        """Prepare.

        Args:
            queue: gets the names of nodes.
            versions: says of which SocketStatuses there is news.
            pods: pods of nodes.
            profiles: what is known of workloads.
        """
        self._queue = queue
        self._versions = versions
        self._pods = pods
        self._profiles = profiles

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Register what kopf calls."""

        @kopf.on.event(*SOCKET_STATUSES.names, registry=registry)
        def status_changed(name: str, meta: kopf.Meta, **_: Any) -> None:
            """A SocketStatus was listed, created, changed or deleted."""
            self._versions.note(name, meta["resourceVersion"])

    def listed(self) -> None:
        """All SocketStatuses were listed anew; some of those known may have gone unseen."""
        self._versions.clear()
        self._queue.add_known()

    def pod_changed(self, old: SocketPod | None, new: SocketPod | None) -> None:
        """A pod came to a node, changed or went; nodes without SocketStatus do not matter."""
        for node in self._pods.update(old, new):
            if node in self._queue.known:
                self._queue.add(node, delay=POD_DELAY)

    def profile_changed(self, old: CustomObject | None, new: CustomObject | None) -> None:
        """A WorkloadProfile came, changed or went: pods of some workloads may count as others."""
        workloads: frozenset[str] = frozenset()
        if new is not None:
            problem, workloads = self._profiles.update(new)
            if problem is not None:
                name = f"{new.metadata.namespace}/{new.metadata.name}"
                log.warning("workload profile ignored", object=name, problem=problem)
        elif old is not None:
            workloads = self._profiles.delete(old)
        for node in self._pods.nodes_of(workloads) & self._queue.known:
            self._queue.add(node, delay=PROFILE_DELAY)
