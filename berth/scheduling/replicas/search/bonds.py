"""Required affinity as starts see it: who must share a node, and who is to be placed before whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.rule import Affinity

BOND = 1e6
"""Weight of required affinity by node beside edges of weight 1."""
FEW = 4
"""Pod sets that a rule selects at most to be looked at."""


def bonds(books: Books, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs of pod sets: every pod of the first must share a node with one of the second."""
    for rule, subjects, selects in _steps(books, rows):
        if len(selects) == len(rule.selects) == 1 and books.model.domains(rule.domain).single:
            yield from ((row, selects[0]) for row in subjects)


def anchors_first(books: Books, rows: Sequence[int]) -> dict[int, int]:
    """How many steps of required affinity each pod set is from the end of its chain; 0 for those in a circle."""
    rank, waits_for = dict.fromkeys(rows, 0), dict.fromkeys(rows, 0)
    followers: dict[int, list[int]] = {row: [] for row in rows}
    for _, subjects, selects in _steps(books, rows):
        for other in selects:
            followers[other] += subjects
        for row in subjects:
            waits_for[row] += len(selects)
    queue = [row for row, count in waits_for.items() if not count]
    for row in queue:
        for follower in followers[row]:
            rank[follower] = max(rank[follower], rank[row] + 1)
            waits_for[follower] -= 1
            if not waits_for[follower]:
                queue.append(follower)
    return rank


def _steps(books: Books, rows: Sequence[int]) -> Iterator[tuple[Affinity, list[int], list[int]]]:
    """Required affinity between these pod sets: who must be near, and whom; who is selected itself may be alone."""
    among = frozenset(rows)
    for number in dict.fromkeys(number for row in rows for number in books.rule_numbers[row]):
        rule = books.model.rules[number]
        if isinstance(rule, Affinity) and rule.weight is None and len(rule.selects) <= FEW:
            subjects = [row for row in dict.fromkeys(rule.subjects) if row in among and row not in rule.selects]
            yield rule, subjects, [row for row in dict.fromkeys(rule.selects) if row in among]
