"""AppGroups that waiting pods name and the watch has not shown yet, read one by one.

The API server sends the changes of a kind one after another, and takes a third of a second for an AppGroup of a
megabyte: a few tenants that edit such keep everybody's new AppGroups back for seconds, and their pods with them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from cachetools import TTLCache

from berth.api.labels import membership
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import CustomObject, Pod
from berth.kube.reflector import Reflector
from berth.kube.resources import APP_GROUPS
from berth.network.groups import GroupKey
from berth.runtime.workqueue import WorkQueue

log = structlog.get_logger(__name__)

DELAY: Final = 0.2
"""Seconds after the first pod at which an AppGroup is looked for; mostly the watch has shown it by then."""
TRIES: Final = 5
"""How often one is looked for, after twice the time each: 0.2, 0.4, 0.8, 1.6 and 3.2 seconds."""
WORKERS: Final = 8
"""AppGroups looked for at once; of one namespace, a quarter."""
MOST: Final = 500
"""AppGroups of one namespace that wait to be looked for, at the most: labels can name new ones all the time."""
PAUSE: Final = 3.0
"""Length of a pause after one that was not found, in lengths of the time that the answer took."""
LAST_PAUSE: Final = 5.0
"""Seconds that a pause takes at most: an API server that hung for minutes may be well again."""
_REMEMBERED: Final = 10_000
_REMEMBER_SECONDS: Final = 60.0


class GroupLookup:
    """Looks for AppGroups, each a few times; after a minute pods may ask for it again."""

    def __init__(
        self,
        client: ApiClient,
        watch: Reflector[CustomObject],
        *,
        schedulers: frozenset[str],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Prepare without I/O.

        Args:
            client: open API client.
            watch: the copy of all AppGroups, which is given what is found.
            schedulers: names of the schedulers whose pods count.
            sleep: lets seconds pass.
        """
        self._client = client
        self._watch = watch
        self._schedulers = schedulers
        self._sleep = sleep
        self._tries: dict[GroupKey, int] = {}
        self._waiting: Counter[str] = Counter()  # those of `_tries` by namespace
        self._given_up: TTLCache[GroupKey, None] = TTLCache(_REMEMBERED, _REMEMBER_SECONDS)
        self._queue: WorkQueue[GroupKey] = WorkQueue(lambda key: key.namespace)

    def on_pod(self, _: Pod | None, pod: Pod | None) -> None:
        """Have the AppGroup of a waiting pod looked for if it is not known."""
        if pod is None or pod.spec.node_name or pod.spec.scheduler_name not in self._schedulers:
            return
        named = membership(pod.metadata.labels)
        if named is None:
            return
        key = GroupKey(pod.metadata.namespace, named.appgroup)
        if self._known(key) or key in self._tries or key in self._given_up or self._waiting[key.namespace] >= MOST:
            return
        self._waiting[key.namespace] += 1
        self._again(key, 0)

    async def run(self) -> None:
        """Look for them until cancelled."""
        await self._queue.run(self._look, workers=WORKERS)

    def _known(self, key: GroupKey) -> bool:
        return f"{key.namespace}/{key.name}" in self._watch.objects

    def _again(self, key: GroupKey, tries: int) -> None:
        self._tries[key] = tries
        self._queue.add(key, delay=DELAY * 2**tries)

    def _end(self, key: GroupKey) -> None:
        del self._tries[key]
        self._waiting[key.namespace] -= 1
        if not self._waiting[key.namespace]:
            del self._waiting[key.namespace]

    async def _look(self, key: GroupKey) -> bool:
        begun = time.monotonic()
        if self._known(key) or await self._found(key):
            self._end(key)
            return False
        tries = self._tries[key] + 1
        if tries < TRIES:
            self._again(key, tries)
        else:
            self._end(key)
            self._given_up[key] = None
        await self._sleep(min(PAUSE * (time.monotonic() - begun), LAST_PAUSE))
        return False

    async def _found(self, key: GroupKey) -> bool:
        try:
            found = await self._client.get(APP_GROUPS, key.name, namespace=key.namespace)
        except (ApiError, ValueError, *TRANSPORT_ERRORS) as error:
            # The watch will show it, if it is there.
            log.debug("AppGroup not found by itself", appgroup=str(key), error=str(error))
            return False
        # One that has been deleted since may have been made anew.
        return self._watch.offer(found) or self._known(key)
