"""Groups of one replica of each workload without rules between pods: what the gang engine plans as well, and sooner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from berth.network.groups import Group
from berth.network.routing import Routing
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.pod_templates import TERM_KINDS, PodTemplateInfo
from berth.scheduling.cache.volumes import claim_keys
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.single import workload_of


def gang_engine_does(
    group: Group, candidates: Sequence[Candidate], cache: Cache, infrastructure: InfrastructureState, *, price: float
) -> bool:
    """Whether a plan in counts would be no better than the gang engine's.

    Nothing is spread, called in turns or kept apart there, so that pairs of pods tell all. Where nodes have prices, the
    gang engine also looks ahead to what comes after. Otherwise it is as good if one node has room for all: calls cost
    nothing then. Where they must be divided among nodes, a plan in counts searches more thoroughly.

    Args:
        group: the AppGroup.
        candidates: waiting pods, all filtered by the cluster as it is.
        cache: the cluster, placed members and Services.
        infrastructure: amounts and prices as of now.
        price: weight of prices.
    """
    workloads = {workload_of(candidate.info.pod) for candidate in candidates}
    if not candidates or len(workloads) < len(candidates) or cache.members.placed(group.key):
        return False
    templates = {one.info.template.key: one.info.template for one in candidates}.values()
    if any(_has_rules(template) or _is_meant(template, cache) for template in templates):
        return False
    called = {edge.dependency for edge in group.edges if edge.dependency in workloads}
    if any(cache.services.routing(group.key, name).routing is not Routing.ALL for name in called):
        return False
    return bool(infrastructure.has_price and price) or _one_node_does(candidates, cache, infrastructure)


def _has_rules(template: PodTemplateInfo) -> bool:
    return bool(template.terms or template.hard_spread or template.soft_spread or template.host_ports)


def _is_meant(template: PodTemplateInfo, cache: Cache) -> bool:
    """Whether a rule of a placed pod is about such pods."""
    namespace, labels = template.namespace, template.labels
    its_labels = cache.state.namespace_labels(namespace) or {}
    return any(
        entry.term.matches(namespace, labels, its_labels)
        for kind in TERM_KINDS
        for entry in cache.state.terms_about(kind, namespace, labels.items())
    )


def _one_node_does(candidates: Sequence[Candidate], cache: Cache, infrastructure: InfrastructureState) -> bool:
    """Whether some node takes all of them, and nobody prefers one to another; of volumes it may not have enough."""
    if any(candidate.costs or claim_keys(candidate.info.pod) for candidate in candidates):
        return False
    state, exact = cache.state, infrastructure.exact
    requests = np.array([state.request_vector(candidate.info.template) for candidate in candidates])
    able = np.logical_and.reduce([candidate.mask for candidate in candidates])
    able &= (state.used + requests.sum(axis=0) <= exact.open).all(axis=1)
    able &= (requests.max(axis=0) <= exact.max_unit).all(axis=1)
    return bool(able.any())
