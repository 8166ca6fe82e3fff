"""PodTopologySpread (filter, score): hard and soft topologySpreadConstraints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import numpy as np

from berth.scheduling.cache.domains import counted_nodes, domain_sums, matching_pods, spread_counts
from berth.scheduling.cache.nodes import HOSTNAME
from berth.scheduling.configuration import DefaultingType, PodTopologySpreadSettings
from berth.scheduling.default_spreading import default_constraints
from berth.scheduling.framework.plugin import MAX_SCORE, FilterPlugin, RejectedNodes, ScorePlugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.cache.terms import SpreadConstraint
    from berth.scheduling.configuration import Profile
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Afterwards, Bools, Floats

REASON = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = f"{REASON} (missing required label)"
IGNORED = -1.0
"""Raw score of nodes that lack a topology key: they score 0."""


class PodTopologySpread(FilterPlugin, ScorePlugin):
    """Rejects nodes whose domain would exceed the emptiest one by more than maxSkew; prefers emptier domains.

    Rule, per constraint: pods that match in the node's domain, plus one if the pod itself matches,
    minus the fewest in any eligible domain (zero with fewer eligible domains than minDomains), may
    not exceed maxSkew. A domain is eligible when some node in it carries the topology keys of all
    hard constraints and passes the constraint's nodeAffinityPolicy and nodeTaintsPolicy; only such
    nodes are counted. Pods being deleted and pods of other namespaces do not count. A node without
    the key is rejected.

    Score: a soft constraint contributes count * ln(domains + 2) + maxSkew - 1, where domains is the number of domains
    among the feasible nodes: large domains in small numbers weigh as much as many small ones. The sum over the
    constraints is rounded. A pod that states no constraint has those of the profile, towards pods of its owner.
    """

    name = "PodTopologySpread"
    score_weight = 2.0
    in_objective = True

    def __init__(self, settings: PodTopologySpreadSettings | None = None) -> None:
        """``settings`` are what holds for pods that state no constraint; kube-scheduler's defaults if left out."""
        settings = settings or PodTopologySpreadSettings()
        self._defaults = settings.constraints
        self._system = settings.defaulting_type is DefaultingType.SYSTEM

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Spread as the profile says."""
        return cls(profile.pod_topology_spread)

    def concerned(self, after: Afterwards) -> bool:
        """Labels that its constraints go by."""
        return any(constraint.topology_key in after.change.labels for constraint in after.pod.template.hard_spread)

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes that lack a topology key, and nodes of domains that are too full."""
        info, state = cycle.pod, cycle.cluster
        constraints = info.template.hard_spread
        if not constraints:
            return ()
        missing = np.zeros(state.size, dtype=np.bool_)
        skewed = np.zeros(state.size, dtype=np.bool_)
        eligible: Bools = state.alive.copy()
        for constraint in constraints:
            eligible &= state.domains(constraint.topology_key) >= 0
        for constraint in constraints:
            # The first constraint that fails gives the reason.
            lacks = state.domains(constraint.topology_key) < 0
            missing |= lacks & ~skewed
            skewed |= self._too_full(constraint, info, state, eligible) & ~missing
        return (RejectedNodes(REASON_LABEL, missing), RejectedNodes(REASON, skewed))

    @staticmethod
    def _too_full(constraint: SpreadConstraint, info: PodInfo, state: ClusterState, eligible: Bools) -> Bools:
        template = info.template
        counts, present = spread_counts(constraint, template, state, eligible)
        domains = int(np.count_nonzero(present))
        if not domains:
            return np.zeros(state.size, dtype=np.bool_)
        fewest = int(counts[present].min()) if domains >= constraint.min_domains else 0
        own = 1 if constraint.selector.matches(template.labels) else 0
        # Domain -1 (no key) reads the table's last entry, which is no domain's.
        full: Bools = (counts + own - fewest > constraint.max_skew)[state.domains(constraint.topology_key)]
        return full

    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """Weighted matching pods around each node; no opinion on pods without soft constraints."""
        info, state = cycle.pod, cycle.cluster
        constraints = info.template.soft_spread
        stated = bool(constraints or info.template.hard_spread)
        if not stated and self._defaults:
            constraints = default_constraints(info.pod, self._defaults)
        if not constraints:
            return None
        complete: Bools = state.alive.copy()
        if stated or not self._system:
            # By system defaults, nodes without a zone are spread over all the same.
            for constraint in constraints:
                complete &= state.domains(constraint.topology_key) >= 0
        scored = feasible & complete
        total = np.zeros(state.size)
        for constraint in constraints:
            ids = state.domains(constraint.topology_key)
            pods = matching_pods(constraint, info.template, state)
            if constraint.topology_key == HOSTNAME:
                size = int(np.count_nonzero(scored))
                counts = pods
            else:
                size = len(np.unique(ids[scored]))
                counted = counted_nodes(constraint, info.template, state, complete)
                counts = domain_sums(state, constraint.topology_key, pods, counted)[ids]
            total += np.where(ids >= 0, counts * math.log(size + 2) + (constraint.max_skew - 1), 0.0)
        return np.where(scored, np.floor(total + 0.5), IGNORED)

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """100 * (greatest + least - value) / greatest in whole numbers; 100 when nothing matches anywhere."""
        scores = np.zeros(len(raw))
        scored = feasible & (raw != IGNORED)
        if not scored.any():
            return scores
        greatest, least = raw[scored].max(), raw[scored].min()
        if greatest == 0:
            scores[scored] = MAX_SCORE
        else:
            scores[scored] = np.floor(MAX_SCORE * (greatest + least - raw[scored]) / greatest)
        return scores
