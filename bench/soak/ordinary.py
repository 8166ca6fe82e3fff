"""Ordinary tenants: an application comes every few seconds, lives a while and goes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from bench.live.workload import application
from bench.soak.tenant import Tenant
from berth.kube.objects import Pod
from berth.kube.resources import APP_GROUPS, PODS

SCHEDULER = "berth-scheduler"


@dataclass(slots=True)
class Waits:
    """From creation to binding, as a watch saw it."""

    created: dict[str, float] = field(default_factory=dict)
    """uid -> when a pod without a node first appeared"""
    seconds: list[tuple[float, float]] = field(default_factory=list)
    """(when bound, seconds since creation) of every pod that was bound"""
    rebound: int = 0
    """pods that changed their node: must stay 0"""
    _nodes: dict[str, str] = field(default_factory=dict)

    def note(self, _old: Pod | None, pod: Pod | None) -> None:
        """Handler of the watch."""
        if pod is None:
            if _old is not None:
                self.created.pop(_old.metadata.uid, None)
                self._nodes.pop(_old.metadata.uid, None)
            return
        now, uid, node = time.monotonic(), pod.metadata.uid, pod.spec.node_name
        if not node:
            self.created.setdefault(uid, now)
            return
        before = self._nodes.setdefault(uid, node)
        self.rebound += before != node
        since = self.created.pop(uid, None)
        if since is not None:
            self.seconds.append((now, now - since))

    def oldest(self) -> float:
        """Seconds that the pod which waits longest has waited."""
        return time.monotonic() - min(self.created.values(), default=time.monotonic())


class Shop:
    """Creates an application every `interval` seconds and deletes it `life` seconds later."""

    def __init__(self, tenant: Tenant, *, interval: float, life: float) -> None:
        """Prepare."""
        self._tenant = tenant
        self._interval = interval
        self._life = life
        self.created = 0
        """applications so far"""

    async def run(self) -> None:
        """Until cancelled."""
        alive: deque[tuple[float, str, list[str]]] = deque()
        await self._tenant.open()
        while True:
            began = time.monotonic()
            name = f"shop-{self.created}"
            group, pods = application(name, scheduler=SCHEDULER)
            await self._tenant.create(APP_GROUPS, group)
            await self._tenant.create_all(PODS, pods)
            self.created += 1
            alive.append((began + self._life, name, [pod["metadata"]["name"] for pod in pods]))
            while alive and alive[0][0] <= began:
                _, old, names = alive.popleft()
                await asyncio.gather(*(self._tenant.delete(PODS, each) for each in names))
                await self._tenant.delete(APP_GROUPS, old)
            await asyncio.sleep(max(0.0, began + self._interval - time.monotonic()))
