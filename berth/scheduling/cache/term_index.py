"""Affinity terms of placed pods, found by the pods that they may select.

A term is kept under the namespaces that it names or a label that it asks of them, and there under a label that it asks
of pods. A pod that is to be placed looks under the name and labels of its namespace and under its own: so the rules of
one tenant cost the pods of others next to nothing, however many they are. Labels are looked up and not remembered, so
a namespace may change its own at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from berth.scheduling.cache.counts import Counts, add_count
from berth.scheduling.cache.selectors import Selector
from berth.scheduling.cache.terms import AffinityTerm

Mark = tuple[str, str | None]
"""What a term is kept under: a label, (key, None) for whichever value, ("", name) of a namespace, or ANY."""
ANY: Mark = ("", None)
"""Nothing that could be looked up is asked for."""
_FEW = 16
"""Namespaces or values that a term may name to be kept under each of them, and requirements that are looked at."""


@dataclass(slots=True, eq=False)
class TermEntry:
    """Pods with the same affinity term."""

    term: AffinityTerm
    """The term."""
    scopes: tuple[Mark, ...] = ()
    """Marks of namespaces that it is kept under."""
    marks: tuple[Mark, ...] = ()
    """Marks of pods that it is kept under in each of them."""
    pods: Counts = field(default_factory=dict)
    """Its owners per node slot."""


class TermIndex:
    """The distinct terms of one kind with their owners."""

    def __init__(self) -> None:
        """Begin without terms."""
        self._entries: dict[AffinityTerm, TermEntry] = {}
        self._kept: dict[Mark, dict[Mark, dict[TermEntry, None]]] = {}

    def __len__(self) -> int:
        """Number of distinct terms."""
        return len(self._entries)

    def __iter__(self) -> Iterator[TermEntry]:
        """All of them."""
        return iter(self._entries.values())

    def get(self, term: AffinityTerm) -> TermEntry | None:
        """A term with its owners, None without any."""
        return self._entries.get(term)

    def about(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Iterable[tuple[str, str]]
    ) -> Collection[TermEntry]:
        """Those that may select pods of a namespace with some of these labels: all that do, and few that do not."""
        found: dict[TermEntry, None] = {}
        if self._kept:
            marks: list[Mark] = []
            for scope in (("", namespace), *_marks(namespace_labels.items())):
                kept = self._kept.get(scope)
                if kept is not None:
                    marks = marks or _marks(labels)
                    for mark in marks:
                        found.update(kept.get(mark, {}))
        return found

    def count(self, term: AffinityTerm, slot: int, sign: int) -> None:
        """Count an owner on a node (sign 1) or take it off again (sign -1)."""
        entry = self._entries.get(term)
        if entry is None:
            entry = self._entries[term] = self._keep(term)
        add_count(entry.pods, slot, sign)
        if not entry.pods:
            del self._entries[term]
            self._drop(entry)

    def _keep(self, term: AffinityTerm) -> TermEntry:
        scopes = self._scopes(term)
        here = [self._kept.get(scope, {}) for scope in scopes]
        marks = _fewest(term.selector, lambda mark: sum(len(kept.get(mark, ())) for kept in here))
        entry = TermEntry(term, scopes if marks else (), marks)
        for scope in entry.scopes:
            kept = self._kept.setdefault(scope, {})
            for mark in marks:
                kept.setdefault(mark, {})[entry] = None
        return entry

    def _scopes(self, term: AffinityTerm) -> tuple[Mark, ...]:
        if len(term.namespaces) > _FEW:
            return (ANY,)
        selected = _fewest(term.namespace_selector, lambda mark: len(self._kept.get(mark, ())))
        return (*(("", name) for name in term.namespaces), *selected)

    def _drop(self, entry: TermEntry) -> None:
        for scope in entry.scopes:
            kept = self._kept[scope]
            for mark in entry.marks:
                del kept[mark][entry]
                if not kept[mark]:
                    del kept[mark]
            if not kept:
                del self._kept[scope]


def _marks(labels: Iterable[tuple[str, str]]) -> list[Mark]:
    """What terms may be kept under that select something with some of these labels."""
    items = list(labels)
    return [*items, *((key, None) for key, _ in items), ANY]


def _fewest(selector: Selector, kept: Callable[[Mark], int]) -> tuple[Mark, ...]:
    """Marks one of which is that of whatever is selected: those under which the fewest are kept; none for nothing."""
    if selector.nothing:
        return ()
    choices: list[tuple[Mark, ...]] = []
    for key, operator, values in islice(selector.requirements, _FEW):
        if operator == "In" and len(values) <= _FEW:
            choices.append(tuple((key, value) for value in sorted(values)))
        elif operator in ("In", "Exists"):
            choices.append(((key, None),))
    return min(choices, key=lambda marks: sum(map(kept, marks)), default=(ANY,))
