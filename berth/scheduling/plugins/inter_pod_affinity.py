"""InterPodAffinity (filter, score): pod affinity and anti-affinity, required and preferred, in both directions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from berth.scheduling.cache.domains import domain_sums, nodes_sharing
from berth.scheduling.framework.plugin import MAX_SCORE, FilterPlugin, RejectedNodes, ScorePlugin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.pods import PodGroup
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.cache.terms import AffinityTerm
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Afterwards, Bools, Floats

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
HARD_POD_AFFINITY_WEIGHT = 1
"""kube-scheduler's hardPodAffinityWeight."""


class InterPodAffinity(FilterPlugin, ScorePlugin):
    """Rejects nodes whose domains hold the wrong pods, or not the right ones.

    - Affinity: a node must carry the topology keys of all terms, and in each of its domains there
      must be a pod that all terms select. Exception: while no pod anywhere is selected by all
      terms, a pod that its own terms select may be the first.
    - Anti-affinity: no pod that a term selects may be in the node's domain of that term; a node
      without the key has no domain and passes.
    - The anti-affinity of the pods already there holds against the new pod just the same.
    - Score: the weights of the pod's own preferred terms that pods in a node's domains satisfy, those of the preferred
      terms of the pods there, and HARD_POD_AFFINITY_WEIGHT for each of their required terms; anti-affinity takes off.
    """

    name = "InterPodAffinity"
    score_weight = 2.0
    in_objective = True

    def concerned(self, after: Afterwards) -> bool:
        """Labels that the pod's own terms go by, or those of others about it."""
        template = after.pod.template
        if not after.change.labels:
            return False
        own = (*template.terms_of("affinity"), *template.terms_of("anti_affinity"))
        if any(term.topology_key in after.change.labels for term in own):
            return True
        others = after.cluster.terms_about("anti_affinity", template.namespace, template.labels.items())
        return any(entry.term.topology_key in after.change.labels for entry in others)

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes ruled out by affinity, by anti-affinity and by the anti-affinity of existing pods."""
        info, state = cycle.pod, cycle.cluster
        template = info.template
        affinity, anti = template.terms_of("affinity"), template.terms_of("anti_affinity")
        if not affinity and not anti and not state.pods.has_terms("anti_affinity"):
            return ()
        found = []
        ruled_out: Bools = np.zeros(state.size, dtype=np.bool_)
        for reason, nodes in (
            (REASON_AFFINITY, self._unmet(affinity, info, state) if affinity else None),
            (REASON_ANTI_AFFINITY, self._repelled(anti, state) if anti else None),
            (REASON_EXISTING, self._repelling(info, state)),
        ):
            if nodes is not None:
                # The first rule that fails gives a node's reason.
                found.append(RejectedNodes(reason, nodes & ~ruled_out))
                ruled_out |= nodes
        return found

    @staticmethod
    def _unmet(terms: tuple[AffinityTerm, ...], info: PodInfo, state: ClusterState) -> Bools:
        template = info.template
        here = count_selected(terms, state) > 0
        keyless: Bools = np.zeros(state.size, dtype=np.bool_)
        without: Bools = np.zeros(state.size, dtype=np.bool_)
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
    def _repelled(terms: tuple[AffinityTerm, ...], state: ClusterState) -> Bools:
        nodes: Bools = np.zeros(state.size, dtype=np.bool_)
        for term in terms:
            here = count_selected((term,), state) > 0
            nodes |= nodes_sharing(state, term.topology_key, here)
        return nodes

    @staticmethod
    def _repelling(info: PodInfo, state: ClusterState) -> Bools | None:
        template = info.template
        # Existing pods' terms read the new pod's namespace; an unknown one counts as without labels.
        own = state.namespace_labels(template.namespace) or {}
        owners: defaultdict[str, set[int]] = defaultdict(set)
        for entry in state.terms_about("anti_affinity", template.namespace, template.labels.items()):
            if state.nodes.has_label(entry.term.topology_key) and entry.term.matches(
                template.namespace, template.labels, own
            ):
                owners[entry.term.topology_key].update(entry.pods)
        # Once for all terms of a topology key: pods may state thousands.
        nodes: Bools | None = None
        for key, slots in owners.items():
            here: Bools = np.zeros(state.size, dtype=np.bool_)
            here[list(slots)] = True
            sharing = nodes_sharing(state, key, here)
            nodes = sharing if nodes is None else nodes | sharing
        return nodes

    @override
    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """Sum of signed weights per node; no opinion when no term on either side matches."""
        info, state = cycle.pod, cycle.cluster
        total = np.zeros(state.size, dtype=np.int64)
        touched = False
        for kind, sign in (("preferred_affinity", 1), ("preferred_anti_affinity", -1)):
            for term in info.template.terms_of(kind):
                pods = count_selected((term,), state)
                touched |= self._spread(total, term.topology_key, pods, sign * term.weight, state)
        namespace, labels = info.template.namespace, info.template.labels
        own = state.namespace_labels(namespace) or {}
        weighted: dict[str, NDArray[np.int64]] = {}
        for kind, sign in (("affinity", 0), ("preferred_affinity", 1), ("preferred_anti_affinity", -1)):
            for entry in state.terms_about(kind, namespace, labels.items()):
                weight, key = sign * entry.term.weight or HARD_POD_AFFINITY_WEIGHT, entry.term.topology_key
                if not (weight and state.nodes.has_label(key) and entry.term.matches(namespace, labels, own)):
                    continue
                pods = weighted.setdefault(key, np.zeros(state.size, dtype=np.int64))
                pods[list(entry.pods)] += weight * np.fromiter(entry.pods.values(), np.int64, len(entry.pods))
        for key, pods in weighted.items():
            touched |= self._spread(total, key, pods, 1, state)
        return total.astype(np.float64) if touched else None

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """Least to greatest value stretched to 0 to 100, in whole numbers; 0 when all are equal."""
        scores = np.zeros(len(raw))
        least, greatest = raw[feasible].min(), raw[feasible].max()
        if greatest > least:
            scores[feasible] = np.trunc(MAX_SCORE * ((raw[feasible] - least) / (greatest - least)))
        return scores

    @staticmethod
    def _spread(total: NDArray[np.int64], key: str, pods: NDArray[np.int64], weight: int, state: ClusterState) -> bool:
        """Add weight times the pods in each node's domain; False when there are none."""
        sums = domain_sums(state, key, pods, state.alive)
        if not sums.any():
            return False
        total += weight * sums[state.domains(key)]
        return True


