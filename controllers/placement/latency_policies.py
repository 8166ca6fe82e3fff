"""LatencyPolicies as placement follows them: where pods are awaited, and how far users are.

Nobody waits for them: in a cluster without the kind, or without the latency controller, no workload has users whose
latency is known.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from berth.kube.client import ApiClient
from berth.kube.objects import CustomObject
from berth.kube.reflector import Handler, Reflector
from berth.kube.resources import LATENCY_POLICIES
from berth.scheduling.cache.user_latency import UserLatencyTable

log = structlog.get_logger(__name__)


class LatencyPolicies:
    """Keeps the table of users' latency."""

    def __init__(
        self,
        client: ApiClient,
        table: UserLatencyTable,
        *,
        deferring: Callable[[Handler[CustomObject], str], Handler[CustomObject]],
    ) -> None:
        """Prepare; `deferring` keeps a handler from the table while a plan is made."""
        self._table = table
        self.watch: Reflector[CustomObject] = Reflector(client, LATENCY_POLICIES)
        self.watch.add_handler(deferring(self.on_policy, LATENCY_POLICIES.plural))

    async def run(self) -> None:
        """Follow policies until cancelled."""
        await self.watch.run()

    def on_policy(self, old: CustomObject | None, new: CustomObject | None) -> None:
        """A policy came, changed or went."""
        if new is not None:
            problem = self._table.update(new)
            if problem is not None:
                log.warning("latency policy ignored", object=new.metadata.name, problem=problem)
        elif old is not None:
            self._table.delete(old)
