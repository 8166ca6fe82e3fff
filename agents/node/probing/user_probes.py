"""Round trips to users, by ICMP, in threads of their own: users that do not answer hold up no round."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from agents.node.probing.exhaustion import ExhaustedError
from agents.node.probing.icmp import Icmp
from agents.node.probing.pacing import Pacer

THREADS: Final = 4
"""Users that are probed at the same time."""
MOST_LOST: Final = 2
"""Probes without an answer after which a user that has answered none is left: others wait."""
LONGEST_WAIT: Final = 5.0
"""Seconds after which a user whose turn has not come is left. Whoever asked no longer waits then: to measure all the
same would make the next ones late as well, and more are asked for than can be measured."""


class UserTarget(NamedTuple):
    """A user to measure the round trip to."""

    id: str
    """told again with what was found"""
    address: str
    """IP address"""
    probes: int
    """round trips wanted"""


class FoundUser(NamedTuple):
    """What came of a target."""

    id: str
    """that of the target"""
    microseconds: tuple[int, ...]
    """round trips; none: the user did not answer"""
    refused: str = ""
    """why nothing was measured; empty: it was tried"""
    no_turn: bool = False
    """whether it was not tried because others took so long"""


class UserProbes:
    """Measures users one after another, a few at a time."""

    def __init__(
        self,
        found: Callable[[FoundUser], object],
        *,
        rate: float,
        icmp: Icmp | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare.

        Args:
            found: called in any thread with what came of each target.
            rate: probes a second at most.
            icmp: sends them.
            clock: monotonic seconds.
        """
        self._found = found
        self._pacer = Pacer(rate)
        self._icmp = icmp or Icmp()
        self._clock = clock
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="user")

    def ask(self, target: UserTarget) -> None:
        """Have a user measured, after those who were asked for before."""
        self._threads.submit(self._measure, target, self._clock())

    def _measure(self, target: UserTarget, asked: float) -> None:
        if self._clock() - asked > LONGEST_WAIT:
            self._found(FoundUser(target.id, (), f"its turn did not come within {LONGEST_WAIT:g} s", no_turn=True))
            return
        if not self._icmp.permitted:
            self._found(FoundUser(target.id, (), "the kernel does not let the agent send ICMP"))
            return
        round_trips: list[int] = []
        lost = 0
        try:
            for _ in range(target.probes):
                self._pacer.wait()
                measured = self._icmp.probe(target.address)
                if measured is not None:
                    round_trips.append(measured)
                    continue
                lost += 1
                if lost == MOST_LOST and not round_trips:
                    break
        except ExhaustedError:
            self._found(FoundUser(target.id, (), "no descriptor or memory is left for a probe"))
            return
        self._found(FoundUser(target.id, tuple(round_trips)))
