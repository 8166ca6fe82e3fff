"""The ReplicaSets of AppGroups whose first pods have come, read once for each group: how many pods are to come.

They are found by the AppGroup's label, which a Deployment gives to its ReplicaSets with all labels of its pods. Nobody
watches them: a cluster has ten old ones for each Deployment.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from berth.api.labels import LABEL_APPGROUP
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import ReplicaSet
from berth.kube.resources import REPLICA_SETS
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.declared import UNANSWERED_SECONDS
from berth.scheduling.queue_entry import EntryKey

log = structlog.get_logger(__name__)

WORKERS: Final = 8
"""AppGroups whose ReplicaSets are read at once; of one namespace, a quarter."""
STALE_SECONDS: Final = UNANSWERED_SECONDS / 2
"""Seconds after which an AppGroup whose turn has not come is not read: when hundreds of one namespace come at once,
those that come next would wait behind answers that nobody waits for."""
TRY_SECONDS: Final = 2.0
"""Seconds that this may take: nobody waits for the answer for longer."""


class ReplicaSets:
    """Reads them when asked to."""

    def __init__(
        self,
        client: ApiClient,
        *,
        answer: Callable[[EntryKey, Mapping[str, int]], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare without I/O.

        Args:
            client: open API client.
            answer: called on the event loop with pods that there are to be, by uid of the ReplicaSet; without any where
                ReplicaSets cannot be read, or not in time.
            clock: monotonic time.
        """
        self._client = client
        self._answer = answer
        self._clock = clock
        self._asked: dict[EntryKey, float] = {}
        """when each was asked for that is not being read yet"""
        self._queue: WorkQueue[EntryKey] = WorkQueue(lambda key: key.namespace)

    def ask(self, key: EntryKey) -> None:
        """Have the ReplicaSets of an AppGroup read; to be called on the event loop."""
        self._asked[key] = self._clock()
        self._queue.add(key)

    async def run(self) -> None:
        """Read them until cancelled."""
        await self._queue.run(self._read, workers=WORKERS)

    async def _read(self, key: EntryKey) -> bool:
        if self._clock() > self._asked.pop(key, -math.inf) + STALE_SECONDS:
            self._answer(key, {})
            return False
        found: list[ReplicaSet] = []
        try:
            async with asyncio.timeout(TRY_SECONDS):
                found = await self._client.list_all(
                    REPLICA_SETS, namespace=key.namespace, label_selector=f"{LABEL_APPGROUP}={key.name}"
                )
        except (ApiError, ValueError, *TRANSPORT_ERRORS) as error:
            # Its pods are planned as they come, which is what an account that may not read them has to do with.
            log.warning("replicasets not read", namespace=key.namespace, appgroup=key.name, error=repr(error))
        self._answer(key, {each.metadata.uid: each.spec.replicas for each in found if not _fails(each)})
        return False


def _fails(replica_set: ReplicaSet) -> bool:
    """Whether it could not create a pod when it tried last, as under a quota."""
    return any(each.type == "ReplicaFailure" and each.status == "True" for each in replica_set.status.conditions)
