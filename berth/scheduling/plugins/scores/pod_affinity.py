"""InterPodAffinity: preferred pod affinity and anti-affinity, in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.domains import domain_sums
from berth.scheduling.plugins.scores.base import MAX_SCORE, Score, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.pods import PodGroup
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.cache.terms import AffinityTerm


class InterPodAffinityScore(Score):
    """Adds the weights of terms that pods in a node's domains satisfy, and takes off those of anti-affinity.

    Counted are the pod's own preferred terms against the pods already there, the preferred terms of
    those pods against the new pod, and, with ``hard_weight`` each, their required affinity terms.
    """

    name = "InterPodAffinity"

    def __init__(self, *, weight: float = 2.0, hard_weight: int = 1) -> None:
        """``weight`` in the sum; ``hard_weight`` is kube-scheduler's hardPodAffinityWeight."""
        self.weight = weight
        self.hard_weight = hard_weight

    def raw(self, info: PodInfo, state: ClusterState, feasible: Mask) -> Values | None:  # noqa: ARG002
        """Sum of signed weights per node; no opinion when no term on either side matches."""
        total = np.zeros(state.size, dtype=np.int64)
        touched = False
        for kind, sign in (("preferred_affinity", 1), ("preferred_anti_affinity", -1)):
            for term in info.template.terms_of(kind):
                pods = state.pods.count(_selected(term, state), state.size)
                touched |= self._spread(total, term, pods, sign * term.weight, state)
        own = state.namespace_labels(info.template.namespace) or {}
        for kind, sign in (("affinity", 0), ("preferred_affinity", 1), ("preferred_anti_affinity", -1)):
            for entry in state.pods.terms(kind):
                weight = sign * entry.term.weight or self.hard_weight
                if not weight or not entry.term.matches(info.template.namespace, info.template.labels, own):
                    continue
                pods = np.zeros(state.size, dtype=np.int64)
                pods[list(entry.pods)] = list(entry.pods.values())
                touched |= self._spread(total, entry.term, pods, weight, state)
        return total.astype(np.float64) if touched else None

    def normalise(self, raw: Values, feasible: Mask) -> Values:
        """Least to greatest value stretched to 0 to 100, in whole numbers; 0 when all are equal."""
        scores = np.zeros(len(raw))
        least, greatest = raw[feasible].min(), raw[feasible].max()
        if greatest > least:
            scores[feasible] = np.trunc(MAX_SCORE * ((raw[feasible] - least) / (greatest - least)))
        return scores

    @staticmethod
    def _spread(
        total: NDArray[np.int64], term: AffinityTerm, pods: NDArray[np.int64], weight: int, state: ClusterState
    ) -> bool:
        """Add weight times the pods in each node's domain; False when there are none."""
        sums = domain_sums(state, term.topology_key, pods, state.alive)
        if not sums.any():
            return False
        total += weight * sums[state.domains(term.topology_key)]
        return True


def _selected(term: AffinityTerm, state: ClusterState) -> Iterator[PodGroup]:
    for namespace in state.pods.namespaces():
        if term.selects_namespace(namespace, state.namespace_labels(namespace)):
            yield from state.pods.matching(namespace, term.selector)
