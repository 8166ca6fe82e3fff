"""Counting pods per topology domain.

A domain is a distinct value of a node label; domains are numbered by the label's column. Tables
over domains have one entry more than there are values: the last one belongs to nodes without the
label (domain -1), so that indexing with a column never needs a bounds check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodTemplateInfo
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.cache.terms import SpreadConstraint


def domain_sums(state: ClusterState, key: str, per_node: NDArray[np.int64], nodes: Mask) -> NDArray[np.int64]:
    """int64[D + 1]: sum of ``per_node`` over the given nodes of each domain; 0 for the last entry."""
    ids = state.domains(key)
    sums = np.zeros(len(state.nodes.column(key).values) + 1, dtype=np.int64)
    chosen = np.flatnonzero(nodes & (ids >= 0))
    np.add.at(sums, ids[chosen], per_node[chosen])
    return sums


def domains_with(state: ClusterState, key: str, nodes: Mask) -> Mask:
    """bool[D + 1]: domains that some of the given nodes belong to; False for the last entry."""
    ids = state.domains(key)
    present = np.zeros(len(state.nodes.column(key).values) + 1, dtype=np.bool_)
    present[ids[nodes & (ids >= 0)]] = True
    return present


def nodes_sharing(state: ClusterState, key: str, nodes: Mask) -> Mask:
    """bool[N]: nodes in the same domain as any of the given nodes."""
    shared: Mask = domains_with(state, key, nodes)[state.domains(key)]
    return shared


def counted_nodes(constraint: SpreadConstraint, template: PodTemplateInfo, state: ClusterState, eligible: Mask) -> Mask:
    """bool[N]: eligible nodes that also pass nodeAffinityPolicy and nodeTaintsPolicy."""
    counted = eligible
    if constraint.honour_affinity:
        counted = counted & state.selection.affinity(template)
    if constraint.honour_taints:
        counted = counted & state.selection.tolerated(template)
    return counted


def matching_pods(constraint: SpreadConstraint, template: PodTemplateInfo, state: ClusterState) -> NDArray[np.int64]:
    """int64[N]: pods on each node that the constraint counts.

    As in kube-scheduler, an empty selector counts no pods here although it selects them all.
    """
    if constraint.selector.everything:
        return np.zeros(state.size, dtype=np.int64)
    table, namespace = state.pods.table(), template.namespace
    if table is not None:
        chosen = table.inside(namespace, namespace.__eq__) & table.matching((constraint.selector,))
        return table.count(chosen, state.size, staying=True)
    groups = state.pods.matching(namespace, constraint.selector)
    return state.pods.count(groups, state.size, staying=True)


def spread_counts(
    constraint: SpreadConstraint, template: PodTemplateInfo, state: ClusterState, eligible: Mask
) -> tuple[NDArray[np.int64], Mask]:
    """(pods per domain, domains that exist): int64[D + 1] and bool[D + 1] over the counted nodes."""
    counted = counted_nodes(constraint, template, state, eligible)
    per_node = matching_pods(constraint, template, state)
    key = constraint.topology_key
    return domain_sums(state, key, per_node, counted), domains_with(state, key, counted)
