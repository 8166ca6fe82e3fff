"""The socketstatus controller: its parts, and how they start."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import ClassVar, Final

from berth.kube.objects import CustomObject
from berth.kube.reflector import Reflector
from berth.kube.resources import SOCKET_STATUSES, WORKLOAD_PROFILES
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.settings import ComponentSettings
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.sockets import SocketTable
from berth.scheduling.interference.exchange import Terms
from controllers.socketstatus.handlers import CHANGE_DELAY, Handlers
from controllers.socketstatus.pods import SOCKET_PODS, NodePods, SocketPod
from controllers.socketstatus.reconciler import Reconciler
from controllers.socketstatus.settings import SocketStatusSettings

WORKERS: Final = 4
"""SocketStatuses that are worked on at the same time."""


class SocketStatusController:
    """Keeps the assignments of SocketStatuses right as pods come and go."""

    Settings: ClassVar[type[ComponentSettings]] = SocketStatusSettings

    def __init__(self, context: ComponentContext, settings: SocketStatusSettings) -> None:
        """Prepare without I/O."""
        self._context = context
        table = SocketTable()
        self._queue: WorkQueue[str] = WorkQueue(lambda node: node)
        versions: SeenVersions[str] = SeenVersions(partial(self._queue.add, delay=CHANGE_DELAY))
        pods = NodePods(table, settings.class_label)
        self._handlers = Handlers(self._queue, versions, pods=pods, profiles=table.profiles)
        self._pods: Reflector[SocketPod] = Reflector(context.client, SOCKET_PODS, field_selector="spec.nodeName!=")
        self._profiles: Reflector[CustomObject] = Reflector(context.client, WORKLOAD_PROFILES)
        self._pods.add_handler(self._handlers.pod_changed)
        self._profiles.add_handler(self._handlers.profile_changed)
        context.watch("pods", self._pods)
        self._reconciler = Reconciler(
            client=context.client,
            recorder=context.recorder,
            profiles=table.profiles,
            pods=pods,
            queue=self._queue,
            versions=versions,
            terms=Terms(settings.price, timedelta(seconds=settings.cool_down)),
            class_label=settings.class_label,
            assign_all=settings.assign_all,
            profiles_known=self._profiles.synced.is_set,
        )

    async def run(self) -> None:
        """Work until cancelled."""
        context, handlers = self._context, self._handlers
        await run_together(
            self._pods.run(),
            self._profiles.run(),
            context.operator.follow(context, SOCKET_STATUSES, handlers.register, listed=handlers.listed),
            self._work(),
        )

    async def _work(self) -> None:
        # A pod that is not known yet is not gone, and a class that is not known yet is not none.
        await self._pods.synced.wait()
        await self._profiles.tried.wait()
        await self._queue.run(self._reconciler.reconcile, workers=WORKERS)
