"""One round of pinning: see what runs, decide, write down, write, and say what has become of each pod."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import structlog

from agents.node.pinning import metrics
from agents.node.pinning.containers import Containers, Located
from agents.node.pinning.cpuset import Cpuset, CpusetError, has_left, strays
from agents.node.pinning.hierarchy import Hierarchy
from agents.node.pinning.journal import Entry, Journal, JournalError
from agents.node.pinning.reconciler import Action, Decision, Finding, Reconciler, observed
from agents.node.pinning.restore import Leave, Restored, numbers, restore
from agents.node.pinning.rounds import PodState, Round
from agents.node.pinning.untold import Untold
from agents.node.pinning.wanted import PodWish
from agents.node.pinning.writer import CpusetWriter, NotInEffectError, Target, Written
from berth.api.cpulist import format_cpulist

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 4.0
"""How often the cpuset of every container is looked at; those that are new, or not as wanted, each round."""
WRITE_SECONDS: Final = 0.25
"""How long the runtime is asked in one round to give containers their CPUs. Those that are left get them by their
cgroups at once, and the runtime hears of them in later rounds: one that takes a tenth of a second for each, as while it
starts a hundred, had the last wait for ten."""
GIVE_BACK_SECONDS: Final = 10.0
"""How long the runtime is asked when everything is given back; what is left then is written to cgroups, which is quick.
A process that ends has twenty."""
_IN_EFFECT: Final = (Finding.IN_EFFECT, Finding.STRAYED)
_SETTLED: Final = (Finding.IN_EFFECT, Finding.GIVEN_UP, Finding.OBSERVED)


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
        self._unreadable: dict[str, str] = {}
        self._strays: dict[str, str] = {}
        self._decisions: dict[str, Decision] = {}
        # Nothing says whether an agent that was killed had told the runtime.
        self._untold = Untold(journal.entries)
        self._let_go_at: dict[str, float] = {}
        """when containers that are wanted no more were last given back what they had"""
        self._looked = -LOOK_SECONDS
        self._last: tuple[Sequence[PodWish], bool, Round] | None = None
        self._stopping = False

    @property
    def idle(self) -> bool:
        """Whether nothing is left of ours on the node."""
        return not self._journal.entries

    async def round(self, wishes: Sequence[PodWish], *, observe: bool) -> Round:
        """Look at the containers of pods, and write those that have other CPUs than wanted.

        Args:
            wishes: pods of the node; all that are not among them, or have no CPUs there, are not to be pinned. The same
                object as in the round before says that the API server has told nothing new of them.
            observe: write nothing, given back included; the kubelet pins.
        """
        if self._last is not None:
            before, observed, last = self._last
            hurried = not observe and self._untold.hurried(self._clock())
            if wishes is before and observe == observed and not hurried and self._is_quiet(last):
                return last
        found = await self._round({wish.runtime_uid: wish for wish in wishes}, observe=observe)
        self._last = wishes, observe, found
        return found

    def _is_quiet(self, last: Round) -> bool:
        """Whether nothing can have changed since the last round but what is looked for every few seconds.

        Each container that a pod is to have runs and has its CPUs: another one comes in the place of one that goes.
        """
        if self._clock() - self._looked >= LOOK_SECONDS or last.problem or last.silence or last.foreign:
            return False
        if any(decision.action is not Action.LEAVE for decision in self._decisions.values()):
            return False
        wanted = [state for state in last.pods if state.wish.cpus]
        if not all(state.settled and len(state.findings) >= state.wish.containers for state in wanted):
            return False
        return self._containers.all_there()

    async def _round(self, by_uid: Mapping[str, PodWish], *, observe: bool) -> Round:
        known = {**self._journal.marks, **self._journal.entries}
        if not by_uid and not known:
            self._decisions.clear()
            return Round()
        paths = {key: entry.cgroup for key, entry in known.items()}
        running = {each.container.id: each for each in await self._containers.of(frozenset(by_uid), paths)}
        ended = [] if self._containers.silence else [key for key in known if key not in running]
        located = {
            key: each
            for key, each in running.items()
            if each.container.pod_uid in by_uid or key in self._journal.entries
        }
        await self._look(located, by_uid)
        self._decide(located, by_uid, observe=observe)
        await self._follow_processes(located)
        self._reconciler.keep(frozenset(located))
        self._untold.keep(located.keys() & self._journal.entries.keys())
        foreign = self._foreign(located, by_uid)
        # What others have set is theirs. What is as it was written here is given back whoever else pins, but the
        # kubelet, whose containers they all are.
        leave = Leave.ALL if observe else Leave.CHANGED if foreign else Leave.NONE
        problem = await self._write_down(located, by_uid, foreign=bool(foreign))
        end = self._clock() + WRITE_SECONDS
        await self._pin(located, end)
        if leave is Leave.NONE:
            await self._tell_runtime(located, end)
        problem = await self._restore(ended, leave) or problem
        states = {uid: PodState(wish=wish) for uid, wish in by_uid.items()}
        for key, decision in self._decisions.items():
            self._tell(states.get(located[key].container.pod_uid), located[key], decision)
        return Round(pods=tuple(states.values()), problem=problem, silence=self._containers.silence, foreign=foreign)

    def stop(self) -> None:
        """Have a round that is under way write nothing more; what it is about to write it does write."""
        self._stopping = True

    async def restore_all(self, *, leave: Leave = Leave.NONE) -> None:
        """Give back everything but what is to be left, as when the agent ends.

        What the runtime does not take stays in the journal for the next agent, or for ``berth-agent restore``.
        """
        await self._writer.settled()
        entries = list(self._journal.entries.values())
        end = self._clock() + GIVE_BACK_SECONDS
        for outcome in await self._give_back(entries, leave, asking=lambda: self._clock() < end):
            if outcome.problem:
                log.error("CPUs not restored", container=str(outcome.entry), problem=outcome.problem)
        log.info("CPUs restored", containers=len(entries) - len(self._journal.entries))

    async def _give_back(self, entries: Iterable[Entry], leave: Leave, *, asking: Callable[[], bool]) -> list[Restored]:
        return await restore(self._journal, self._writer, self._hierarchy, entries, leave=leave, asking=asking)

    async def _look(self, located: Mapping[str, Located], wishes: Mapping[str, PodWish]) -> None:
        """Read cpusets: all of them if that is due, else of those that are new or have not what is wanted."""
        now = self._clock()
        due = now - self._looked >= LOOK_SECONDS
        if due:
            self._looked = now
            self._strays.clear()
        known = {} if due else self._cpusets
        settled = {key for key, each in self._decisions.items() if each.finding in _SETTLED and key in known}
        whole = {key: self._cpusets[key] for key, each in located.items() if self._has_all(key, each, wishes)}
        read = await self._containers.cpusets((each for key, each in located.items() if key not in settled), whole)
        self._cpusets = {key: found for key, found in known.items() if key in settled and key in located} | read.read
        for key, problem in read.problems.items():
            if self._unreadable.get(key) != problem:
                log.warning("cpuset not read", container=key, problem=problem)
        self._unreadable = read.problems

    def _has_all(self, key: str, each: Located, wishes: Mapping[str, PodWish]) -> bool:
        """Whether a container had all that is wanted: what its pod's cgroup lets it have matters to it no more."""
        decision, wish = self._decisions.get(key), wishes.get(each.container.pod_uid)
        if decision is None or wish is None or decision.finding is not Finding.IN_EFFECT or key not in self._cpusets:
            return False
        return decision.cpus == wish.cpus and decision.mems >= wish.mems

    async def _follow_processes(self, located: Mapping[str, Located]) -> None:
        """Have those containers told whose first process has left them; each is looked at as often as its cpuset."""
        now_in_effect = [key for key, each in self._decisions.items() if each.finding is Finding.IN_EFFECT]
        unknown = {key: located[key] for key in now_in_effect if key not in self._strays}
        if unknown:
            self._strays |= await asyncio.to_thread(self._who_left, unknown)
        for key in now_in_effect:
            if self._strays.get(key):
                self._decisions[key] = self._decisions[key]._replace(finding=Finding.STRAYED, text=self._strays[key])

    def _who_left(self, located: Mapping[str, Located]) -> dict[str, str]:
        found = {}
        for key, each in located.items():
            try:
                left = has_left(each.cgroup, self._decisions[key].cpus, each.pid)
            except CpusetError:
                continue  # it has ended; the next look finds that
            found[key] = _strayed(each.pid) if left else ""
        return found

    def _foreign(self, located: Mapping[str, Located], wishes: Mapping[str, PodWish]) -> str:
        """The first container, by name, that somebody else has pinned."""
        found = [
            f"container {each.name} of pod {wish.namespace}/{wish.name}: {decision.text}"
            for key, decision in self._decisions.items()
            if decision.finding is Finding.FOREIGN
            and (wish := wishes.get((each := located[key].container).pod_uid)) is not None
        ]
        return min(found, default="")

    def _decide(self, located: Mapping[str, Located], wishes: Mapping[str, PodWish], *, observe: bool) -> None:
        """Decide about every container that can be read, and have the others told."""
        now, entries, marks = self._clock(), self._journal.entries, self._journal.marks
        self._decisions = {}
        for key, each in located.items():
            wish = wishes.get(each.container.pod_uid)
            cpus, mems = (wish.cpus, wish.mems) if wish else (frozenset[int](), frozenset[int]())
            if observe:
                if cpus and key in self._cpusets:
                    self._decisions[key] = observed(self._cpusets[key])
            elif key in self._cpusets:
                given = numbers(marks[key].written) if key in marks else frozenset[int]()
                seen = self._cpusets[key]
                cpus = wish.within(seen.allowed_cpus) if wish else cpus
                self._decisions[key] = self._reconciler.decide(
                    key, seen, cpus, mems, ours=key in entries, now=now, given=given
                )
            elif key in self._unreadable and cpus:
                text = self._unreadable[key]
                self._decisions[key] = Decision(Action.LEAVE, Finding.UNREADABLE, cpus, text=text)
            elif key in self._unreadable and key in entries:
                self._decisions[key] = Decision(Action.RESTORE, Finding.NONE)

    async def _write_down(self, located: Mapping[str, Located], wishes: Mapping[str, PodWish], *, foreign: bool) -> str:
        """Have what is to be written in the journal; without it, nothing is. The problem there is."""
        entries = self._journal.entries
        for key, decision in self._decisions.items():
            if decision.action is Action.PIN and foreign and key not in entries:
                self._decisions[key] = decision._replace(action=Action.LEAVE)
        new = [
            self._entry(located[key], wishes[located[key].container.pod_uid], decision)
            for key, decision in self._decisions.items()
            if decision.action is Action.PIN
        ]
        try:
            if new:
                await asyncio.to_thread(self._journal.add, new)
        except JournalError as error:
            for entry in new:
                if entry.container not in entries:
                    decision = self._decisions[entry.container]
                    self._decisions[entry.container] = decision._replace(action=Action.LEAVE, text=str(error))
            return str(error)
        return ""

    async def _pin(self, located: Mapping[str, Located], end: float) -> None:
        """Give containers their CPUs, and ask the runtime for that until `end`, once at least."""
        first = True
        for key, decision in list(self._decisions.items()):
            if decision.action is not Action.PIN or self._stopping:
                continue
            ask, first = not self._containers.late and (first or self._clock() < end), False
            each = located[key]
            problem = ""
            try:
                written = await self._give(each, decision, ask=ask)
                elsewhere = await asyncio.to_thread(strays, each.cgroup, decision.cpus, first=each.pid)
                metrics.WRITES.labels(written.way).inc()
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
                text = self._strays[key] = _strayed(elsewhere[0]) if elsewhere else ""
                finding = Finding.STRAYED if elsewhere else Finding.IN_EFFECT
                self._decisions[key] = decision._replace(finding=finding, text=text)
            else:
                self._decisions[key] = decision._replace(text=problem)

    async def _tell_runtime(self, located: Mapping[str, Located], end: float) -> None:
        """Have the runtime hear of CPUs that were given without it, until `end`: it would set others one day."""
        for key in self._untold.waiting(self._clock()):
            decision = self._decisions.get(key)
            if self._clock() >= end or self._stopping or self._containers.silence:
                return
            if decision is not None and decision.action is Action.PIN:
                continue  # it was written just now
            if decision is None or decision.finding not in _IN_EFFECT:
                self._untold.later(key, self._clock())
                continue
            try:
                written = await self._give(located[key], decision)
            except (CpusetError, NotInEffectError) as error:
                self._untold.later(key, self._clock())
                log.info("the runtime was not told of a container's CPUs", container=key, problem=str(error))
                continue
            if written.awaited:
                return
            if not written.answered:
                self._untold.rest(self._clock())
                return
            if not written.unsettled:
                metrics.WRITES.labels(written.way).inc()

    async def _give(self, each: Located, decision: Decision, *, ask: bool = True) -> Written:
        """Give a container its CPUs, and keep in mind whether the runtime has heard of it."""
        key = each.container.id
        target = Target(key, each.cgroup, decision.cpus, decision.mems)
        written = await self._writer.write(target, ask=ask, hurry=True)
        self._untold.note(key, written, self._clock())
        return written

    async def _restore(self, ended: list[str], leave: Leave) -> str:
        """Give back what is wanted no more, and forget containers that have ended. The first problem, if any."""
        entries = self._journal.entries
        keys = [key for key, decision in self._decisions.items() if decision.action is Action.RESTORE]
        # What holds the namespaces of a pod is no container to the runtime, and has its cgroup all the same.
        still = [key for key in ended if key in entries and self._hierarchy.stated(entries[key].cgroup)]
        gone = [entries[key] for key in ended if key in entries and key not in still]
        outcomes = await self._give_back(gone, leave, asking=lambda: not self._stopping)
        outcomes += await self._let_go([] if self._containers.late else [*keys, *still], leave)
        for key in keys:
            self._cpusets.pop(key, None)
        problems = [f"{outcome.entry}: {outcome.problem}" for outcome in outcomes if outcome.problem]
        marked = [key for key in ended if key in self._journal.marks]
        try:
            if marked:
                await asyncio.to_thread(self._journal.remove, marked)
        except JournalError as error:
            problems.append(str(error))
        return next(iter(problems), "")

    async def _let_go(self, keys: list[str], leave: Leave) -> list[Restored]:
        """Give containers back what they had, as many as there is time for; others have their turn in later rounds."""
        end, outcomes = self._clock() + WRITE_SECONDS, []
        self._let_go_at = {key: self._let_go_at.get(key, 0.0) for key in keys}
        for key in sorted(keys, key=self._let_go_at.__getitem__):
            self._let_go_at[key] = self._clock()
            entry = self._journal.entries[key]
            outcomes += await self._give_back([entry], leave, asking=lambda: not self._stopping)
            if self._clock() >= end:
                break
        return outcomes

    def _tell(self, state: PodState | None, each: Located, decision: Decision) -> None:
        if state is None:
            return
        state.cpus |= decision.cpus
        found = self._cpusets.get(each.container.id)
        state.effective_cpus |= found.effective_cpus if found else frozenset()
        state.findings[each.container.name] = (decision.finding, decision.text)

    def _entry(self, each: Located, wish: PodWish, decision: Decision) -> Entry:
        found = self._cpusets[each.container.id]
        return Entry(
            container=each.container.id,
            cgroup=str(self._hierarchy.path_of(each.cgroup)),
            cpus=found.cpus,
            mems=found.mems,
            namespace=wish.namespace,
            pod=wish.name,
            name=each.container.name,
            written=format_cpulist(decision.cpus),
        )


def _strayed(pid: int) -> str:
    return f"process {pid} may run on other CPUs; it has left the container's cgroup, start the container again"


def _changed(found: Cpuset, decision: Decision) -> Cpuset:
    return dataclasses.replace(found, effective_cpus=decision.cpus, effective_mems=decision.mems)
