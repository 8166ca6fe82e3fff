"""InterPodAffinity: required pod affinity and anti-affinity, in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.domains import nodes_sharing
from berth.scheduling.plugins.base import Filter, Rejection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.pods import PodGroup
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.cache.terms import AffinityTerm

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinity(Filter):
    """Rejects nodes whose domains hold the wrong pods, or not the right ones.

    - Affinity: a node must carry the topology keys of all terms, and in each of its domains there
      must be a pod that all terms select. Exception: while no pod anywhere is selected by all
      terms, a pod that its own terms select may be the first.
    - Anti-affinity: no pod that a term selects may be in the node's domain of that term; a node
      without the key has no domain and passes.
    - The anti-affinity of the pods already there holds against the new pod just the same.
    """

    name = "InterPodAffinity"

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """Nodes ruled out by affinity, by anti-affinity and by the anti-affinity of existing pods."""
        template = info.template
        affinity, anti = template.terms_of("affinity"), template.terms_of("anti_affinity")
        if not affinity and not anti and not state.pods.has_terms("anti_affinity"):
            return ()
        found = []
        ruled_out: Mask = np.zeros(state.size, dtype=np.bool_)
        for reason, nodes in (
            (REASON_AFFINITY, self._unmet(affinity, info, state) if affinity else None),
            (REASON_ANTI_AFFINITY, self._repelled(anti, state) if anti else None),
            (REASON_EXISTING, self._repelling(info, state)),
        ):
            if nodes is not None:
                # The first rule that fails gives a node's reason.
                found.append(Rejection(reason, nodes & ~ruled_out))
                ruled_out |= nodes
        return found

    @staticmethod
    def _unmet(terms: tuple[AffinityTerm, ...], info: PodInfo, state: ClusterState) -> Mask:
        template = info.template
        here = state.pods.count(_selected_by_all(terms, state), state.size) > 0
        keyless: Mask = np.zeros(state.size, dtype=np.bool_)
        without: Mask = np.zeros(state.size, dtype=np.bool_)
        anywhere = False
        for term in terms:
            keyless |= state.domains(term.topology_key) < 0
            with_pods = nodes_sharing(state, term.topology_key, here)
            anywhere = anywhere or bool(with_pods.any())
            without |= ~with_pods
        if not anywhere:
            own = state.namespace_labels(template.namespace)
            if all(term.matches(template.namespace, template.labels, own) for term in terms):
                return keyless
        return keyless | without

    @staticmethod
    def _repelled(terms: tuple[AffinityTerm, ...], state: ClusterState) -> Mask:
        nodes: Mask = np.zeros(state.size, dtype=np.bool_)
        for term in terms:
            here = state.pods.count(_selected_by_all((term,), state), state.size) > 0
            nodes |= nodes_sharing(state, term.topology_key, here)
        return nodes

    @staticmethod
    def _repelling(info: PodInfo, state: ClusterState) -> Mask | None:
        template = info.template
        # Existing pods' terms read the new pod's namespace; an unknown one counts as without labels.
        own = state.namespace_labels(template.namespace) or {}
        nodes: Mask | None = None
        for entry in state.pods.terms("anti_affinity"):
            if not entry.term.matches(template.namespace, template.labels, own):
                continue
            here: Mask = np.zeros(state.size, dtype=np.bool_)
            here[list(entry.pods)] = True
            sharing = nodes_sharing(state, entry.term.topology_key, here)
            nodes = sharing if nodes is None else nodes | sharing
        return nodes


def _selected_by_all(terms: tuple[AffinityTerm, ...], state: ClusterState) -> Iterator[PodGroup]:
    """Groups of pods that every term selects."""
    for namespace in state.pods.namespaces():
        labels = state.namespace_labels(namespace)
        if all(term.selects_namespace(namespace, labels) for term in terms):
            for group in state.pods.matching(namespace, terms[0].selector):
                if all(term.selector.matches(group.labels) for term in terms[1:]):
                    yield group
