"""Which nodes a pod's nodeSelector, node affinity and tolerations admit.

Evaluated by columns and remembered per template until a node's labels or taints change. The
semantics are kube-scheduler's: nodeSelector and required affinity must both hold; the terms of an
affinity are alternatives; a term without expressions and fields matches no node; Gt and Lt compare
integers; a toleration without key tolerates every key, one without effect every effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache

from berth.scheduling.cache.columns import parse_int64

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from berth.kube.objects import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm, Taint, Toleration
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.nodes import NodeTable
    from berth.scheduling.cache.pod_templates import PodTemplateInfo
    from berth.scheduling.cache.selectors import Selector

HARD_EFFECTS = ("NoSchedule", "NoExecute")
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
MASKS = 1024
"""Masks of each kind that are kept at the most."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration covers one taint.

    Operators are Exists and Equal (also when left out). The numeric Gt and Lt belong to a
    Kubernetes feature that is off by default (TaintTolerationComparisonOperators, alpha in 1.36);
    like kube-scheduler without it, they tolerate nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def tolerated(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Whether any toleration covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


class NodeSelection:
    """Masks over node slots for selectors and tolerations."""

    def __init__(self, nodes: NodeTable) -> None:
        """Begin without masks; one of them is N bytes."""
        self._nodes = nodes
        self._affinity: LRUCache[bytes, Mask] = LRUCache(maxsize=MASKS)
        self._tolerated: LRUCache[bytes, Mask] = LRUCache(maxsize=MASKS)

    def clear(self) -> None:
        """Forget all masks; call after any change of labels or taints."""
        self._affinity.clear()
        self._tolerated.clear()

    def affinity(self, template: PodTemplateInfo) -> Mask:
        """bool[N]: nodes that match nodeSelector and required node affinity; read-only."""
        mask = self._affinity.get(template.selection_key)
        if mask is None:
            mask = self.labels(template.node_selector)
            if template.required_affinity is not None:
                mask &= self.node_selector(template.required_affinity)
            mask.flags.writeable = False
            self._affinity[template.selection_key] = mask
        return mask

    def tolerated(self, template: PodTemplateInfo) -> Mask:
        """bool[N]: nodes all of whose NoSchedule and NoExecute taints are tolerated; read-only."""
        mask = self._tolerated.get(template.tolerations_key)
        if mask is None:
            sets = self._nodes.taint_sets
            table = np.fromiter(
                (
                    all(t.effect not in HARD_EFFECTS or tolerated(template.tolerations, t) for t in taints)
                    for taints in sets
                ),
                dtype=np.bool_,
                count=len(sets),
            )
            mask = self._tolerated[template.tolerations_key] = table[self._nodes.taint_ids]
            mask.flags.writeable = False
        return mask

    def labels(self, wanted: Mapping[str, str]) -> Mask:
        """bool[N]: nodes that carry all these labels."""
        count = self._nodes.count
        mask: Mask = self._nodes.alive.copy()
        for key, value in wanted.items():
            mask &= self._nodes.column(key).among((value,), count)
            if not mask.any():
                break
        return mask

    def label_selector(self, selector: Selector) -> Mask:
        """bool[N]: nodes whose labels a label selector selects."""
        count = self._nodes.count
        if selector.nothing:
            return np.zeros(count, dtype=np.bool_)
        mask: Mask = self._nodes.alive.copy()
        for key, operator, values in selector.requirements:
            column = self._nodes.column(key)
            if operator == "In":
                mask &= column.among(values, count)
            elif operator == "NotIn":
                mask &= ~column.among(values, count)
            elif operator == "Exists":
                mask &= column.present(count)
            else:
                mask &= ~column.present(count)
        return mask

    def node_selector(self, selector: NodeSelector) -> Mask:
        """bool[N]: nodes that match at least one term."""
        mask: Mask = np.zeros(self._nodes.count, dtype=np.bool_)
        for term in selector.node_selector_terms:
            mask |= self.term(term)
        return mask

    def term(self, term: NodeSelectorTerm) -> Mask:
        """bool[N]: nodes that match all expressions and fields of a term; none for an empty term."""
        if not term.match_expressions and not term.match_fields:
            return np.zeros(self._nodes.count, dtype=np.bool_)
        mask: Mask = self._nodes.alive.copy()
        for expression in term.match_expressions:
            mask &= self._expression(expression)
            if not mask.any():
                return mask
        for field in term.match_fields:
            mask &= self._field(field)
        return mask

    def _expression(self, expression: LabelSelectorRequirement) -> Mask:
        count = self._nodes.count
        column = self._nodes.column(expression.key)
        match expression.operator:
            case "In":
                return column.among(expression.values, count)
            case "NotIn":
                return ~column.among(expression.values, count)
            case "Exists":
                return column.present(count)
            case "DoesNotExist":
                return ~column.present(count)
            case "Gt" | "Lt":
                bound = parse_int64(expression.values[0]) if len(expression.values) == 1 else None
                if bound is not None:
                    numbers, known = column.integers(count)
                    beyond: Mask = known & (numbers > bound if expression.operator == "Gt" else numbers < bound)
                    return beyond
        # As in kube-scheduler, a requirement that cannot be parsed matches no node.
        return np.zeros(count, dtype=np.bool_)

    def _field(self, field: LabelSelectorRequirement) -> Mask:
        mask: Mask = np.zeros(self._nodes.count, dtype=np.bool_)
        if field.key != "metadata.name" or len(field.values) != 1 or field.operator not in ("In", "NotIn"):
            return mask
        slot = self._nodes.index.get(field.values[0])
        if slot is not None:
            mask[slot] = True
        return mask if field.operator == "In" else ~mask
