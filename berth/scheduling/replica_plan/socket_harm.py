"""What the pods of a plan do to each other on sockets, as the problem in counts is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from berth.kube.owners import owner_of
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.interference.node_costs import NodeCosts
from berth.scheduling.interference.residents import Kind, Resident
from berth.scheduling.interference.slowdown import harm
from berth.scheduling.plugins.interference_least_slowdown import InterferenceLeastSlowdown
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replicas.sharing import Residents, Sharing

EFFORT: Final = 1_000_000.0
"""Work for the pairings of one plan, about in microseconds."""
DEAREST: Final = 2 * harm(2.0)
"""Harm of two pods that run half as fast."""


class SocketHarm:
    """What several pods add together on a node of a kind, by the best pairing that its pods have then.

    Once the effort for a plan is used up, a pairing is no longer looked for but made quickly: that is dearer, so that
    what is known to be good is kept. So is what was said: a plan is searched for in several books, each of which asks
    anew.
    """

    def __init__(self, costs: NodeCosts, kinds: Sequence[Kind], residents: Sequence[Resident], price: float) -> None:
        """Take kinds of nodes and pods by number, and what harm that counts 1 costs."""
        self._costs, self._kinds, self._residents, self._price = costs, kinds, residents, price
        self._left = EFFORT
        self._said: dict[tuple[int, Residents], float] = {}

    def __call__(self, kind: int, pods: Residents) -> float:
        """Return the weighted harm that pods add on a node of a kind."""
        said = self._said.get((kind, pods))
        if said is None:
            said = self._said[kind, pods] = self._price * self._added(kind, pods)
        return said

    def _added(self, kind: int, pods: Residents) -> float:
        now = self._kinds[kind]
        then = Kind(now.layout, tuple(sorted((*now.residents, *(self._residents[number] for number in pods)))))
        if self._left < 0:
            # Pods that are there are paired all the same, once a kind: made quickly, that seems dear, and more cheap.
            return self._costs.at_most(then) - self._costs.cost(now)
        self._left -= self._costs.takes(then) + self._costs.takes(now)
        return self._costs.cost(then) - self._costs.cost(now)


def sharing_of(pod_sets: Sequence[Alike], state: ClusterState, price: float) -> tuple[Sharing | None, Sequence[Alike]]:
    """Return what pods do to each other, and the pod sets without what each was charged for it by itself.

    None, and the pod sets as they are, where nothing is asked about sockets or at most one pod has a class.

    Args:
        pod_sets: the waiting pods.
        state: the cluster.
        price: what harm that counts 1 costs; 0 where the profile chooses no nodes by it.
    """
    term = InterferenceLeastSlowdown.term
    asked = {row: pods for row, pods in enumerate(pod_sets) if term in pods.costs} if price else {}
    if sum(pods.replicas for pods in asked.values()) < 2:
        return None, pod_sets
    ids = state.sockets.kinds.ids(state.node_index, state.size)
    used, kind = np.unique(ids, return_inverse=True)
    kinds = [state.sockets.kinds.kinds[number] for number in used.tolist()]
    kind = kind.reshape(-1).astype(np.int64)
    number: dict[int, int] = {}
    residents: dict[Resident, int] = {}
    alone: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    for row, pods in asked.items():
        info = pods.candidates[0].info
        resident = state.resident(info.template, owner_of(info.pod))
        if resident is None:
            continue
        number[row] = residents.setdefault(resident, len(residents))
        if number[row] == len(alone):
            alone.append(np.zeros(len(kinds)))
        alone[number[row]][kind[pods.mask]] = pods.costs[term][pods.mask]
    harmed = SocketHarm(state.socket_choice.costs(), kinds, list(residents), price)
    sharing = Sharing(
        kind=kind,
        number=number,
        alone=np.array(alone).reshape(len(alone), len(kinds)),
        together=harmed,
        highest=price * DEAREST,
    )
    left = [
        replace(pods, costs={name: cost for name, cost in pods.costs.items() if name != term})
        if row in number
        else pods
        for row, pods in enumerate(pod_sets)
    ]
    return sharing, left
