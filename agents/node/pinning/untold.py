"""Containers that have CPUs of which their runtime is still to hear. No I/O.

Runtimes keep what they were told and set it again with every later update: one that has not heard of a container's CPUs
takes them away from it some day, until that is seen and put right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from agents.node.pinning.writer import Written

REST_SECONDS: Final = 4.0
"""How long the runtime is not told of anything after it did not answer; cpusets are looked at as often."""
REFUSED_SECONDS: Final = 60.0
"""How long it is not told again of a container about which it refused to hear, as while it starts."""


class Untold:
    """Those containers, by ID: first those whose answer is still to come, then the ones that wait longest."""

    def __init__(self, containers: Iterable[str] = ()) -> None:
        """Begin with these, as those that another process gave CPUs to."""
        self._due = dict.fromkeys(containers, 0.0)
        self._rest = 0.0
        self._silent = False

    def note(self, container: str, written: Written, now: float) -> None:
        """Take in that a container was written; `now` is in monotonic seconds."""
        self._due.pop(container, None)
        if written.awaited:
            # Its answer is kept for a short time: with its turn behind all others it would be asked about for ever.
            self._due = {container: now, **self._due}
        elif written.unsettled:
            self._due[container] = now + REFUSED_SECONDS if written.answered else now
        self._silent = self._silent and not written.answered

    def later(self, container: str, now: float) -> None:
        """Have a container wait that has not what is wanted."""
        self._due.pop(container, None)
        self._due[container] = now + REFUSED_SECONDS

    def rest(self, now: float) -> None:
        """Leave the runtime alone for a while, since it did not answer."""
        self._rest, self._silent = now + REST_SECONDS, True

    def keep(self, containers: Collection[str]) -> None:
        """Forget all containers but these."""
        self._due = {key: due for key, due in self._due.items() if key in containers}

    def waiting(self, now: float) -> list[str]:
        """Return those of which the runtime is to be told now."""
        return [key for key, due in self._due.items() if now >= max(due, self._rest)]

    def hurried(self, now: float) -> bool:
        """Return whether to tell it before cpusets are looked at anyway; not one that did not answer last."""
        return not self._silent and bool(self.waiting(now))
