"""The containers of pods, their cgroups and their cpusets: asked of the runtime, or found in the hierarchy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from agents.node.pinning.cgroup_paths import CgroupPathError, container_path, may_be
from agents.node.pinning.cpuset import PROC, Cpuset, CpusetError, is_in_effect, is_populated, read_cpuset
from agents.node.pinning.cri import Container, CriError, Place, RuntimeClient
from agents.node.pinning.hierarchy import Hierarchy
from agents.node.pinning.whose import container_name, kinds

log = structlog.get_logger(__name__)

ASK_SECONDS: Final = 0.25
"""How long the runtime is asked in one round where containers are. Those that are left are found by their cgroups, and
asked about in later rounds: a runtime that takes a tenth of a second for each has a hundred pods wait for ten."""
LIST_SECONDS: Final = 0.25
"""How long a round waits for the runtime to say which containers run. One that takes seconds, as while it starts a
hundred, is waited for in later rounds; meanwhile those are found that are surely containers of their pods."""
MOUNTS_SECONDS: Final = 0.1
"""How long is looked in one round at what is mounted in containers that are not known otherwise to be such."""
STALE_SECONDS: Final = 10.0
"""How long ago it may have been asked what it says."""
_LATE: Final = "it has not said yet which containers run"


class Located(NamedTuple):
    """A container that runs, and where."""

    container: Container
    """the container"""
    cgroup: Path
    """directory of its cgroup"""
    pid: int
    """its first process in the host's PID namespace; 0: not known"""


class Cpusets(NamedTuple):
    """Cpusets of containers, by ID; those of containers that have ended are in neither."""

    read: dict[str, Cpuset]
    """those that could be read"""
    problems: dict[str, str]
    """why the others could not"""


