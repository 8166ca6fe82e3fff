"""Better parts of a slice: pod sets go over to a part that they have more links with, or make room there for others."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.replicas.problem import Ints

Links = Mapping[int, Mapping[int, float]]
"""weight of what links each pod set with others"""

PASSES = 4
"""Rounds of moves between parts."""
FEW = 100
"""Pod sets up to which they make room for others: all of a part are asked about all that are linked with it."""


class Division:
    """Pod sets in parts, each of which has room on one node."""

    def __init__(self, parts: Sequence[Sequence[int]], links: Links, request: Ints, room: Ints) -> None:
        """Begin with these parts.

        Args:
            parts: pod sets of each.
            links: between pod sets, in both directions.
            request: int64[M, R], of a pod of each set.
            room: int64[R], of the node that a part is for; what is in a part already may exceed it.
        """
        self._links, self._request, self._room = links, request, room
        self._content = [set(part) for part in parts]
        self._load: list[npt.NDArray[np.int64]] = [request[list(part)].sum(axis=0) for part in parts]
        self._part = {row: number for number, part in enumerate(parts) for row in part}

    @property
    def parts(self) -> list[list[int]]:
        """Pod sets of each part that has some."""
        return [sorted(content) for content in self._content if content]

    def refine(self, budget: Budget = UNLIMITED) -> Generator[None, None, None]:
        """Move pod sets as long as fewer links are cut and there is time, in turns."""
        few = len(self._part) <= FEW
        for _ in range(PASSES):
            moved = False
            for row in self._links:
                yield from budget.pause()
                if budget.over:
                    return
                moved |= self._join(row) or (few and self._make_room(row))
            if not moved:
                return

    def _pulls(self, row: int) -> dict[int, float]:
        """Weight of a pod set's links with each part."""
        pulls: dict[int, float] = {}
        for other, weight in self._links[row].items():
            part = self._part[other]
            pulls[part] = pulls.get(part, 0.0) + weight
        return pulls

    def _fits(self, row: int, part: int) -> bool:
        return bool((self._load[part] + self._request[row] <= self._room).all())

    def _move(self, row: int, part: int) -> None:
        home = self._part[row]
        self._content[home].remove(row)
        self._load[home] = self._load[home] - self._request[row]
        self._content[part].add(row)
        self._load[part] = self._load[part] + self._request[row]
        self._part[row] = part

    def _join(self, row: int) -> bool:
        """Move a pod set to the part that it has most links with, of those with room for it."""
        pulls, home = self._pulls(row), self._part[row]
        for part in sorted(pulls, key=lambda part: (-pulls[part], part)):
            if part == home:
                return False
            if self._come(row, part):
                return True
        return False

    def _make_room(self, row: int) -> bool:
        """Put a pod set apart if more links are whole once others have come into its part, or to it."""
        home = self._part[row]
        if len(self._content[home]) == 1:
            return False
        before = dict(self._part)
        gain = -self._pulls(row).get(home, 0.0)
        apart = len(self._content)
        self._content.append(set())
        self._load.append(np.zeros_like(self._room))
        self._move(row, apart)
        came = True
        while came:
            came = False
            for part in (home, apart):
                for other in self._near(part):
                    more = 0.0 if other == row else self._come(other, part)
                    gain += more
                    came |= more > 0
        if gain > 0:
            return True
        for other, place in before.items():
            if self._part[other] != place:
                self._move(other, place)
        self._content.pop()
        self._load.pop()
        return False

    def _come(self, row: int, part: int) -> float:
        """Move a pod set to a part that has room, if it has more links with it; returns how many more."""
        pulls = self._pulls(row)
        more = pulls.get(part, 0.0) - pulls.get(self._part[row], 0.0)
        if more <= 0 or not self._fits(row, part):
            return 0.0
        self._move(row, part)
        return more

    def _near(self, part: int) -> list[int]:
        """Pod sets elsewhere that are linked with a part, those with most links first."""
        weight: dict[int, float] = {}
        for member in self._content[part]:
            for other, amount in self._links[member].items():
                if self._part[other] != part:
                    weight[other] = weight.get(other, 0.0) + amount
        return sorted(weight, key=lambda other: (-weight[other], other))