def count_selected(terms: tuple[AffinityTerm, ...], state: ClusterState) -> NDArray[np.int64]:
    """int64[N]: pods on each node that every term selects."""
    first, others = terms[:1], len(terms) - 1
    asked = sum(state.pods.candidates(name, terms[0].selector) for name in _namespaces(first, state)) if others else 0
    table = state.pods.table(others * asked)
    if table is None:
        return state.pods.count(_selected_by_all(terms, state), state.size)
    chosen = table.matching([term.selector for term in terms])
    for term in terms:

        def selects(namespace: str, term: AffinityTerm = term) -> bool:
            return term.selects_namespace(namespace, state.namespace_labels(namespace))

        chosen &= table.inside((term.namespaces, term.namespace_selector), selects)
    return table.count(chosen, state.size)


def _selected_by_all(terms: tuple[AffinityTerm, ...], state: ClusterState) -> Iterator[PodGroup]:
    """Groups of pods that every term selects."""
    for namespace in _namespaces(terms, state):
        for group in state.pods.matching(namespace, terms[0].selector):
            if all(term.selector.matches(group.labels) for term in terms[1:]):
                yield group


def _namespaces(terms: tuple[AffinityTerm, ...], state: ClusterState) -> Iterator[str]:
    """Namespaces that every term selects."""
    named = next((term.namespaces for term in terms if term.namespace_selector.nothing), None)
    for namespace in state.pods.namespaces() if named is None else named:
        labels = state.namespace_labels(namespace)
        if all(term.selects_namespace(namespace, labels) for term in terms):
            yield namespace
