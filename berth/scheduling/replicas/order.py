"""Is there an order in which pods with required affinity can be bound one after another?

Two pods that wait for each other never are, and only the first of its kind may go where no selected pod is. What a
plan's counts allow is therefore not enough: this looks for the order. Whoever can be bound is bound, those first that
must be the first of their kind; of few pods all orders are tried if that leads nowhere.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.rule import Affinity

FEW = 40
"""Pods of which all orders are tried."""
LOOKS = 200_000
"""Looks at a term of a pod at most while orders are tried."""

Pod = tuple[int, int]
"""pod set and column"""
Place = tuple[int, int]
"""rule and domain"""


class _Bound:
    """Who is bound, as far as rules look at it."""

    def __init__(self, rules: Sequence[Affinity], domains: Sequence[Sequence[int]]) -> None:
        self._rules, self._domains = rules, domains
        self._of: defaultdict[int, list[int]] = defaultdict(list)
        self._selecting: defaultdict[int, list[int]] = defaultdict(list)
        self._first: list[bool] = []
        """rules under which a pod may be the first of its kind: nobody selected is placed"""
        self._there: list[Counter[int]] = []
        for number, rule in enumerate(rules):
            for row in dict.fromkeys(rule.subjects):
                self._of[row].append(number)
            for row in dict.fromkeys(rule.selects):
                self._selecting[row].append(number)
            placed = np.zeros(0, dtype=np.int64) if rule.placed is None else rule.domain[rule.placed > 0]
            self._first.append(not len(placed))
            self._there.append(Counter(placed.tolist()))
        self._selects = [frozenset(rule.selects) for rule in rules]
        self._matching = [0] * len(rules)
        self.looks = 0
        """at a term of a pod, so far"""

    def bind(self, pod: Pod, count: int = 1) -> list[Place]:
        """Count a pod (or forget it); returns the places where a rule has its first pod with it."""
        first: list[Place] = []
        for number in self._selecting[pod[0]]:
            place = self._domains[number][pod[1]]
            if not self._there[number][place]:
                first.append((number, place))
            self._there[number][place] += count
            self._matching[number] += count
        return first

    def able(self, pod: Pod) -> bool:
        """Whether the pod's terms are all met."""
        return self.missing(pod, self.terms(pod)) is None

    def terms(self, pod: Pod) -> Sequence[int]:
        """Rules that have the pod as a subject."""
        return self._of[pod[0]]

    def missing(self, pod: Pod, terms: Sequence[int]) -> tuple[Place, Sequence[int]] | None:
        """Where the first of a pod's terms that is not met waits for somebody, and which to look at then.

        That is it, those behind it, and before it those by which the pod may be the first of its kind: somebody else
        may be that meanwhile. None if all are met.
        """
        first: list[int] = []
        for at, number in enumerate(terms):
            self.looks += 1
            place = self._domains[number][pod[1]]
            if place >= 0 and self._there[number][place] > 0:
                continue
            if place < 0 or not self._may_be_first(number, pod[0]):
                return (number, place), [*first, *terms[at:]]
            first.append(number)
        return None

    def _may_be_first(self, number: int, row: int) -> bool:
        return self._first[number] and not self._matching[number] and row in self._selects[number]


def required(model: Model) -> list[Affinity]:
    """The rules that ask for an order."""
    return [rule for rule in model.rules if isinstance(rule, Affinity) and rule.weight is None]


def has_order(books: Books) -> bool:
    """Whether the planned pods can be bound one by one as far as required affinity goes."""
    rules = required(books.model)
    if not rules:
        return True
    columns = books.model.columns
    concerned = {row for rule in rules for row in (*rule.subjects, *rule.selects)}
    rows = sorted(concerned)
    pods = [(rows[number], column) for number, column in np.argwhere(books.planned[rows]).tolist()]
    domains: dict[int, list[int]] = {}
    for rule in rules:
        if id(rule.domain) not in domains:
            domains[id(rule.domain)] = rule.domain[columns].tolist()
    return binding_order(rules, [domains[id(rule.domain)] for rule in rules], pods) is not None


def binding_order(rules: Sequence[Affinity], domains: Sequence[Sequence[int]], pods: list[Pod]) -> list[Pod] | None:
    """An order in which pods can be bound one by one as far as required affinity goes, None if none is found.

    Args:
        rules: required affinity.
        domains: of each rule, domain of each column.
        pods: subjects of the rules and those that they select; one stands for all of its set on its column. Where
            there is a choice those come first that are first here.
    """
    pods = _first_of_their_kind(rules, domains, pods)
    found = _greedily(_Bound(rules, domains), pods)
    if found is None and len(pods) <= FEW:
        found = _in_any_order(_Bound(rules, domains), pods)
    return found


def _first_of_their_kind(rules: Sequence[Affinity], domains: Sequence[Sequence[int]], pods: list[Pod]) -> list[Pod]:
    """The pods, those first whom nothing but subjects of their rule could anchor, then those without terms."""
    first: set[Pod] = set()
    subjects: set[int] = set()
    columns: defaultdict[int, list[int]] = defaultdict(list)
    for row, column in pods:
        columns[row].append(column)
    for rule, domain in zip(rules, domains, strict=True):
        own = frozenset(rule.subjects)
        others = frozenset(rule.selects) - own
        anchored = {domain[column] for row in others for column in columns.get(row, ())}
        if rule.placed is not None:
            anchored |= set(rule.domain[rule.placed > 0].tolist())
        anchored.discard(-1)
        subjects |= own
        first |= {(row, column) for row in own for column in columns.get(row, ()) if domain[column] not in anchored}
    return sorted(pods, key=lambda pod: (pod not in first, pod[0] in subjects))


def _greedily(bound: _Bound, pods: Sequence[Pod]) -> list[Pod] | None:
    """Bind whoever can be bound, in this order; one that had to wait goes on once the last it waited for is there.

    Where nobody is yet, pods may be the first only as long as nobody is: who waits need not be asked again before.
    """
    ready, waiting = list(range(len(pods))), defaultdict[Place, list[int]](list)
    terms = [bound.terms(pod) for pod in pods]
    order: list[Pod] = []
    while ready:
        number = heapq.heappop(ready)
        missing = bound.missing(pods[number], terms[number])
        if missing is not None:
            place, terms[number] = missing
            waiting[place].append(number)
            continue
        order.append(pods[number])
        for place in bound.bind(pods[number]):
            for other in waiting.pop(place, ()):
                heapq.heappush(ready, other)
    return order if len(order) == len(pods) else None


def _in_any_order(bound: _Bound, pods: Sequence[Pod]) -> list[Pod] | None:
    """Depth first over the sets of pods that are bound."""
    everybody = (1 << len(pods)) - 1
    seen: set[int] = set()
    order: list[Pod] = []

    def descend(done: int) -> bool:
        if done == everybody:
            return True
        if done in seen or bound.looks > LOOKS:
            return False
        seen.add(done)
        for number in [n for n, pod in enumerate(pods) if not done >> n & 1 and bound.able(pod)]:
            bound.bind(pods[number])
            order.append(pods[number])
            if descend(done | 1 << number):
                return True
            bound.bind(order.pop(), -1)
        return False

    return order if descend(0) else None
