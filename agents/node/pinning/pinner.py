"""One round of pinning: see what runs, decide, write down, write, and say what has become of each pod."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from agents.node.pinning import metrics
from agents.node.pinning.containers import Containers, Located
from agents.node.pinning.cpuset import Cpuset, CpusetError
from agents.node.pinning.hierarchy import Hierarchy
from agents.node.pinning.journal import Entry, Journal, JournalError
from agents.node.pinning.reconciler import Action, Decision, Finding, Reconciler
from agents.node.pinning.restore import restore
from agents.node.pinning.wanted import PodWish
from agents.node.pinning.writer import CpusetWriter, NotInEffectError, Target

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 4.0
"""How often the cpuset of every container is looked at; those that are new, or not as wanted, each round."""
_SETTLED: Final = (Finding.IN_EFFECT, Finding.GIVEN_UP)


@dataclass(slots=True, kw_only=True)
class PodState:
    """What has become of a pod that is wanted."""

    wish: PodWish
    """the pod, and what is wanted"""
    cpus: frozenset[int] = frozenset()
    """CPUs that were asked for its containers"""
    effective_cpus: frozenset[int] = frozenset()
    """CPUs that its containers may use, of all together"""
    findings: dict[str, tuple[Finding, str]] = field(default_factory=dict)
    """by name of the container, what there is to say and why"""

    @property
    def pinned(self) -> bool:
        """Whether every container has what is wanted; a pod without containers has not."""
        return bool(self.findings) and all(found is Finding.IN_EFFECT for found, _ in self.findings.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round has found."""

    pods: tuple[PodState, ...] = ()
    """pods that are wanted"""
    problem: str = ""
    """why nothing more is pinned or given back, as a full disk; empty: nothing is wrong"""
    silence: str = ""
    """why the runtime did not answer; empty: it did"""
    foreign: str = ""
    """whose CPUs somebody else has set; empty: nobody's. Nothing was written then"""


