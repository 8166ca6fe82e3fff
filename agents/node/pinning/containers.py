"""The containers of pods, their cgroups and their cpusets: asked of the runtime, or found in the hierarchy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from agents.node.pinning.cgroup_paths import CgroupPathError, container_path
from agents.node.pinning.cpuset import Cpuset, CpusetError, is_in_effect, read_cpuset
from agents.node.pinning.cri import Container, CriError, Place, RuntimeClient
from agents.node.pinning.hierarchy import Hierarchy

log = structlog.get_logger(__name__)

ASK_SECONDS: Final = 0.5
"""How long the runtime is asked in one round where containers are. Those that are left are found by their cgroups, and
asked about in later rounds: a runtime that takes a tenth of a second for each has a hundred pods wait for ten."""


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
    ) -> None:
        """Prepare without I/O.

        Args:
            runtime: connection to the container runtime.
            hierarchy: where cgroups are.
            beat: called for each container that is asked about, which shows that work goes on.
            clock: monotonic seconds.
        """
        self._runtime = runtime
        self._hierarchy = hierarchy
        self._beat = beat
        self._clock = clock
        self._unanswered: set[str] = set()
        self._known: dict[str, Located] = {}
        self._silence = ""

    @property
    def silence(self) -> str:
        """Why the runtime did not say which containers run; empty while it does."""
        return self._silence

    async def of(self, pod_uids: frozenset[str], others: Mapping[str, str]) -> list[Located]:
        """Return the containers of these pods, and others by ID, as far as they run and have a cgroup.

        The others have with them where their cgroups are said to be, from the top of the hierarchy.

        While the runtime does not answer, containers are found by the names of cgroups.
        """
        try:
            running = await self._runtime.containers()
        except CriError as error:
            self._say(str(error))
            return await asyncio.to_thread(self._search, pod_uids, others)
        self._say("")
        chosen = [found for found in running if found.pod_uid in pod_uids or found.id in others]
        # One that was found by its cgroup while the runtime was silent has no process that is known.
        again = self._unanswered if not self._runtime.silent else set()
        new = [each for each in chosen if each.id not in self._known]
        await self._locate([*new, *(each for each in chosen if each.id in self._known and each.id in again)])
        present = {container.id for container in chosen}
        self._unanswered &= present
        self._known = {key: located for key, located in self._known.items() if key in present}
        return list(self._known.values())

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
            return await self._runtime.place(container)
        except CriError as error:
            log.info("container not asked about", container=container, error=str(error))
            if not error.answered:
                self._unanswered.add(container)
            return Place("", 0)

    def _cgroups(self, stated: Mapping[str, str]) -> dict[str, Path]:
        found = {}
        for container, text in stated.items():
            with contextlib.suppress(CgroupPathError):
                path = self._hierarchy.stated(container_path(text))
                if path is not None:
                    found[container] = path
        # The runtime may see another part of the hierarchy than the agent, as inside a container of its own. All are
        # searched for at once: a node has thousands of cgroups, and a runtime that is silent places no container.
        return found | self._hierarchy.search_all(stated.keys() - found.keys())

    def _search(self, pod_uids: frozenset[str], others: Mapping[str, str]) -> list[Located]:
        stated = {identity: self._hierarchy.stated(path) for identity, path in others.items()}
        found = {identity: ("", cgroup) for identity, cgroup in stated.items() if cgroup is not None}
        found |= {identity: (uid, cgroup) for uid, identity, cgroup in self._hierarchy.containers_of(pod_uids)}
        return [
            self._known.get(identity) or Located(Container(identity, uid, identity[:12]), cgroup, 0)
            for identity, (uid, cgroup) in found.items()
        ]

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
