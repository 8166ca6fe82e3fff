"""Indices over the pods that occupy nodes.

Pods are counted by what they have in common, not one by one: pods with equal namespace and labels
form a group, pods with an equal affinity term share an entry, and each holds only "how many on
which slot". A selector is then matched once per group, and the counts become numpy arrays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.scheduling.cache.counts import Counts, add_count
from berth.scheduling.cache.group_table import GroupTable
from berth.scheduling.cache.pod_templates import ANY_ADDRESS, TERM_KINDS, HostPort, PodTemplateInfo, TermKind
from berth.scheduling.cache.selectors import Selector
from berth.scheduling.cache.term_index import TermEntry, TermIndex
from berth.scheduling.cache.terms import AffinityTerm
from berth.scheduling.cache.volumes import DiskUse

OFTEN = 8
"""How often all groups are looked at, one by one, until a table of them is made; it is good until pods come or go."""

LabelsKey = tuple[str, tuple[tuple[str, str], ...]]
"""Namespace and sorted labels."""
K = TypeVar("K")
L = TypeVar("L")


def _count_inside(table: dict[K, dict[L, Counts]], key: K, inner: L, slot: int, sign: int) -> None:
    """Change a count in a table of tables and drop what becomes empty."""
    users = table.setdefault(key, {})
    counts = users.setdefault(inner, {})
    add_count(counts, slot, sign)
    if not counts:
        del users[inner]
        if not users:
            del table[key]


@dataclass(slots=True, eq=False)
class PodGroup:
    """Pods that no selector can tell apart."""

    labels: Mapping[str, str]
    """Their common labels."""
    pods: Counts = field(default_factory=dict)
    """All of them per node slot."""
    staying: Counts = field(default_factory=dict)
    """Those that are not being deleted, which are the ones that topology spread counts."""


class PodIndex:
    """Groups, affinity terms, host ports and claims of the pods on nodes."""

    def __init__(self) -> None:
        """Begin without pods."""
        self._groups: dict[str, dict[LabelsKey, PodGroup]] = {}
        # Groups by what they are: the hash of a key of thousands of labels takes as long as it is, at each of these.
        self._by_label: dict[str, defaultdict[tuple[str, str], dict[PodGroup, None]]] = {}
        self._terms: dict[TermKind, TermIndex] = {kind: TermIndex() for kind in TERM_KINDS}
        self._ports: dict[tuple[str, int], dict[str, Counts]] = {}
        self._disks: dict[tuple[str, ...], dict[bool, Counts]] = {}
        self._claims: dict[str, Counts] = {}
        self._node_claims: defaultdict[int, dict[str, int]] = defaultdict(dict)
        self._claims_changed: set[int] = set()
        self._table: GroupTable | None = None
        self._looked_at = 0
        """groups that selectors were asked about since pods came or went"""
        self._all = 0
        """groups of all namespaces"""

    def add(
        self,
        template: PodTemplateInfo,
        slot: int,
        sign: int,
        *,
        terminating: bool,
        claims: tuple[str, ...] = (),
        disks: tuple[DiskUse, ...] = (),
    ) -> None:
        """Count a pod on a node (sign 1) or take it off again (sign -1)."""
        self._count_group(template, slot, sign, terminating=terminating)
        for kind, terms in template.terms.items():
            for term in terms:
                self._terms[kind].count(term, slot, sign)
        for address, protocol, number in template.host_ports:
            _count_inside(self._ports, (protocol, number), address, slot, sign)
        for claim in claims:
            self._count_claim(claim, slot, sign)
        for identity, shareable in disks:
            _count_inside(self._disks, identity, shareable, slot, sign)

    def count(self, groups: Iterable[PodGroup], size: int, *, staying: bool = False) -> NDArray[np.int64]:
        """int64[size]: pods of these groups per node slot; ``staying`` leaves out those being deleted."""
        slots: list[int] = []
        numbers: list[int] = []
        for group in groups:
            counts = group.staying if staying else group.pods
            slots.extend(counts.keys())
            numbers.extend(counts.values())
        total = np.zeros(size, dtype=np.int64)
        if slots:
            np.add.at(total, np.asarray(slots, dtype=np.intp), np.asarray(numbers, dtype=np.int64))
        return total

    def matching(self, namespace: str, selector: Selector) -> Iterator[PodGroup]:
        """The groups of a namespace that a selector selects."""
        for group in chain.from_iterable(self._candidates(namespace, selector)):
            self._looked_at += 1
            if selector.matches(group.labels):
                yield group

    def candidates(self, namespace: str, selector: Selector) -> int:
        """How many groups :meth:`matching` looks at."""
        return sum(map(len, self._candidates(namespace, selector)))

    def table(self, more: int = 0) -> GroupTable | None:
        """All groups as a table, once looks at groups, and so `more`, make it worth while; else None."""
        if self._table is None and self._looked_at + more > OFTEN * self._all:
            self._table = GroupTable({name: groups.values() for name, groups in self._groups.items()})
        return self._table

    def forget_table(self) -> None:
        """Pods have come or gone, or namespaces have other labels."""
        self._table, self._looked_at = None, 0

    def namespaces(self) -> Iterator[str]:
        """Namespaces that have pods on nodes."""
        return iter(self._groups)

    def terms(self, kind: TermKind) -> Iterator[TermEntry]:
        """The distinct terms of a kind with their owners."""
        return iter(self._terms[kind])

    def terms_about(
        self, kind: TermKind, namespace: str, namespace_labels: Mapping[str, str], labels: Iterable[tuple[str, str]]
    ) -> Collection[TermEntry]:
        """Those of :meth:`terms` that may select pods of a namespace with some of these labels, and few others."""
        return self._terms[kind].about(namespace, namespace_labels, labels)

    def term(self, kind: TermKind, term: AffinityTerm) -> TermEntry | None:
        """A term with its owners, None without any."""
        return self._terms[kind].get(term)

    def has_terms(self, kind: TermKind) -> bool:
        """Whether any pod has a term of the kind."""
        return bool(self._terms[kind])

    def port_conflicts(self, port: HostPort) -> Iterator[Counts]:
        """Users of the port, per node slot, that a pod wanting it conflicts with.

        Any address conflicts with every address; a certain address conflicts with itself and with
        any address.
        """
        address, protocol, number = port
        users = self._ports.get((protocol, number))
        if users is None:
            return
        for other, counts in users.items():
            if address in (ANY_ADDRESS, other) or other == ANY_ADDRESS:
                yield counts

    def disk_conflicts(self, disk: DiskUse) -> Iterator[Counts]:
        """Users of an in-tree disk, per node slot, that a further user conflicts with."""
        identity, shareable = disk
        for other_shareable, counts in self._disks.get(identity, {}).items():
            if not (shareable and other_shareable):
                yield counts

    def claim_users(self, claim: str) -> Counts:
        """Pods per node slot that use a claim (``namespace/name``)."""
        return self._claims.get(claim, {})

    def claims_on(self, slot: int) -> Mapping[str, int]:
        """Claims in use on a node, with the number of their pods there."""
        return self._node_claims.get(slot, {})

    def take_claims_changed(self) -> set[int]:
        """Slots of nodes where other claims are in use than when this was asked before."""
        changed, self._claims_changed = self._claims_changed, set()
        return changed

    def _candidates(self, namespace: str, selector: Selector) -> Sequence[Collection[PodGroup]]:
        """Groups that may match, in parts: those with the label that the fewest carry, where the selector names labels.

        Pods with labels of their own, as in a StatefulSet, are a group each; looking at all of
        them would make a selector as slow as there are pods.
        """
        groups = self._groups.get(namespace)
        if groups is None or selector.nothing:
            return ()
        by_label = self._by_label[namespace]
        fewest: list[Collection[PodGroup]] = [groups.values()]
        size = len(groups)
        for key, operator, values in selector.requirements:
            if operator == "In":
                found: list[Collection[PodGroup]] = [by_label.get((key, value), {}).keys() for value in values]
                total = sum(map(len, found))
                if total < size:
                    fewest, size = found, total
        return fewest

    def _count_group(self, template: PodTemplateInfo, slot: int, sign: int, *, terminating: bool) -> None:
        self.forget_table()
        groups = self._groups.setdefault(template.namespace, {})
        group = groups.get(template.group_key)
        if group is None:
            group = groups[template.group_key] = PodGroup(template.labels)
            self._all += 1
            by_label = self._by_label.setdefault(template.namespace, defaultdict(dict))
            for label in template.labels.items():
                by_label[label][group] = None
        add_count(group.pods, slot, sign)
        if not terminating:
            add_count(group.staying, slot, sign)
        if not group.pods:
            self._drop_group(template, groups)

    def _drop_group(self, template: PodTemplateInfo, groups: dict[LabelsKey, PodGroup]) -> None:
        group = groups.pop(template.group_key)
        self._all -= 1
        if not groups:
            del self._groups[template.namespace]
            del self._by_label[template.namespace]
            return
        by_label = self._by_label[template.namespace]
        for label in template.labels.items():
            del by_label[label][group]
            if not by_label[label]:
                del by_label[label]

    def _count_claim(self, claim: str, slot: int, sign: int) -> None:
        counts = self._claims.setdefault(claim, {})
        add_count(counts, slot, sign)
        if not counts:
            del self._claims[claim]
        here = self._node_claims[slot]
        number = here.get(claim, 0) + sign
        if not number or claim not in here:
            self._claims_changed.add(slot)
        if number:
            here[claim] = number
        else:
            del here[claim]
            if not here:
                del self._node_claims[slot]