class Pinner:
    """Gives containers what is wanted, as often as it is told to look."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        containers: Containers,
        writer: CpusetWriter,
        journal: Journal,
        reconciler: Reconciler,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare without I/O.

        Args:
            hierarchy: where cgroups are.
            containers: which containers run.
            writer: sets cpusets.
            journal: what cpusets were, open.
            reconciler: decides.
            clock: monotonic seconds.
        """
        self._hierarchy = hierarchy
        self._containers = containers
        self._writer = writer
        self._journal = journal
        self._reconciler = reconciler
        self._clock = clock
        self._cpusets: dict[str, Cpuset] = {}
        self._decisions: dict[str, Decision] = {}
        self._looked = -LOOK_SECONDS

    @property
    def idle(self) -> bool:
        """Whether nothing is left of ours on the node."""
        return not self._journal.entries

    async def round(self, wishes: Iterable[PodWish], *, observe: bool) -> Round:
        """Look at the containers of pods, and write those that have other CPUs than wanted.

        Args:
            wishes: pods of the node; all that are not among them, or have no CPUs there, are not to be pinned.
            observe: look and write nothing.
        """
        by_uid = {wish.runtime_uid: wish for wish in wishes}
        ours = frozenset(self._journal.entries)
        if not by_uid and not ours:
            self._decisions.clear()
            return Round()
        paths = {key: Path(entry.cgroup) for key, entry in self._journal.entries.items()}
        located = {each.container.id: each for each in await self._containers.of(frozenset(by_uid), paths)}
        await self._look(located)
        now = self._clock()
        self._decisions = {
            key: self._decide(key, by_uid.get(each.container.pod_uid), now)
            for key, each in located.items()
            if key in self._cpusets
        }
        self._reconciler.keep(frozenset(located))
        problem, foreign = "", self._foreign(located, by_uid)
        if not observe and not foreign:
            problem = await self._write_down(located, by_uid)
            await self._pin(located)
            gone = [] if self._containers.silence else [key for key in ours if key not in located]
            problem = await self._restore(gone) or problem
        states = {uid: PodState(wish=wish) for uid, wish in by_uid.items()}
        for key, decision in self._decisions.items():
            self._tell(states.get(located[key].container.pod_uid), located[key], decision)
        return Round(pods=tuple(states.values()), problem=problem, silence=self._containers.silence, foreign=foreign)

    async def restore_all(self) -> None:
        """Give back everything, as when the agent ends."""
        entries = list(self._journal.entries.values())
        for outcome in await restore(self._journal, self._writer, self._hierarchy.version, entries):
            if outcome.problem:
                log.error("CPUs not restored", container=str(outcome.entry), problem=outcome.problem)
        log.info("CPUs restored", containers=len(entries) - len(self._journal.entries))

    async def restore_unchanged(self) -> None:
        """Give back what still is as it was pinned: what others have changed since is theirs."""
        unchanged = [
            entry
            for key, entry in self._journal.entries.items()
            if key in self._decisions and self._decisions[key].finding is Finding.IN_EFFECT
        ]
        await restore(self._journal, self._writer, self._hierarchy.version, unchanged)

    async def _look(self, located: Mapping[str, Located]) -> None:
        """Read cpusets: all of them if that is due, else of those that are new or have not what is wanted."""
        now = self._clock()
        due = now - self._looked >= LOOK_SECONDS
        if due:
            self._looked = now
        known = {} if due else self._cpusets
        settled = {key for key, each in self._decisions.items() if each.finding in _SETTLED and key in known}
        read = await self._containers.cpusets(each for key, each in located.items() if key not in settled)
        self._cpusets = {key: found for key, found in known.items() if key in settled and key in located} | read

    def _foreign(self, located: Mapping[str, Located], wishes: Mapping[str, PodWish]) -> str:
        """The first container, by name, that somebody else has pinned."""
        found = [
            f"container {each.name} of pod {wish.namespace}/{wish.name}: {decision.text}"
            for key, decision in self._decisions.items()
            if decision.finding is Finding.FOREIGN
            and (wish := wishes.get((each := located[key].container).pod_uid)) is not None
        ]
        return min(found, default="")

    def _decide(self, container: str, wish: PodWish | None, now: float) -> Decision:
        return self._reconciler.decide(
            container,
            self._cpusets[container],
            wish.cpus if wish else frozenset(),
            wish.mems if wish else frozenset(),
            ours=container in self._journal.entries,
            now=now,
        )

    async def _write_down(self, located: Mapping[str, Located], wishes: Mapping[str, PodWish]) -> str:
        """Have what is to be written in the journal; without it, nothing is. The problem there is."""
        entries = [
            _entry(located[key], wishes[located[key].container.pod_uid], self._cpusets[key])
            for key, decision in self._decisions.items()
            if decision.action is Action.PIN and key not in self._journal.entries
        ]
        try:
            await asyncio.to_thread(self._journal.add, entries)
        except JournalError as error:
            for entry in entries:
                decision = self._decisions[entry.container]
                self._decisions[entry.container] = decision._replace(action=Action.LEAVE, text=str(error))
            return str(error)
        return ""

    async def _pin(self, located: Mapping[str, Located]) -> None:
        for key, decision in list(self._decisions.items()):
            if decision.action is not Action.PIN:
                continue
            each = located[key]
            problem = ""
            try:
                way = await self._writer.write(Target(key, each.cgroup, decision.cpus, decision.mems, each.pid))
                metrics.WRITES.labels(way).inc()
            except (CpusetError, NotInEffectError) as error:
                if isinstance(error, CpusetError) and error.gone:
                    continue  # it has ended; the next round strikes it out of the journal
                problem = str(error)
                metrics.WRITES.labels("failed").inc()
                log.warning("container not pinned", container=key, problem=problem)
            if decision.finding is Finding.DRIFTED:
                metrics.DRIFTS.inc()
                log.warning("somebody else changed a container's CPUs", container=key, found=decision.text)
            self._reconciler.written(key, self._clock(), problem)
            if not problem:
                self._cpusets[key] = _changed(self._cpusets[key], decision)
                self._decisions[key] = decision._replace(finding=Finding.IN_EFFECT, text="")
            else:
                self._decisions[key] = decision._replace(text=problem)

    async def _restore(self, gone: list[str]) -> str:
        """Give back what is wanted no more, and forget containers that have ended. The journal's problem, if any."""
        entries = self._journal.entries
        keys = [key for key, decision in self._decisions.items() if decision.action is Action.RESTORE]
        outcomes = await restore(
            self._journal, self._writer, self._hierarchy.version, [entries[key] for key in {*keys, *gone}]
        )
        for key in keys:
            self._cpusets.pop(key, None)
        return next((outcome.problem for outcome in outcomes if outcome.problem), "")

    def _tell(self, state: PodState | None, each: Located, decision: Decision) -> None:
        if state is None:
            return
        state.cpus |= decision.cpus
        found = self._cpusets.get(each.container.id)
        state.effective_cpus |= found.effective_cpus if found else frozenset()
        state.findings[each.container.name] = (decision.finding, decision.text)


def _entry(each: Located, wish: PodWish, found: Cpuset) -> Entry:
    return Entry(
        container=each.container.id,
        cgroup=str(each.cgroup),
        cpus=found.cpus,
        mems=found.mems,
        namespace=wish.namespace,
        pod=wish.name,
        name=each.container.name,
    )


def _changed(found: Cpuset, decision: Decision) -> Cpuset:
    return Cpuset(
        cpus=found.cpus,
        mems=found.mems,
        effective_cpus=decision.cpus,
        effective_mems=decision.mems,
        allowed_cpus=found.allowed_cpus,
        allowed_mems=found.allowed_mems,
    )
