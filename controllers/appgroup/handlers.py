"""What the appgroup controller reacts to. Every handler only says which AppGroups are due."""

from __future__ import annotations

from typing import Any, Final

import kopf

from berth.kube.resources import APP_GROUPS
from berth.network.groups import GroupKey
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from controllers.appgroup.pods import GroupPod, GroupPods
from controllers.appgroup.reconciler import Reconciler

POD_DELAY: Final = 0.15
"""Seconds for which pod changes of a group are gathered into one status."""


class Handlers:
    """All handlers of the controller."""

    def __init__(
        self,
        queue: WorkQueue[GroupKey],
        *,
        pods: GroupPods,
        reconciler: Reconciler,
        versions: SeenVersions[GroupKey],
    ) -> None:
        """Prepare; ``queue`` gets the keys, ``versions`` what was seen of each."""
        self._queue = queue
        self._pods = pods
        self._reconciler = reconciler
        self._versions = versions

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Register what kopf calls."""

        @kopf.on.event(*APP_GROUPS.names, registry=registry)
        def appgroup_changed(namespace: str | None, name: str, meta: kopf.Meta, **_: Any) -> None:
            """An AppGroup was listed, created, changed or deleted; its spec may be new, so it is due at once."""
            key = GroupKey(namespace or "", name)
            self._reconciler.seen(key)
            self._versions.note(key, meta["resourceVersion"])
            self._queue.add(key)

    def listed(self) -> None:
        """All AppGroups were listed anew; some of those known may have gone unseen."""
        self._versions.clear()
        self._queue.add_known()

    def pod_changed(self, old: GroupPod | None, new: GroupPod | None) -> None:
        """A pod of an AppGroup was created, changed or deleted; others will be in a moment."""
        for key in self._pods.update(old, new):
            self._queue.add(key, delay=POD_DELAY)
