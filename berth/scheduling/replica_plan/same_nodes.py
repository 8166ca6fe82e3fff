"""Turns for others while arrays over the nodes are made: as soon as nodes change these are worth nothing."""

from __future__ import annotations

from collections.abc import Generator

from berth.scheduling.cache.state import ClusterState
from berth.scheduling.gang.budget import STRETCH_SECONDS, UNLIMITED, Budget


class NodesChangedError(Exception):
    """Nodes have come, gone or changed while others had their turn."""


class SameNodes:
    """A budget whose pauses end what is under way where nodes have changed meanwhile."""

    def __init__(self, state: ClusterState, budget: Budget = UNLIMITED, *, at_a_stretch: bool = False) -> None:
        """Begin with the nodes as they are; `at_a_stretch` gives nobody a turn, so that they stay so for a second."""
        self._at_a_stretch = at_a_stretch
        self._begun = budget.spent
        self._state = state
        self._budget = budget
        self._version = state.static_version
        self._turn = budget.pauses

    @property
    def exhausted(self) -> bool:
        """Whether time is over, looked at once a turn; at a stretch each time, and it is over sooner."""
        if self._at_a_stretch:
            return self._budget.spent - self._begun >= STRETCH_SECONDS or self._budget.exhausted
        if self._turn == self._budget.pauses:
            return False
        self._turn = self._budget.pauses
        return self._budget.exhausted

    def pause(self) -> Generator[None, None, None]:
        """Yield once if the turn is over.

        Raises:
            NodesChangedError: in the meantime.
        """
        if self._at_a_stretch:
            return
        yield from self._budget.pause()
        if self._state.static_version != self._version:
            raise NodesChangedError
