"""What moves of planned pods change, remembered until a pod moves that has to do with them.

Single moves and swaps ask for the same moves, again and again while elsewhere something still gets better.
"""

from __future__ import annotations

from collections.abc import Iterable

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.problem import Bools, Floats

MOST = 1_000_000
"""Numbers that are remembered at most."""


class Wishes:
    """Moves of the books' planned pods."""

    def __init__(self, books: Books) -> None:
        """Begin with nothing known."""
        self._books = books
        self._known: dict[int, dict[int, Floats]] = {}
        self._left = MOST

    def of(self, row: int, column: int) -> tuple[Floats, Bools]:
        """Exact change of the objective if a pod of the set moved from a column to each one, and which take it.

        The change is float64[K], not to be written to; the columns are bool[K].
        """
        known = self._known.setdefault(row, {})
        if column in known:
            return known[column], self._books.takers(row, column)
        change, able = self._books.wishes(row, column)
        self._left -= len(change)
        if self._left < 0:
            self._known, self._left = {}, MOST - len(change)
        self._known.setdefault(row, {})[column] = change
        return change, able

    def forget(self, moved: Iterable[int]) -> None:
        """Forget what may have changed now that pods of these sets have moved."""
        books = self._books
        if books.bandwidth.active:
            # Budgets of nodes are shared by all.
            self._known = {}
            return
        related = books.model.relations.of(moved)
        if books.load.callees:
            # Who else calls what they call carries the load as well.
            related = books.model.relations.of(related)
        for row in related:
            self._known.pop(row, None)
