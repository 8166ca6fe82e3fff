"""SocketStatuses and WorkloadProfiles as placement follows them: sockets of nodes, and classes of workloads.

Made where a profile asks for sockets. Planning begins once both have been asked for. A cluster without the kinds is one
where no sockets are known.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from berth.kube.client import ApiClient
from berth.kube.objects import CustomObject
from berth.kube.reflector import Handler, Reflector
from berth.kube.resources import SOCKET_STATUSES, WORKLOAD_PROFILES
from berth.runtime.component import run_together
from berth.scheduling.cache.cache import Cache

log = structlog.get_logger(__name__)


class SocketWatches:
    """Keeps the cache's sockets and profiles."""

    def __init__(
        self,
        client: ApiClient,
        cache: Cache,
        *,
        deferring: Callable[[Handler[CustomObject], str], Handler[CustomObject]],
    ) -> None:
        """Prepare; `deferring` keeps a handler from the cache while a plan is made."""
        self._cache = cache
        self.sockets: Reflector[CustomObject] = Reflector(client, SOCKET_STATUSES)
        self.profiles: Reflector[CustomObject] = Reflector(client, WORKLOAD_PROFILES)
        self.sockets.add_handler(deferring(self.on_sockets, SOCKET_STATUSES.plural))
        self.profiles.add_handler(deferring(self.on_profile, WORKLOAD_PROFILES.plural))

    async def run(self) -> None:
        """Follow both until cancelled."""
        await run_together(self.sockets.run(), self.profiles.run())

    async def asked(self) -> None:
        """Wait until both have been listed, or the API server did not have them at the first try."""
        await self.sockets.tried.wait()
        await self.profiles.tried.wait()

    async def synced(self) -> None:
        """Wait until both have been listed; for ever where the API server does not have the kinds."""
        await self.sockets.synced.wait()
        await self.profiles.synced.wait()

    def on_sockets(self, old: CustomObject | None, new: CustomObject | None) -> None:
        """A SocketStatus came, changed or went."""
        if new is not None:
            self._tell(new, "socket status ignored", self._cache.update_sockets(new))
        elif old is not None:
            self._cache.delete_sockets(old)

    def on_profile(self, old: CustomObject | None, new: CustomObject | None) -> None:
        """A WorkloadProfile came, changed or went."""
        if new is not None:
            self._tell(new, "workload profile not used, or not in full", self._cache.update_profile(new))
        elif old is not None:
            self._cache.delete_profile(old)

    @staticmethod
    def _tell(obj: CustomObject, what: str, problem: str | None) -> None:
        if problem is not None:
            name = "/".join(filter(None, (obj.metadata.namespace, obj.metadata.name)))
            log.warning(what, object=name, problem=problem)
