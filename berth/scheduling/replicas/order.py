"""Is there an order in which pods with required affinity can be bound one after another?

Two pods that wait for each other never are, and only the first of its kind may go where no selected pod is. What a
plan's counts allow is therefore not enough: this looks for the order, depth first, and nearly always finds it at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.rule import Affinity

STEPS = 2000
"""Bindings that are tried at most."""

Pod = tuple[int, int]
"""pod set and column"""


class _Search:
    def __init__(self, books: Books, rules: list[Affinity]) -> None:
        columns = books.model.columns
        concerned = {row for rule in rules for row in (*rule.subjects, *rule.selects)}
        self.pods = frozenset((r, k) for r, k in np.argwhere(books.planned).tolist() if r in concerned)
        self._domains = [rule.domain[columns].tolist() for rule in rules]
        self._placed = [
            set() if rule.placed is None else set(rule.domain[rule.placed > 0].tolist()) - {-1} for rule in rules
        ]
        self._anywhere = [rule.placed is not None and bool(rule.placed.any()) for rule in rules]
        self._rules = rules
        self._of: defaultdict[int, list[int]] = defaultdict(list)
        for number, rule in enumerate(rules):
            for row in rule.subjects:
                self._of[row].append(number)
        self._first = {pod for pod in self.pods for number in self._of[pod[0]] if self._lonely(number, pod)}

    def _lonely(self, number: int, pod: Pod) -> bool:
        """Whether nothing but subjects of the rule could anchor a pod where it is."""
        rule, domain = self._rules[number], self._domains[number]
        place = domain[pod[1]]
        others = any(r in rule.selects and r not in rule.subjects and domain[k] == place for r, k in self.pods)
        return place not in self._placed[number] and not others

    def _met(self, number: int, pod: Pod, bound: frozenset[Pod]) -> bool:
        rule, domain = self._rules[number], self._domains[number]
        place = domain[pod[1]]
        if place < 0:
            return False
        matching = [domain[k] for r, k in bound if r in rule.selects]
        if place in self._placed[number] or place in matching:
            return True
        return pod[0] in rule.selects and not matching and not self._anywhere[number]

    def _next(self, bound: frozenset[Pod]) -> Iterator[Pod]:
        able = [
            pod
            for pod in sorted(self.pods - bound)
            if all(self._met(number, pod, bound) for number in self._of[pod[0]])
        ]
        # Those that must be first of their kind go before anybody who would take that from them.
        return iter(sorted(able, key=lambda pod: (pod not in self._first, bool(self._of[pod[0]]), pod)))

    def run(self) -> bool:
        seen: set[frozenset[Pod]] = set()
        stack = [frozenset[Pod]()]
        for _ in range(STEPS + len(self.pods)):
            if not stack:
                return False
            bound = stack.pop()
            if len(bound) == len(self.pods):
                return True
            if bound in seen:
                continue
            seen.add(bound)
            stack.extend(bound | {pod} for pod in reversed(list(self._next(bound))))
        return False


def has_order(books: Books) -> bool:
    """Whether the planned pods can be bound one by one as far as required affinity goes."""
    rules = [
        rule
        for rule in books.model.problem.rules
        if isinstance(rule, Affinity) and rule.weight is None and rule.subjects
    ]
    return not rules or _Search(books, rules).run()
