"""Pairs of placed pods that call each other beyond their maxNetworkCost, as Services route them.

What a Service never sends there does not count, and neither does an endpoint that is being deleted: the rules are those
of `berth.network.limits`, for pods that are there already.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

from berth.network.costs import NetworkCosts, Place
from berth.network.edges import effective_limit
from berth.network.groups import Group, GroupEdge
from berth.network.routing import Routing
from berth.network.workload_places import WorkloadPlaces

RoutingOf = Callable[[str], Routing]
"""How calls to a workload are routed."""


def over_limit(
    edge: GroupEdge, placed: WorkloadPlaces, places: Mapping[str, Place], costs: NetworkCosts, routing: Routing
) -> tuple[Counter[str], Counter[str]]:
    """Pairs beyond the limit of each caller, and of each endpoint, by its node.

    Args:
        edge: the dependency.
        placed: where the pods of the group are.
        places: where each node is, by name; pods on other nodes are left out.
        costs: network costs of the application; one that is not known counts as `unknown_cost`.
        routing: how calls to the dependency are routed.
    """
    limit = effective_limit(edge)
    if limit == math.inf or routing is Routing.LOCAL:
        return Counter(), Counter()
    callers, endpoints = (
        {node: count for node, count in placed.staying(workload).items() if node in places}
        for workload in (edge.dependent, edge.dependency)
    )
    if routing is Routing.SAME_NODE:
        callers = {node: count for node, count in callers.items() if node not in endpoints}
    served = {places[node].zone for node in endpoints}
    zones_count = routing is not Routing.ALL and "" not in served

    def beyond(here: Place, there: Place) -> bool:
        if zones_count and here.zone in served and here.zone != there.zone:
            return False
        cost = costs.between(here, there)
        return (costs.unknown_cost if cost is None else cost) > limit

    from_place, to_place = _by_place(callers, places), _by_place(endpoints, places)
    far = [(here, there) for here in from_place for there in to_place if beyond(here, there)]
    of_caller, of_endpoint = Counter[Place](), Counter[Place]()
    for here, there in far:
        of_caller[here] += to_place[there]
        of_endpoint[there] += from_place[here]

    def pairs(of: Counter[Place], own: Mapping[str, int], others: Mapping[str, int]) -> Counter[str]:
        # Pods on one node are at cost 0, whatever its place says.
        near = {node: others.get(node, 0) if beyond(places[node], places[node]) else 0 for node in own}
        return Counter({node: of[places[node]] - near[node] for node in own})

    return pairs(of_caller, callers, endpoints), pairs(of_endpoint, endpoints, callers)


def over_limits(
    group: Group, placed: WorkloadPlaces, places: Mapping[str, Place], costs: NetworkCosts, routing: RoutingOf
) -> tuple[int, Counter[tuple[str, str]]]:
    """Pairs of a group beyond their limits, and those of each pod by its workload and node.

    Arguments as for :func:`over_limit`.
    """
    total, by_pod = 0, Counter[tuple[str, str]]()
    for edge in group.edges:
        callers, endpoints = over_limit(edge, placed, places, costs, routing(edge.dependency))
        counts = placed.staying(edge.dependent)
        total += sum(pairs * counts[node] for node, pairs in callers.items())
        for workload, found in ((edge.dependent, callers), (edge.dependency, endpoints)):
            by_pod.update({(workload, node): pairs for node, pairs in found.items()})
    return total, by_pod


def _by_place(counts: Mapping[str, int], places: Mapping[str, Place]) -> Counter[Place]:
    found: Counter[Place] = Counter()
    for node, count in counts.items():
        found[places[node]] += count
    return found
