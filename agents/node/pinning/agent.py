"""Pinning as a component: one process on each node."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

import structlog

from agents.node.pinning import metrics
from agents.node.pinning.profiles import PROFILES, ProfiledClasses
from agents.node.pinning.reconciler import Finding
from agents.node.pinning.report import REASON_KUBELET_PINS, Found, kept_caches, status_of
from agents.node.pinning.restore import Leave
from agents.node.pinning.rounds import PodState, Round
from agents.node.pinning.settings import PinningSettings
from agents.node.pinning.status_writer import INTERVAL_SECONDS, SOCKET_STATUSES, StatusWriter, status_in, told_lately
from agents.node.pinning.wanted import PATIENCE_SECONDS, Patience, PodWish, Wanted, read_assignments, wanted
from agents.node.pinning.workplace import Workplace
from agents.node.topology.machine import Machine
from berth.kube.client import TRANSPORT_ERRORS
from berth.kube.custom_object import CustomObject, decoded
from berth.kube.errors import ApiError
from berth.kube.reflector import Reflector
from berth.kube.resources import PODS
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.settings import ComponentSettings

log = structlog.get_logger(__name__)

IDLE_SECONDS: Final = 30.0
"""Seconds from one look to the next while nothing is wanted and nothing is pinned."""
LAST_WORDS_SECONDS: Final = 2.0
"""How long the API server is waited for by an agent that ends."""
SILENCE_SECONDS: Final = 120.0
"""A process that has done nothing about any container for as long hangs."""


_UNKNOWN: Final = Machine(sockets=(), dies=(), numa_nodes=(), last_level_caches=(), cores=())
"""A machine whose sockets cannot be told: pods are on none of them."""


class PinningAgent:
    """Gives the pods of its node the CPUs of the sockets that they are assigned to."""

    Settings: ClassVar[type[ComponentSettings]] = PinningSettings

    def __init__(self, context: ComponentContext, settings: PinningSettings) -> None:
        """Prepare without I/O."""
        self._node = settings.name or socket.gethostname().lower()
        self._settings = settings
        self._workplace = Workplace(settings, beat=self._beat)
        self._writer = StatusWriter(context.client, self._node)
        self._pods = Reflector(context.client, PODS, field_selector=f"spec.nodeName={self._node}")
        self._statuses = Reflector(context.client, SOCKET_STATUSES, field_selector=f"metadata.name={self._node}")
        self._profiles, self._profiled = Reflector(context.client, PROFILES), ProfiledClasses()
        self._profiles.add_handler(self._profiled.changed)
        self._changed, self._looked = asyncio.Event(), asyncio.Event()
        self._found: Found | None = None
        self._observe = False
        self._told: tuple[str, ...] = ()
        self._patience = Patience(PATIENCE_SECONDS)
        self._asked: tuple[Machine, Wanted] | None = None
        self._wishes: tuple[PodWish, ...] = ()
        self._kept: dict[str, frozenset[int]] | None = None
        self._last = time.monotonic()
        self._followed: dict[str, Reflector[Any]] = {
            "pods": self._pods,
            "socketstatuses": self._statuses,
            "workloadprofiles": self._profiles,
        }
        for name, reflector in self._followed.items():
            reflector.add_batch_handler(self._changed.set)
            # No health check: an agent that is started again while the API server is away gives everything back on its
            # way out, and the next one does not know what to pin.
            context.watch_without_restart(name, reflector)
        context.checks.add_health("pinning", self._health)

    async def run(self) -> None:
        """Work until cancelled; what is pinned is given back on the way out."""
        self._beat()
        followed = (reflector.run() for reflector in self._followed.values())
        await run_together(*followed, self._pin(), self._report())

    def _beat(self) -> None:
        self._last = time.monotonic()

    def _health(self) -> str | None:
        silent = time.monotonic() - self._last
        return f"nobody looked at cpusets for {silent:.0f} s" if silent > SILENCE_SECONDS else None

    async def _pin(self) -> None:
        try:
            # What is pinned already is left as it is until it is clear what is wanted.
            while not all(reflector.synced.is_set() for reflector in self._followed.values()):
                self._beat()
                await asyncio.sleep(self._settings.interval / 10)
            while True:
                if self._changed.is_set():
                    self._changed.clear()
                    self._asked = None
                pause = await self._uncut(self._look())
                self._beat()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._changed.wait()
        finally:
            await self._give_back()

    async def _uncut(self, work: Coroutine[Any, Any, float]) -> float:
        """Do a round and return what it returns; one that is under way when the agent ends is waited for.

        A write that is cut off would go on in its thread, or in the runtime, after everything was given back.
        """
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._workplace.pinner is not None:
                self._workplace.pinner.stop()
            await asyncio.wait({task})
            raise

    async def _look(self) -> float:
        """Do one round; seconds to the next."""
        await self._workplace.look()
        pinner, machine = self._workplace.pinner, self._workplace.machine
        asked = self._wanted()
        if pinner is None or machine is None:
            # Nobody looks at their containers: none is known to have what it is to have.
            self._take_in(asked, Round(pods=tuple(PodState(wish=wish) for wish in asked.pods)))
            return self._settings.interval
        reason = self._workplace.kubelet_pins
        found = await pinner.round(asked.pods, observe=bool(reason))
        self._take_in(asked, found)
        busy = any(wish.cpus for wish in asked.pods) or not pinner.idle
        return self._settings.interval if busy else IDLE_SECONDS

    def _wanted(self) -> Wanted:
        """What is wanted, with problems that have lasted; worked out when something has changed, not each second."""
        machine = self._workplace.machine or _UNKNOWN
        if self._asked is None or self._asked[0] is not machine:
            self._asked = machine, self._read(machine)
        asked = self._asked[1]
        return asked._replace(problems=self._patience.lasting(asked.problems, time.monotonic()))

    def _read(self, machine: Machine) -> Wanted:
        there = self._statuses.objects.get(self._node)
        stated = {} if there is None or machine is _UNKNOWN else decoded(there.spec)
        before = self._kept if self._kept is not None else kept_caches(status_in(there))
        assignments, unreadable = read_assignments(stated, self._node)
        found = wanted(
            assignments,
            self._pods.objects.values(),
            machine,
            node=self._node,
            key=self._settings.class_label,
            profiled=self._profiled.of,
            memory=self._settings.memory,
            division=self._settings.divide,
            before=before,
        )
        if there is not None and machine is not _UNKNOWN:
            # One that has none for a while has its own again: sysfs tells no caches of CPUs that are about to go.
            before = {wish.uid: before[wish.uid] for wish in found.pods if wish.cpus and wish.uid in before}
            self._kept = before | {wish.uid: wish.cpus for wish in found.pods if wish.cache is not None}
        # A round that sees the same object knows that nothing is new: most changes are no news here, as bookmarks, the
        # status that was written, and profiles of workloads that run elsewhere.
        self._wishes = self._wishes if found.pods == self._wishes else found.pods
        return Wanted(self._wishes, (*unreadable, *found.problems))

    def _take_in(self, asked: Wanted, found: Round) -> None:
        """Keep what there is to say, log what is new of it, and count."""
        there, place = self._statuses.objects.get(self._node), self._workplace
        reason, text = "", ""
        if place.kubelet_pins:
            reason, text = REASON_KUBELET_PINS, place.kubelet_pins
        elif found.foreign:
            reason, text = "AnotherAgent", f"{found.foreign}; take the other agent away, or restart the pod"
        self._observe = bool(text)
        self._found = Found(
            generation=there.metadata.generation if there else 0,
            machine=place.machine,
            topology_problem=place.topology_problem,
            division=self._settings.divide,
            round=found,
            problems=asked.problems,
            observe_reason=reason,
            observe=text,
            unable=place.unable,
        )
        problems = (place.unable, place.topology_problem, text, found.problem, *map(str, asked.problems))
        for problem in problems:
            if problem and problem not in self._told:
                log.warning("not pinned", problem=problem)
        self._told = problems
        placed = [state for state in found.pods if state.wish.cpus]
        pinned = sum(state.pinned for state in placed)
        metrics.PODS.labels("pinned").set(pinned)
        metrics.PODS.labels("unpinned").set(len(placed) - pinned)
        findings = [finding for state in found.pods for finding, _ in state.findings.values()]
        metrics.GIVEN_UP.set(findings.count(Finding.GIVEN_UP))
        metrics.OBSERVE_ONLY.set(self._observe)
        self._looked.set()

    async def _report(self) -> None:
        told: tuple[Found, CustomObject | None, timedelta] | None = None
        while True:
            await self._looked.wait()
            self._looked.clear()
            if self._found is None:
                continue
            now, clock = time.monotonic(), datetime.now(UTC)
            shown = self._found, self._statuses.objects.get(self._node), self._writer.step(clock)
            # Once a second nothing has changed, and working out what to say takes longer than seeing that.
            if shown == told and not self._writer.overdue(now):
                continue
            there = status_in(shown[1])
            if self._workplace.occupied and told_lately(there, clock):
                continue  # whoever has the journal says what is so; two would write by turns for ever
            status = status_of(self._found, self._writer.last(there, clock), clock)
            if not self._writer.due(status, there, now):
                told = shown
                continue
            try:
                await self._writer.write(status, now)
            except (ApiError, *TRANSPORT_ERRORS) as error:
                metrics.STATUS_WRITES.labels("failed").inc()
                log.warning("SocketStatus not written", error=str(error) or repr(error))
            else:
                metrics.STATUS_WRITES.labels("written").inc()
            await asyncio.sleep(INTERVAL_SECONDS)
            self._looked.set()

    async def _give_back(self) -> None:
        place = self._workplace
        # One that ends before it could look gives back what an agent before it has left; and the kubelet may have
        # begun to pin since the last look.
        await place.look(last=True)
        if place.pinner is not None:
            # Where another agent pins as well, what that one has changed is not ours any more.
            leave = Leave.ALL if place.kubelet_pins else Leave.CHANGED if self._observe else Leave.NONE
            await place.pinner.restore_all(leave=leave)
            await self._tell_end(idle=place.pinner.idle)
        place.close()

    async def _tell_end(self, *, idle: bool) -> None:
        """Have the status say that nobody pins any more: it would say for ever that what was given back is pinned."""
        there = self._statuses.objects.get(self._node)
        if self._found is None or there is None:
            return
        text = "the agent of the node has ended and given everything back"
        if not idle:
            text = "the agent of the node has ended, and its journal has containers left: see berth-agent restore"
        nobody = Round(pods=tuple(PodState(wish=state.wish) for state in self._found.round.pods))
        found = replace(self._found, round=nobody, unable=text)
        try:
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                clock = datetime.now(UTC)
                last = self._writer.last(status_in(there), clock)
                await self._writer.write(status_of(found, last, clock), time.monotonic())
        except (ApiError, *TRANSPORT_ERRORS) as error:
            log.warning("SocketStatus not written", error=str(error) or repr(error))
