"""What the socketstatus controller reacts to. Every handler only says which SocketStatuses are due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import kopf

from berth.kube.objects import CustomObject
from berth.kube.resources import SOCKET_STATUSES
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from controllers.socketstatus.pods import NodePods, SocketPod

CHANGE_DELAY: Final = 1.0
"""Seconds for which changes of a SocketStatus are gathered."""
POD_DELAY: Final = 5.0
"""Seconds for which changes of a node's pods are gathered; placement assigns and takes out its own meanwhile."""
PROFILE_DELAY: Final = 30.0
"""Seconds for which changes of WorkloadProfiles are gathered: each is followed by a look at all nodes."""


class Handlers:
    """All handlers of the controller."""

    def __init__(
        self,
        queue: WorkQueue[str],
        versions: SeenVersions[str],
        *,
        pods: NodePods,
        profile_changed: Callable[[CustomObject | None, CustomObject | None], None],
    ) -> None:
        """Prepare.

        Args:
            queue: gets the names of nodes.
            versions: says of which SocketStatuses there is news.
            pods: pods of nodes.
            profile_changed: takes in a change of a WorkloadProfile.
        """
        self._queue = queue
        self._versions = versions
        self._pods = pods
        self._profile_changed = profile_changed

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
        """A WorkloadProfile came, changed or went: pods of any node may have another class."""
        self._profile_changed(old, new)
        self._queue.add_known(delay=PROFILE_DELAY)
