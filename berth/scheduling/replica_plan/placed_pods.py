"""Placed pods as rules between pods count them, by node slot: whom terms select, and who has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.pod_record import PodRecord
from berth.scheduling.cache.pod_templates import PodTemplateInfo, TermKind
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.term_index import TermEntry
from berth.scheduling.cache.terms import AffinityTerm
from berth.scheduling.plugins.inter_pod_affinity import count_selected

Ints = npt.NDArray[np.int64]


class PlacedPods:
    """The pods on nodes, of which soft rules do not count those that a rollout replaces."""

    def __init__(self, state: ClusterState, gone: Sequence[PodRecord]) -> None:
        """Take the cluster, and the pods that soft rules are not to count."""
        self._state = state
        self._gone = gone

    def selected(self, terms: tuple[AffinityTerm, ...]) -> Ints:
        """int64[N], those that all terms select."""
        counts = count_selected(terms, self._state)
        if all(term.weight for term in terms):
            self.take_off_gone(counts, lambda pod: all(self.selects(term, pod.template) for term in terms))
        return counts

    def owners(self, kind: TermKind, entry: TermEntry) -> Ints:
        """int64[N], those with a term; of preferred affinity those alone that no other placed pod meets.

        What one that is met has to pay is nothing, whatever is planned.
        """
        owners = by_slot(entry.pods, self._state.size)
        if entry.term.weight:
            self.take_off_gone(owners, partial(_times, kind, entry.term))
        if kind == "preferred_affinity":
            self._take_off_met(owners, entry.term)
        return owners

    def selects(self, term: AffinityTerm, template: PodTemplateInfo) -> bool:
        """Whether a term selects pods of a template."""
        labels = self._state.namespace_labels(template.namespace) or {}
        return term.matches(template.namespace, template.labels, labels)

    def take_off_gone(self, counts: Ints, counted: Callable[[PodRecord], int]) -> None:
        """Take those that are gone off counts by node, as often as they are counted: others may have ended since."""
        for pod in (self._state.record(pod.uid) for pod in self._gone):
            slot = self._state.node_index.get(pod.node_name) if pod is not None else None
            if pod is not None and slot is not None:
                counts[slot] -= counted(pod)

    def _take_off_met(self, owners: Ints, term: AffinityTerm) -> None:
        selected, domain = self.selected((term,)), self._state.domains(term.topology_key)
        total = np.zeros(int(domain.max(initial=-1)) + 2, dtype=np.int64)
        np.add.at(total, domain, np.where(domain >= 0, selected, 0))
        near = total[domain]
        # One alone meets all others of its domain, and not itself if it is one of them.
        alone = np.flatnonzero((near == 1) & (selected == 1) & (owners > 0))
        owners[near > 0] = 0
        gone = {pod.uid for pod in self._gone}
        for slot in alone.tolist():
            owners[slot] = sum(
                _times("preferred_affinity", term, pod) * self.selects(term, pod.template)
                for pod in self._state.pods_on(self._state.node_name(slot))
                if pod.uid not in gone
            )


def by_slot(counts: Mapping[int, int], size: int) -> Ints:
    """int64[N] of pods by node slot."""
    array = np.zeros(size, dtype=np.int64)
    array[list(counts)] = list(counts.values())
    return array


def _times(kind: TermKind, term: AffinityTerm, pod: PodRecord) -> int:
    """How often a pod states a term."""
    return pod.template.terms_of(kind).count(term)
