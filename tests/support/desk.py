"""A placement controller that is never run: watch events and binding outcomes are handed to it one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubernetes_asyncio.client import Configuration

from berth.kube.client import ApiClient
from berth.kube.connection import Connection
from berth.kube.events import Note
from berth.kube.fair_queue import Turn
from berth.kube.meta import object_key
from berth.kube.metrics import HANDLER_FAILURES
from berth.kube.objects import Pod
from berth.runtime.component import ComponentContext
from berth.runtime.health import Checks
from berth.scheduling.queue_entry import QueueEntry
from controllers.placement.binding_cycle import Assumed
from controllers.placement.controller import PlacementController
from controllers.placement.settings import PlacementSettings
from tests.support.placement import zoned


def handler_failures() -> float:
    """Handlers that have failed so far, of all kinds."""
    [counter] = HANDLER_FAILURES.collect()
    return sum(sample.value for sample in counter.samples if sample.name.endswith("_total"))


class Notes:
    """Keeps what would become Events."""

    def __init__(self) -> None:
        self.notes: list[Note] = []

    def record(self, note: Note) -> None:
        self.notes.append(note)

    @property
    def reasons(self) -> list[str]:
        return [note.reason for note in self.notes]


class Desk:
    """The controller of a cluster with the nodes n1 and n2."""

    def __init__(self, config: Path | None = None) -> None:
        self.said = Notes()
        connection = Connection(configuration=Configuration(host="https://unused.invalid"), namespace="default")
        self.controller = PlacementController(
            ComponentContext(
                connection=connection,
                client=ApiClient(connection),
                recorder=self.said,  # type: ignore[arg-type]
                checks=Checks(),
                identity="test",
            ),
            PlacementSettings(config=config),
        )
        self.cache, self.queue = self.controller.cache, self.controller.queue
        self.volumes = self.controller._volumes
        self.controller.cycle._settling = None  # no network data is on its way here
        self.controller._latency_policies.watch.tried.set()
        for number in (1, 2):
            self.see("nodes", zoned(f"n{number}"))

    def see(self, plural: str, item: Any) -> None:
        """Have a watch show an object, new or changed."""
        watch = self.controller.watches[plural]
        watch._change(object_key(item.metadata), watch.objects.get(object_key(item.metadata)), item)
        watch._end_batch()

    def lose(self, plural: str, item: Any) -> None:
        """Have a watch show the end of an object."""
        watch = self.controller.watches[plural]
        watch._change(object_key(item.metadata), item, None)
        watch._end_batch()

    def pods(self, *pods: Pod) -> None:
        """Have the watch show these pods."""
        for pod in pods:
            self.see("pods", pod)

    def decide(self) -> list[Assumed]:
        """Schedule every entry that is due; returns what is to be bound."""
        while (entry := self.queue.pop()) is not None:
            self.controller.cycle.schedule_one(entry)
        unbound = self.controller.binding._unbound
        taken = []
        while (turn := unbound.take()) is not None:
            unbound.done(turn)
            taken.append(turn.item)
        return taken

    async def bind(self, assumed: Assumed) -> None:
        """Have a worker carry out a decision."""
        await self.controller.binding._bind(Turn(assumed.decision.pod.metadata.namespace, assumed))

    def place(self, pod: Pod) -> Assumed:
        """Have one pod wait, and decided."""
        self.pods(pod)
        (assumed,) = self.decide()
        return assumed

    def fail(self, pod: Pod) -> QueueEntry:
        """Have a pod wait and fail, and its backoff be over; returns its entry."""
        self.pods(pod)
        assert self.decide() == []
        (entry,) = (entry for entry in self.queue.entries() if pod.metadata.uid in entry.pods)
        assert entry.unschedulable
        entry.not_before = 0.0
        return entry

    def tried(self) -> list[str]:
        """Pods of the entries that became active, which are tried in vain."""
        found = []
        while (entry := self.queue.pop()) is not None:
            found += [pod.metadata.name for pod in entry.pods.values()]
            self.controller.cycle.schedule_one(entry)
            entry.not_before = 0.0
        return found


class LoopDesk(Desk):
    """One for tests without a running event loop: what goes on in a controller's does so here, and no handler fails."""

    loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def within(cls, loop: asyncio.AbstractEventLoop) -> LoopDesk:
        async def made() -> LoopDesk:
            return cls()

        desk = loop.run_until_complete(made())
        desk.loop = loop
        return desk

    def see(self, plural: str, item: Any) -> None:
        self.in_loop(super().see, plural, item)

    def lose(self, plural: str, item: Any) -> None:
        self.in_loop(super().lose, plural, item)

    def in_loop(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do it in the loop, or here as long as none is set."""

        async def done() -> None:
            work(*arguments)

        before = handler_failures()
        if self.loop is None:
            work(*arguments)
        else:
            self.loop.run_until_complete(done())
        assert handler_failures() == before, "a handler failed"
