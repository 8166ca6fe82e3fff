"""PodTopologySpread: hard topologySpreadConstraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.domains import spread_counts
from berth.scheduling.plugins.base import Filter, Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.cache.terms import SpreadConstraint

REASON = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = f"{REASON} (missing required label)"


class PodTopologySpread(Filter):
    """Rejects nodes whose domain would exceed the emptiest one by more than maxSkew.

    Rule, per constraint: pods that match in the node's domain, plus one if the pod itself matches,
    minus the fewest in any eligible domain (zero with fewer eligible domains than minDomains), may
    not exceed maxSkew. A domain is eligible when some node in it carries the topology keys of all
    hard constraints and passes the constraint's nodeAffinityPolicy and nodeTaintsPolicy; only such
    nodes are counted. Pods being deleted and pods of other namespaces do not count. A node without
    the key is rejected.
    """

    name = "PodTopologySpread"

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """Nodes that lack a topology key, and nodes of domains that are too full."""
        constraints = info.template.hard_spread
        if not constraints:
            return ()
        missing = np.zeros(state.size, dtype=np.bool_)
        skewed = np.zeros(state.size, dtype=np.bool_)
        eligible: Mask = state.alive.copy()
        for constraint in constraints:
            eligible &= state.domains(constraint.topology_key) >= 0
        for constraint in constraints:
            # The first constraint that fails gives the reason.
            lacks = state.domains(constraint.topology_key) < 0
            missing |= lacks & ~skewed
            skewed |= self._too_full(constraint, info, state, eligible) & ~missing
        return (Rejection(REASON_LABEL, missing), Rejection(REASON, skewed))

    @staticmethod
    def _too_full(constraint: SpreadConstraint, info: PodInfo, state: ClusterState, eligible: Mask) -> Mask:
        template = info.template
        counts, present = spread_counts(constraint, template, state, eligible)
        domains = int(np.count_nonzero(present))
        if not domains:
            return np.zeros(state.size, dtype=np.bool_)
        fewest = int(counts[present].min()) if domains >= constraint.min_domains else 0
        own = 1 if constraint.selector.matches(template.labels) else 0
        # Domain -1 (no key) reads the table's last entry, which is no domain's.
        full: Mask = (counts + own - fewest > constraint.max_skew)[state.domains(constraint.topology_key)]
        return full
