"""Pod affinity terms and topology spread constraints in compiled form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.api.errors import FieldPath
from berth.kube.objects import LabelSelector, LabelSelectorRequirement
from berth.scheduling.cache.selectors import EVERYTHING, NOTHING, Selector, compile_selector

if TYPE_CHECKING:
    from berth.kube.objects import PodAffinityTerm, TopologySpreadConstraint


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A term of podAffinity or podAntiAffinity; which of the two, the holder knows."""

    topology_key: str
    """Node label whose values are the domains."""
    namespaces: frozenset[str]
    """Namespaces named by the term, or the owner's own when the term names none in any way."""
    namespace_selector: Selector
    """Selects further namespaces by their labels."""
    selector: Selector
    """Selects pods by their labels, matchLabelKeys and mismatchLabelKeys included."""
    weight: int = 0
    """1 to 100 for a preferred term, 0 for a required one."""

    def selects_namespace(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether pods of this namespace are meant; ``labels`` is None for an unknown namespace."""
        if namespace in self.namespaces:
            return True
        if self.namespace_selector.nothing:
            return False
        if self.namespace_selector.everything:
            return True
        return labels is not None and self.namespace_selector.matches(labels)

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] | None) -> bool:
        """Whether a pod of this namespace with these labels is selected."""
        return self.selects_namespace(namespace, namespace_labels) and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topologySpreadConstraint."""

    max_skew: int
    """Greatest allowed difference between a domain and the emptiest one, in pods."""
    topology_key: str
    """Node label whose values are the domains."""
    selector: Selector
    """Selects the pods that are counted, matchLabelKeys included."""
    min_domains: int
    """With fewer eligible domains than this, the emptiest one counts as empty."""
    honour_affinity: bool
    """Nodes that fail the pod's nodeSelector or node affinity are left out of the count."""
    honour_taints: bool
    """Nodes with taints that the pod does not tolerate are left out of the count."""


def compile_affinity_term(
    term: PodAffinityTerm, *, namespace: str, labels: Mapping[str, str], weight: int = 0, where: FieldPath
) -> AffinityTerm:
    """A term as its owner in ``namespace`` with these labels means it.

    The API server merges matchLabelKeys and mismatchLabelKeys into the selector when a pod is
    created; keys that the selector already speaks of are therefore left alone, and the merge is
    done here for manifests that no API server has seen. Raises InvalidFieldError for a
    selector that cannot be compiled.
    """
    selector = compile_selector(_merged(term, labels), where=(*where, "labelSelector"))
    if term.namespace_selector is None:
        namespace_selector = NOTHING
    else:
        namespace_selector = compile_selector(term.namespace_selector, where=(*where, "namespaceSelector"))
    named = frozenset(term.namespaces)
    if not named and term.namespace_selector is None:
        named = frozenset((namespace,))
    return AffinityTerm(
        topology_key=term.topology_key,
        namespaces=named,
        namespace_selector=EVERYTHING if namespace_selector.everything else namespace_selector,
        selector=selector,
        weight=weight,
    )


def compile_spread_constraint(
    constraint: TopologySpreadConstraint, *, labels: Mapping[str, str], where: FieldPath
) -> SpreadConstraint:
    """A constraint as a pod with these labels means it; raises InvalidFieldError for a bad selector."""
    selector = compile_selector(constraint.label_selector, where=(*where, "labelSelector"))
    own = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector.also(own),
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honour_affinity=constraint.node_affinity_policy == "Honor",
        honour_taints=constraint.node_taints_policy == "Honor",
    )


def _merged(term: PodAffinityTerm, labels: Mapping[str, str]) -> LabelSelector | None:
    selector = term.label_selector
    if selector is None or not (term.match_label_keys or term.mismatch_label_keys):
        return selector
    spoken = {*selector.match_labels, *(item.key for item in selector.match_expressions)}
    extra = [
        LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for operator, keys in (("In", term.match_label_keys), ("NotIn", term.mismatch_label_keys))
        for key in keys
        if key in labels and key not in spoken
    ]
    return LabelSelector(match_labels=selector.match_labels, match_expressions=[*selector.match_expressions, *extra])
