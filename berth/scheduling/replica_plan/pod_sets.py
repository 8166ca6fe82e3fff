"""Waiting pods that a plan in counts does not tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.pod_templates import PodTemplateInfo
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.state import InfrastructureState
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
    """their template"""
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


def alike(
    candidates: Sequence[Candidate], state: ClusterState, infrastructure: InfrastructureState, *, price: float
) -> list[Alike]:
    """Put candidates together, in their order.

    Args:
        candidates: waiting pods, filtered without the rules between pods.
        state: the cluster.
        infrastructure: prices and largest units of its nodes.
        price: weight of the price of requests.
    """
    known: dict[tuple[int, str, int], Alike] = {}
    for candidate in candidates:
        template, workload = candidate.info.template, workload_of(candidate.info.pod)
        key = (id(template), workload, id(candidate.result))
        if key not in known:
            request = state.request_vector(template)
            mask = candidate.mask & (request <= infrastructure.exact.max_unit).all(axis=1)
            for constraint in template.hard_spread:
                mask &= state.domains(constraint.topology_key) >= 0
            costs = own_costs(candidate.costs, request, infrastructure, price=price)
            known[key] = Alike(workload, template, candidate.result, request, mask, costs, [])
        known[key].candidates.append(candidate)
    return list(known.values())


def own_costs(
    costs: Mapping[str, Floats], request: Ints, infrastructure: InfrastructureState, *, price: float
) -> Mapping[str, Floats]:
    """float64[N] by term, what a pod costs whatever others do: that of plugins, and the price of its requests."""
    if not (infrastructure.has_price and price):
        return costs
    return {**costs, "price": price * (infrastructure.infrastructure.price @ request)}
