"""How much memory there is, and who is cut off before it is used up: one client's flood would end the process for all.

What a connection holds is bounded, at some hundred KiB with what asyncio and the kernel add; ten thousand connections
are more than any proxy is given. So as the limit of the process's cgroup comes near those go that hold most.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Final, Protocol, TypeVar

import structlog
from aiohttp.http_parser import RawRequestMessage

from berth.kube.memory import give_back_now

log = structlog.get_logger(__name__)

SHARE: Final = 0.6
"""Share of what the process has beside itself from which on connections are cut; the rest is for what comes until
they are, and for what the kernel keeps."""
GOAL: Final = 0.5
"""Share to which they are."""
LENIENT: Final = 0.2
"""Share of which it is believed, until free memory was given back, that it is free as connections were cut that held
it: without, all the others that hold as much were cut for it too; with more, too much might be used meanwhile."""
LOOK_SECONDS: Final = 0.1
"""Seconds from one look to the next at the most."""
LOOK_BYTES: Final = 2**22
"""Bytes of clients after which is looked in any case."""
LEAST_BYTES: Final = 16_384
"""Who holds less is cut only where that makes room enough: a request with its answer mostly does."""
FLOOR_BYTES: Final = 4096
"""Who holds less is never cut."""
TELL_SECONDS: Final = 10.0
"""Seconds from one line of the log about it to the next."""
GIVE_BACK_SECONDS: Final = 1.0
"""Seconds from one time to the next that free memory is given back while it is short, or connections were cut."""
LIMIT_SECONDS: Final = 10.0
"""Seconds from one look at the limit to the next: it may change while the process runs."""
CONNECTION_BYTES: Final = 16_384
"""Bytes that a connection takes with a small request under way and what is asked for it, by measurement."""
HEAD_BYTES: Final = 400
"""Bytes that the head of a request takes beside what it says, by measurement."""
FIELD_BYTES: Final = 210
"""The same of each of its fields: a hundred empty ones are 300 bytes when they come."""
_PAGE: Final = resource.getpagesize()


class Holder(Protocol):
    """A connection."""

    @property
    def held(self) -> int:
        """Bytes that it holds, about."""

    def cut(self) -> None:
        """End it at once."""


H = TypeVar("H", bound=Holder)


def memory_limit(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the bytes that this process and its like may have by its cgroup; None: as many as there are.

    Those from which on the kernel slows it down are as good as a limit, and so are those of all cgroups around it.
    """
    found: list[int] = []
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            below, names = root, ["memory.max", "memory.high"]
        elif "memory" in controllers.split(","):
            below, names = root / "memory", ["memory.limit_in_bytes"]
        else:
            continue
        # In a container the path may be that of the host, of which the container sees its own part alone.
        inside = PurePosixPath(path.lstrip("/"))
        for directory, name in product((inside, *inside.parents), names):
            try:
                found.append(int((below / directory / name).read_text()))
            except (OSError, ValueError):  # "max"
                continue
    return min((each for each in found if each < 1 << 60), default=None)


@cache
def _statm(pid: int) -> int:
    """The open file that tells what a process has: as many clients as it may have files leave none to open."""
    return os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)


def memory_used() -> int:
    """Return the bytes that are this process's alone."""
    _, resident, shared, *_ = os.pread(_statm(os.getpid()), 256, 0).split()
    return (int(resident) - int(shared)) * _PAGE


def head_bytes(message: RawRequestMessage) -> int:
    """Return about how much memory the head of a request takes: as bytes, as text, and as the objects around them."""
    said = sum(FIELD_BYTES + 2 * (len(name) + len(value)) for name, value in message.raw_headers)
    return HEAD_BYTES + 2 * len(message.path) + said


def who_goes(holders: Iterable[H], excess: int) -> list[H]:
    """Return those that hold most, until it is as much as there is too much.

    Those that hold little go as well where there are enough of them, as of thousands that each send a few requests at
    once; where not, it is not by clients that memory is short, and cutting all of them would not help.
    """
    found: list[H] = []
    many = sorted(((held, each) for each in holders if (held := each.held) >= FLOOR_BYTES), key=lambda pair: -pair[0])
    little = sum(held for held, _ in many if held < LEAST_BYTES)
    for held, holder in many:
        if excess <= 0 or (held < LEAST_BYTES and little < excess):
            break
        found.append(holder)
        excess -= held
        little -= held if held < LEAST_BYTES else 0
    return found


class Keeper:
    """Cuts connections off whenever a process uses too much."""

    def __init__(
        self,
        limit: int | None,
        holders: Callable[[], Iterable[Holder]],
        used: Callable[[], int] = memory_used,
        base: int = 0,
        limits: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Prepare.

        Args:
            limit: bytes that the process may have; None: as many as there are.
            holders: the connections as they are.
            used: tells how many bytes it has.
            base: what it has without connections.
            limits: tells the limit as it is by then, in a thread; None: as before.
        """
        self.short = False
        """whether it used too much when that was looked at last"""
        self.turned: Callable[[bool], None] = lambda _short: None
        """called when memory is short, and when it is not any more"""
        self._limits, self._base = limits, base
        self._most: int | None = None
        self._goal = self._lenient = 0
        self._free = 0  # what those held that were cut since free memory was given back
        self.bound(limit)
        self._holders = holders
        self._used = used
        self._since = self._count = 0
        self._told = float("-inf")

    def bound(self, limit: int | None) -> None:
        """Have so much from now on; None: as much as there is.

        Where it is less than the process has by itself, it is not for connections to go.
        """
        room = limit - self._base if limit is not None else 0
        self._most = self._base + round(SHARE * room) if room > 0 else None
        self._goal = self._base + round(GOAL * room)
        self._lenient = round(LENIENT * max(room, 0))

    def came(self, size: int) -> bool:
        """Note that so much has come; returns whether memory is short.

        Thousands of clients may send at once, and all that comes before the event loop is round again.
        """
        self._since += size
        if self._since >= LOOK_BYTES:
            self.look()
        return self.short

    def look(self) -> None:
        """Cut off who holds most, if too much is used."""
        self._since = 0
        used, before = self._used() if self._most is not None else 0, self.short
        used -= min(self._free, self._lenient)
        self.short = self._most is not None and used > self._most
        if self.short is not before:
            self.turned(self.short)
        if self.short:
            # What is cut is free when the event loop is round again, and the process has it until it is given back.
            for each in who_goes(self._holders(), used - self._goal):
                self.cut(each)

    def cut(self, holder: Holder) -> None:
        """Cut a connection off."""
        self._count += 1
        self._free += holder.held
        holder.cut()

    async def run(self, every: float = LOOK_SECONDS) -> None:
        """Look time and again, until cancelled."""
        loop = asyncio.get_running_loop()
        given_back, asked = float("-inf"), loop.time()
        while True:
            await asyncio.sleep(every)
            if loop.time() - asked >= LIMIT_SECONDS:
                asked = loop.time()
                # A flood may leave no file to read it from.
                if (limit := await asyncio.to_thread(self._limits)) is not None:
                    self.bound(limit)
            if (self.short or self._free) and loop.time() - given_back >= GIVE_BACK_SECONDS:
                given_back, free = loop.time(), self._free
                gc.collect()
                await asyncio.to_thread(give_back_now)
                self._free -= free
            self.look()
            if self._count and loop.time() - self._told >= TELL_SECONDS:
                log.warning("memory is short, connections that hold most of it are cut", connections=self._count)
                self._told, self._count = loop.time(), 0
