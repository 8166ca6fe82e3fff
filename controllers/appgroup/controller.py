"""The appgroup controller: its parts, and how they start."""

from __future__ import annotations

from typing import ClassVar, Final

from berth.api.labels import LABEL_APPGROUP
from berth.kube.reflector import Reflector
from berth.kube.resources import APP_GROUPS
from berth.network.groups import GroupKey
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.settings import ComponentSettings
from berth.runtime.workqueue import WorkQueue
from controllers.appgroup import metrics
from controllers.appgroup.handlers import Handlers
from controllers.appgroup.large_statuses import LargeStatuses
from controllers.appgroup.pods import GROUP_PODS, GroupPod, GroupPods
from controllers.appgroup.reconciler import Reconciler

WORKERS: Final = 8
"""AppGroups worked on at once."""


class AppGroupController:
    """Orders AppGroups and reports on their pods."""

    Settings: ClassVar[type[ComponentSettings]] = ComponentSettings

    def __init__(self, context: ComponentContext, _settings: ComponentSettings) -> None:
        """Prepare without I/O."""
        self._context = context
        self._queue: WorkQueue[GroupKey] = WorkQueue(lambda key: key.namespace)
        pods = GroupPods()
        versions: SeenVersions[GroupKey] = SeenVersions(self._news)
        self._large = LargeStatuses(elsewhere=self._queue.add)
        self._reconciler = Reconciler(
            client=context.client, recorder=context.recorder, pods=pods, versions=versions, large=self._large
        )
        self._handlers = Handlers(self._queue, pods=pods, versions=versions)
        self._reflector: Reflector[GroupPod] = Reflector(context.client, GROUP_PODS, label_selector=LABEL_APPGROUP)
        self._reflector.add_handler(self._handlers.pod_changed)
        context.watch("pods of appgroups", self._reflector)
        metrics.QUEUE_DEPTH.set_function(lambda: len(self._queue) + len(self._large))
        metrics.APP_GROUPS.set_function(lambda: len(self._queue.known))
        metrics.PODS.set_function(lambda: len(pods))

    async def run(self) -> None:
        """Work until cancelled."""
        context = self._context
        await run_together(
            self._reflector.run(),
            context.operator.follow(context, APP_GROUPS, self._handlers.register, listed=self._handlers.listed),
            self._work(),
        )

    def _news(self, key: GroupKey) -> None:
        """An AppGroup was changed by somebody else; its spec may be new, so it is due at once."""
        self._reconciler.seen(key)
        self._queue.add(key)

    async def _work(self) -> None:
        # A status computed before the first list of pods would report none of them as running.
        await self._reflector.synced.wait()
        await run_together(
            self._queue.run(self._reconciler.reconcile, workers=WORKERS),
            self._large.run(self._reconciler.reconcile_large),
        )
