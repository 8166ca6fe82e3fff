"""Waiting pods that a plan in counts does not tell apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from berth.kube.objects import Pod
from berth.scheduling.cache.pod_templates import TERM_KINDS, PodTemplateInfo
from berth.scheduling.cache.selectors import Selector
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.volume_pool import kind_of_claim
from berth.scheduling.cache.volumes import claim_keys, storage_request
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.replica_plan.same_nodes import SameNodes
from berth.scheduling.single import workload_of

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Alike:
    """Waiting pods of one workload and template to which the filters say the same."""

    workload: str
    """selector of their workload"""
    template: PodTemplateInfo
    """their template, or that of the first where they differ in labels that no rule reads"""
    result: FilterResult
    """what the filters say, rules between pods left out"""
    request: Ints
    """int64[R]"""
    mask: Bools
    """bool[N], nodes that they may use whatever else is planned"""
    costs: Mapping[str, Floats]
    """float64[N] by term, weighted, whatever else is planned"""
    candidates: list[Candidate]
    """the pods"""
    to_come: int = 0
    """how many more of them a rolling update brings later: planned as well, and not placed"""

    @property
    def replicas(self) -> int:
        """Pods that are planned."""
        return len(self.candidates) + self.to_come


def alike(
    candidates: Sequence[Candidate],
    state: ClusterState,
    infrastructure: InfrastructureState,
    *,
    price: float,
    turns: SameNodes | None = None,
) -> Generator[None, None, list[Alike]]:
    """Put candidates together, in their order and in turns; labels that no rule reads tell nobody apart.

    Args:
        candidates: waiting pods, filtered without the rules between pods.
        state: the cluster.
        infrastructure: prices and largest units of its nodes.
        price: weight of the price of requests.
        turns: when others have theirs.

    Raises:
        NodesChangedError: while others had their turn.
    """
    turns = turns or SameNodes(state)
    templates: defaultdict[str, set[bytes]] = defaultdict(set)
    for candidate in candidates:
        templates[workload_of(candidate.info.pod)].add(candidate.info.template.key)
    several = any(len(found) > 1 for found in templates.values())
    read = (yield from _labels_read(candidates, state, turns)) if several else frozenset[str]()
    known: dict[Hashable, Alike] = {}
    # Thousands of templates may differ in nothing that nodes look at: they share their arrays.
    masks: dict[bytes, Bools] = {}
    charges: dict[bytes, Floats] = {}
    large_enough: dict[bytes, Bools] = {}
    for candidate in candidates:
        template, workload = candidate.info.template, workload_of(candidate.info.pod)
        key: Hashable = (template.key, workload, id(candidate.result))
        if len(templates[workload]) > 1:
            yield from turns.pause()
            key = (workload, _signature(candidate, read), _claims(candidate.info.pod, state))
        if key not in known:
            yield from turns.pause()
            request = state.request_vector(template)
            if (amounts := request.tobytes()) not in large_enough:
                large_enough[amounts] = np.all(request <= infrastructure.exact.max_unit, axis=1)
            mask = candidate.mask & large_enough[amounts]
            for constraint in template.hard_spread:
                mask &= state.domains(constraint.topology_key) >= 0
            costs = own_costs(candidate.costs, request, infrastructure, price=price)
            mask = masks.setdefault(mask.tobytes(), mask)
            costs = {term: charges.setdefault(cost.tobytes(), cost) for term, cost in costs.items()}
            known[key] = Alike(workload, template, candidate.result, request, mask, costs, [])
        known[key].candidates.append(candidate)
    return list(known.values())


def _labels_read(
    candidates: Sequence[Candidate], state: ClusterState, turns: SameNodes
) -> Generator[None, None, frozenset[str]]:
    """Keys of labels that rules of the candidates, or of placed pods, look at."""
    selectors: set[Selector] = set()
    carried: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for template in {one.info.template.key: one.info.template for one in candidates}.values():
        yield from turns.pause()
        selectors.update(term.selector for terms in template.terms.values() for term in terms)
        selectors.update(constraint.selector for constraint in (*template.hard_spread, *template.soft_spread))
        carried[template.namespace].update(template.labels.items())
    for namespace, labels in carried.items():
        yield from turns.pause()
        placed = (entry for kind in TERM_KINDS for entry in state.terms_about(kind, namespace, labels))
        selectors.update(entry.term.selector for entry in placed)
    return frozenset(key for selector in selectors for key, *_ in selector.requirements)


def _signature(candidate: Candidate, read: frozenset[str]) -> Hashable:
    """Everything of a candidate that a plan in counts looks at, of its labels only those that somebody reads."""
    template = candidate.info.template
    return (
        template.namespace,
        frozenset(item for item in template.labels.items() if item[0] in read),
        template.requests,
        template.host_ports,
        template.selection_key,
        template.tolerations_key,
        frozenset((kind, terms) for kind, terms in template.terms.items()),
        template.hard_spread,
        template.soft_spread,
        candidate.mask.tobytes(),
        frozenset((term, cost.tobytes()) for term, cost in candidate.costs.items()),
    )


def _claims(pod: Pod, state: ClusterState) -> Hashable:
    """What the claims of a pod ask for: who asks for other volumes, or for none, may find some on the same nodes."""
    if not pod.spec.volumes:
        return ()
    known = (state.volumes.claims.get(key) for key in claim_keys(pod))
    return tuple(
        sorted(
            (kind_of_claim(claim), storage_request(claim), bool(claim.spec.volume_name))
            for claim in known
            if claim is not None
        )
    )


def own_costs(
    costs: Mapping[str, Floats], request: Ints, infrastructure: InfrastructureState, *, price: float
) -> Mapping[str, Floats]:
    """float64[N] by term, what a pod costs whatever others do: that of plugins, and the price of its requests."""
    if not (infrastructure.has_price and price):
        return costs
    return {**costs, "price": price * (infrastructure.infrastructure.price @ request)}
