"""The objective of an assignment, computed from scratch and independently of every search.

For component j on node v (PHARE): sum over resources of request * price, plus, for every neighbour on another node,
bandwidth * bandwidth price of v. The network term (Diktyo) adds edge weight * location cost for every edge whose ends
are on different nodes. Every plugin's cost of v for j is a term of its own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berth.network.peers import edge_costs
from berth.scheduling.gang.outcome import Evaluation

if TYPE_CHECKING:
    from berth.scheduling.gang.problem import Application, Infrastructure, Weights


def evaluate(
    infrastructure: Infrastructure, application: Application, assignment: npt.ArrayLike, weights: Weights
) -> Evaluation:
    """Return cost and terms of `assignment` (int[J], -1 for not placed); edges of unplaced components cost nothing."""
    node = np.asarray(assignment, dtype=np.int64)
    placed = node >= 0
    count = application.size
    price = np.zeros(count)
    price[placed] = (application.requests[placed] * infrastructure.price[node[placed]]).sum(axis=1)

    network, bandwidth = np.zeros(count), np.zeros(count)
    rate = infrastructure.bandwidth_price
    each = partial(edge_costs, location=infrastructure.location, location_cost=infrastructure.location_cost)
    first, second = application.edges[:, 0], application.edges[:, 1]
    cut = (node[first] != node[second]) & placed[first] & placed[second]
    first, second = first[cut], second[cut]
    edge_cost = application.weight[cut] * each(node[first], node[second])
    for end in (first, second):
        network += np.bincount(end, weights=edge_cost / 2, minlength=count)
        bandwidth += np.bincount(end, weights=application.bandwidth[cut] * rate[node[end]], minlength=count)

    peers = application.placed_peers
    if peers.component.size:
        here, there = node[peers.component], peers.node
        cut = (here >= 0) & (here != there)
        here, there, end = here[cut], there[cut], peers.component[cut]
        incoming = peers.incoming[cut]
        origin, target = np.where(incoming, there, here), np.where(incoming, here, there)
        np.add.at(network, end, peers.weight[cut] * each(origin, target))
        np.add.at(bandwidth, end, peers.bandwidth[cut] * (rate[here] + rate[there]))
    terms = {
        "network": weights.network * network,
        "price": weights.price * price,
        "bandwidth": weights.bandwidth * bandwidth,
    }
    for name, costs in application.node_costs.items():
        terms[name] = np.where(placed, costs.values[costs.group, node], 0.0)
    return Evaluation(cost=float(sum(float(term.sum()) for term in terms.values())), terms=terms)
