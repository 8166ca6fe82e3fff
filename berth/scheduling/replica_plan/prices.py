"""Prices of the objective, as a profile and an AppGroup state them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from berth.api.spread import SpreadLevel
from berth.network.groups import Group
from berth.network.routing import Routing, unreachable_cost
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replicas.problem import Prices, Rule
from berth.scheduling.replicas.rule import AntiAffinity, Spread

BEYOND = 1000.0
"""What must be survived costs so much more than anything else that a plan can save."""


def objective_prices(
    group: Group,
    network: float,
    location_cost: npt.NDArray[np.float64],
    spread: SpreadLevel,
    pod_sets: Sequence[Alike] = (),
    rules: Iterable[Rule] = (),
    endpoints: int = 0,
    interference: float = 0.0,
) -> Prices:
    """Prices in units of network cost.

    Args:
        group: the AppGroup; what its annotation says comes before the profile.
        network: weight of network costs.
        location_cost: float64[L, L], cost from location to location.
        spread: which failure the profile wants survived.
        pod_sets: pods to place: what nodes cost them, what must be survived costs more.
        rules: their rules, likewise.
        endpoints: of Services that keep calls near: one of them may get all calls, likewise.
        interference: what one pod costs at about the most by what it does to others on its node, likewise.
    """
    lost = unreachable_cost(location_cost)
    prices, wanted = Prices(network=network, lost_calls=lost), group.spread or spread
    required = prices.survive_node
    if wanted in (SpreadLevel.NODE, SpreadLevel.ZONE):
        required = BEYOND + 2 * network * lost * len(group.edges) + prices.load * endpoints
        required += sum(_dearest_nodes(pods) for pods in pod_sets) + _most_broken(pod_sets, rules, prices)
        required += interference * sum(pods.replicas for pods in pod_sets)
    node, zone = {
        SpreadLevel.SOFT: (prices.survive_node, prices.survive_zone),
        SpreadLevel.NONE: (0.0, 0.0),
        SpreadLevel.NODE: (required, prices.survive_zone),
        SpreadLevel.ZONE: (required, required),
    }[wanted]
    return Prices(network=network, lost_calls=lost, survive_node=node, survive_zone=zone)


def lasting_spread_price(group: Group, network: float, location_cost: npt.NDArray[np.float64]) -> float:
    """What a pod costs by which a hard spread is broken once those that a rollout replaces are gone, in network cost.

    That is more than all calls of the group can save, as it was asked for without a price. It is no hard rule: of what
    the filters allow while old pods are counted, nothing may keep it.
    """
    return BEYOND + 2 * network * unreachable_cost(location_cost) * len(group.edges)


def kept_endpoints(
    routing: Mapping[str, Routing], pod_sets: Sequence[Alike], placed: Mapping[str, Mapping[int, int]]
) -> int:
    """Replicas, waiting and placed, of workloads whose Services keep calls near; `placed` are those by node."""
    near = {name for name, how in routing.items() if how is not Routing.ALL}
    waiting = sum(pods.replicas for pods in pod_sets if pods.workload in near)
    return waiting + sum(sum(placed.get(name, {}).values()) for name in near)


def _dearest_nodes(pods: Alike) -> float:
    """What the dearest nodes for some pods cost more than the cheapest."""
    if not pods.costs or not pods.mask.any():
        return 0.0
    cost = np.sum([*pods.costs.values()], axis=0)[pods.mask]
    return pods.replicas * float(cost.max() - cost.min())


def _most_broken(pod_sets: Sequence[Alike], rules: Iterable[Rule], prices: Prices) -> float:
    """What soft rules cost if as much of them is broken as can be."""

    def waiting(numbers: Iterable[int]) -> int:
        return sum(pod_sets[number].replicas for number in numbers)

    total = 0.0
    for rule in rules:
        selected = waiting(rule.selects) + (0 if rule.placed is None else int(rule.placed.sum()))
        if isinstance(rule, Spread):
            total += 0.0 if rule.hard else prices.of_spread(rule) * selected
            continue
        if rule.weight is None:
            continue
        owners = 0 if rule.placed_subjects is None else int(rule.placed_subjects.sum())
        broken = waiting(rule.subjects) + owners
        if isinstance(rule, AntiAffinity):
            broken = waiting(rule.subjects) * selected + owners * waiting(rule.selects)
        total += prices.soft_affinity * rule.weight / 100 * broken
    return total