class Containers:
    """Finds containers; remembers where each is."""

    def __init__(
        self,
        runtime: RuntimeClient,
        hierarchy: Hierarchy,
        *,
        beat: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        patience: float | None = None,
        proc: Path = PROC,
    ) -> None:
        """Prepare without I/O.

        Args:
            runtime: connection to the container runtime.
            hierarchy: where cgroups are.
            beat: called for each container that is asked about, which shows that work goes on.
            clock: monotonic seconds.
            patience: seconds that the runtime is waited for until it says which containers run; None: until it does.
            proc: where processes are.
        """
        self._runtime = runtime
        self._hierarchy = hierarchy
        self._beat = beat
        self._clock = clock
        self._unanswered: set[str] = set()
        self._known: dict[str, Located] = {}
        self._silence = ""
        self._patience, self._proc = patience, proc
        self._listing: asyncio.Task[tuple[Container, ...]] | None = None
        self._asked_at = 0.0
        self._early: dict[str, Located] = {}
        """those that are surely containers of their pods, and that the runtime has not yet said to run"""
        self._late = self._tells = False

    @property
    def silence(self) -> str:
        """Why the runtime did not say which containers run; empty while it does."""
        return _LATE if self._late else self._silence

    @property
    def late(self) -> bool:
        """Whether the runtime is still to say which containers run, and nothing else is to be asked of it."""
        return self._late

    def close(self) -> None:
        """Wait for the runtime no more."""
        if self._listing is not None and not self._listing.cancel() and not self._listing.cancelled():
            self._listing.exception()  # it has one, and nobody is to complain that it was not looked at
        self._listing = None

    async def of(self, pod_uids: frozenset[str], others: Mapping[str, str]) -> list[Located]:
        """Return the containers of these pods, and others by ID, as far as they run and have a cgroup.

        The others have with them where their cgroups are said to be, from the top of the hierarchy.

        While the runtime does not answer, containers are found by the names of cgroups; while it may still answer, by
        what the kubelet has mounted as well.
        """
        waited = self._late
        try:
            running = await self._running()
        except CriError as error:
            self._say(str(error))
            return await asyncio.to_thread(self._search, pod_uids, others)
        self._late = running is None
        if running is None:
            return await asyncio.to_thread(self._search, pod_uids, others, sure=True)
        self._say("")
        if waited:  # It may say what ran rounds ago, and what came since is not to wait for the next answer.
            await asyncio.to_thread(self._search, pod_uids, others, sure=True)
        chosen = [found for found in running if found.pod_uid in pod_uids or found.id in others]
        # One that was found by its cgroup while the runtime was silent has no process that is known.
        again = self._unanswered if not self._runtime.silent else set()
        new = [each for each in chosen if each.id not in self._known]
        await self._locate([*new, *(each for each in chosen if each.id in self._known and each.id in again)])
        present = {container.id for container in chosen}
        # A runtime that has lost sight of one that runs, as of its shim, says nothing of it: it is no less pinned.
        wanted = {key: each for key, each in self._known.items() if each.container.pod_uid in pod_uids}
        present |= {key for key, each in wanted.items() if key not in present and is_populated(each.cgroup)}
        self._unanswered &= present
        self._known = {key: located for key, located in self._known.items() if key in present}
        self._forget_early(present)
        early = [each for key, each in self._early.items() if each.container.pod_uid in pod_uids or key in others]
        return [*self._known.values(), *early]

    async def _running(self) -> tuple[Container, ...] | None:
        """What the runtime says runs; None while it is still to say so."""
        if self._patience is None:
            return await self._runtime.containers()
        if self._listing is not None and self._listing.done() and self._clock() - self._asked_at > STALE_SECONDS:
            self._listing.exception()
            self._listing = None
        if self._listing is None:
            self._asked_at = self._clock()
            self._listing = asyncio.ensure_future(self._runtime.containers())
        done, _ = await asyncio.wait({self._listing}, timeout=self._patience)
        if not done:
            return None
        listing, self._listing, self._late = self._listing, None, False
        return listing.result()

    def _forget_early(self, present: Collection[str]) -> None:
        """Forget those that the runtime says to run, and those that have ended."""
        self._early = {
            key: each for key, each in self._early.items() if key not in present and os.path.isdir(each.cgroup)
        }

    def all_there(self) -> bool:
        """Return whether none of the containers that were found last has ended."""
        return all(os.path.isdir(located.cgroup) for located in self._known.values())

    async def cpusets(self, located: Iterable[Located], known: Mapping[str, Cpuset]) -> Cpusets:
        """Return the cpusets of containers; those that are known, by ID, as they were while the same is in effect."""
        wanted = list(located)
        return await asyncio.to_thread(self._read, wanted, known) if wanted else Cpusets({}, {})

    async def _locate(self, containers: list[Container]) -> None:
        """Find out where containers are, as far as they have a cgroup; the first are asked about before others."""
        end = self._clock() + ASK_SECONDS
        places: dict[str, Place] = {}
        for container in containers:
            if self._clock() < end:
                places[container.id] = await self._place(container.id)
            elif container.id not in self._known:
                places[container.id] = Place("", 0)
                self._unanswered.add(container.id)
        if not places:
            return
        cgroups = await asyncio.to_thread(self._cgroups, {key: place.cgroups_path for key, place in places.items()})
        for container in containers:
            if container.id in cgroups:
                self._known[container.id] = Located(container, cgroups[container.id], places[container.id].pid)

    async def _place(self, container: str) -> Place:
        """Where the runtime says that a container is; nowhere if it does not."""
        self._beat()
        self._unanswered.discard(container)
        try:
            return await self._runtime.place(container, hurry=True)
        except CriError as error:
            if not error.awaited:
                log.info("container not asked about", container=container, error=str(error))
            if not error.answered:
                self._unanswered.add(container)
            return Place("", 0)

    def _cgroups(self, stated: Mapping[str, str]) -> dict[str, Path]:
        found = {}
        for container, text in stated.items():
            with contextlib.suppress(CgroupPathError):
                path = self._hierarchy.stated(container_path(text))
                if path is not None and may_be(path, container):
                    found[container] = path
        # The runtime may see another part of the hierarchy than the agent, as inside a container of its own. All are
        # searched for at once: a node has thousands of cgroups, and a runtime that is silent places no container.
        return found | self._hierarchy.search_all(stated.keys() - found.keys())

    def _search(self, pod_uids: frozenset[str], others: Mapping[str, str], *, sure: bool = False) -> list[Located]:
        """Those with such cgroups; `sure`: of those that are not known before, what is surely a pod's container.

        Where processes tell whose they are, those that do not hold a pod's namespaces, or are still to run.
        """
        located = {
            identity: self._known.get(identity) or Located(Container(identity, "", identity[:12]), cgroup, 0)
            for identity, path in others.items()
            if (cgroup := self._hierarchy.stated(path)) is not None
        }
        unsure, pods = {}, dict[str, dict[str, Path]]()
        for uid, identity, cgroup in self._hierarchy.containers_of(pod_uids):
            pods.setdefault(uid, {})[identity] = cgroup
        end = self._clock() + MOUNTS_SECONDS
        for uid, cgroups in pods.items():
            for identity, name in self._names(uid, cgroups, end, sure=sure).items():
                found = self._known.get(identity) or self._early.get(identity)
                found = found or Located(Container(identity, uid, name or identity[:12]), cgroups[identity], 0)
                if name is None:
                    unsure[identity] = found
                else:
                    located[identity] = found
                    if identity not in self._known:
                        self._early[identity] = found
        self._tells = self._tells or bool(self._early)
        taken = others.keys() if sure or self._tells else unsure.keys()
        return list((located | {key: each for key, each in unsure.items() if key in taken}).values())

    def _names(self, uid: str, cgroups: Mapping[str, Path], end: float, *, sure: bool) -> dict[str, str | None]:
        """Names of a pod's containers, by ID: empty of one that is surely one; None: it may hold the pod's namespaces.

        What surely does so is not among them. At what is mounted is looked until `end`; not in what most likely does
        so while the runtime will tell (`sure`), as to look once may take longer than that.
        """
        names: dict[str, str | None] = {key: "" for key in cgroups if key in self._known or key in self._early}
        new = cgroups.keys() - names.keys()
        if new:
            found = kinds(cgroups, proc=self._proc)
            for identity in new - found.sandboxes:
                if identity in found.containers:
                    names[identity] = ""
                elif self._clock() < end and not (sure and identity in found.presumed):
                    names[identity] = container_name(cgroups[identity], uid, proc=self._proc)
                else:
                    names[identity] = None
        return names

    def _read(self, located: list[Located], known: Mapping[str, Cpuset]) -> Cpusets:
        found, version = Cpusets({}, {}), self._hierarchy.version
        for each in located:
            before = known.get(each.container.id)
            try:
                same = before is not None and is_in_effect(each.cgroup, version, before)
                found.read[each.container.id] = before if before and same else read_cpuset(each.cgroup, version)
            except CpusetError as error:
                if error.gone:
                    self._known.pop(each.container.id, None)
                else:
                    found.problems[each.container.id] = str(error)
        return found

    def _say(self, silence: str) -> None:
        if bool(silence) != bool(self._silence):
            if silence:
                log.warning("the runtime does not answer, containers are found by their cgroups", error=silence)
            else:
                log.info("the runtime answers again")
        self._silence = silence
