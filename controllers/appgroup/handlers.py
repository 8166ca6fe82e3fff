"""What the appgroup controller reacts to. Every handler only says which AppGroups are due."""

from __future__ import annotations

from typing import Any, Final

import kopf

from berth.kube.resources import APP_GROUPS
from berth.network.groups import GroupKey
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from controllers.appgroup.pods import GroupPod, GroupPods

POD_DELAY: Final = 0.15
"""Seconds for which pod changes of a group are gathered into one status."""


class Handlers:
    """All handlers of the controller."""

    def __init__(
        self,
        queue: WorkQueue[GroupKey],
        *,
        pods: GroupPods,
        versions: SeenVersions[GroupKey],
    ) -> None:
        """Prepare; ``queue`` gets the keys of pods; ``versions`` says which AppGroups have news."""
        self._queue = queue
        self._pods = pods
        self._versions = versions

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Register what kopf calls."""

        @kopf.on.event(*APP_GROUPS.names, registry=registry)
        def appgroup_changed(namespace: str | None, name: str, meta: kopf.Meta, **_: Any) -> None:
            """An AppGroup was listed, created, changed or deleted."""
            self._versions.note(GroupKey(namespace or "", name), meta["resourceVersion"])

    def listed(self) -> None:
        """All AppGroups were listed anew; some of those known may have gone unseen."""
        self._versions.clear()
        self._queue.add_known()

    def pod_changed(self, old: GroupPod | None, new: GroupPod | None) -> None:
        """A pod of an AppGroup was created, changed or deleted; others will be in a moment."""
        for key in self._pods.update(old, new):
            self._queue.add(key, delay=POD_DELAY)
