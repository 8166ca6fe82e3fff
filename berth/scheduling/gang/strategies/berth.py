"""Strategy `berth` (the default): the whole application on one node or a greedy by marginal cost, then local search.

1. Nothing is searched when the pooled free amounts are too little, or when one node takes all at no cost.
2. Over a shortlist in price order (one per promising location when network costs matter) two starts compete: the
   cheapest single node, and a greedy that places components in connectivity order at the least marginal cost.
3. Local search improves the cheaper one: relocation of single components, linked pairs and contents of nodes, and
   swaps where network costs count.
4. When no shortlist holds the group: hide nodes with little room or little free bandwidth, then widen the shortlist.
   Where hard limits, separation or shared links tie components together, backtracking (`phare`) is the last resort.

Heuristics (`Weights`) look ahead: leftovers that no known component fits, the scarcer resource, fuller nodes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.gang.candidate_nodes import CandidateNodes
from berth.scheduling.gang.local_search.relocation import relocate
from berth.scheduling.gang.local_search.swapping import swap
from berth.scheduling.gang.search_state import INFEASIBLE, SearchState
from berth.scheduling.gang.strategies.phare import phare

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from berth.scheduling.gang.instance import Floats, Indices, Instance

_WIDTH = 48
_WIDE = 512
_NEARLY_FULL = 3.0
"""Applications of this size that would fit the pooled room: below that the fleet counts as nearly full."""


def berth(instance: Instance, *, partial: bool) -> Generator[None, None, Indices]:
    """Return one node per component, -1 where none was found."""
    if not instance.components or not instance.infrastructure.size:
        return np.full(instance.components, -1, dtype=np.intp)
    candidate_nodes = CandidateNodes(instance)
    if not partial and candidate_nodes.short():
        return np.full(instance.components, -1, dtype=np.intp)
    whole = candidate_nodes.best_whole()
    if whole >= 0 and candidate_nodes.base[whole] == 0 and not instance.peer_nodes.size:
        return np.full(instance.components, whole, dtype=np.intp)
    order = connectivity_order(instance)
    best: tuple[int, float, SearchState] | None = None
    for shortlists in _attempts(candidate_nodes):
        for columns in shortlists:
            complete = best if best is not None and best[0] == 0 else None
            if best is not None and instance.budget.over:
                break
            if complete and not candidate_nodes.promises(columns, complete[2].columns, complete[2].nodes()):
                continue
            found = yield from _search(instance, columns, order)
            if best is None or found[:2] < best[:2]:
                best = found
            if best[0] == 0 and not instance.has_network:
                break
        if best is not None and (best[0] == 0 or instance.budget.cut_short):
            break
    if best is None or best[0]:
        best = yield from _packed(instance, candidate_nodes, best)
    if best is None or (best[0] and _entangled(instance)):
        nodes = yield from phare(instance, partial=partial)
        if best is None or (nodes >= 0).sum() > instance.components - best[0]:
            return nodes
    if best[0] == 0 and best[2].network is not None:
        yield from swap(best[2])
    return best[2].nodes()


def _entangled(instance: Instance) -> bool:
    """Return whether rules between components can lead a greedy into a dead end that only backtracking leaves."""
    return instance.limit is not None or instance.separate is not None or instance.links is not None


def _attempts(candidate_nodes: CandidateNodes) -> Iterator[Iterable[Indices]]:
    """Yield rounds of shortlists; a round is the last one once a plan is complete."""
    instance = candidate_nodes.instance
    yield candidate_nodes.shortlists(_WIDTH, everywhere=False)
    if instance.has_network:
        yield candidate_nodes.shortlists(_WIDTH)
    if candidate_nodes.pooled() < _NEARLY_FULL:
        # Little is left anywhere: hiding nodes hides what is needed.
        return
    # Nearly full nodes, or nodes with little bandwidth, can be cheap and yet a dead end: hide them.
    yield candidate_nodes.shortlists(_WIDTH, room_floor=0.5)
    if instance.has_traffic:
        demand = instance.traffic.sum(axis=1)
        for floor in (float(np.median(demand)), float(demand.max()), float(demand.sum()) / 2):
            yield candidate_nodes.shortlists(_WIDTH, bandwidth_floor=floor, room_floor=0.5)
            yield candidate_nodes.shortlists(_WIDTH, bandwidth_floor=floor)
    yield candidate_nodes.shortlists(_WIDE)


def _search(
    instance: Instance, columns: Indices, order: list[int]
) -> Generator[None, None, tuple[int, float, SearchState]]:
    """Return components left out, cost with heuristics, and the search state of the better of two starts, improved."""
    search = SearchState(instance, columns)
    joint = search.joint_costs()
    single = int(joint.argmin())
    left, cost = yield from greedy_fill(search, order, stop=float(joint[single]))
    if joint[single] < INFEASIBLE / 2 and (left or joint[single] <= cost):
        for component in order:
            if search.where[component] == single:
                continue
            if search.where[component] >= 0:
                search.remove(component)
            search.place(component, single)
        left, cost = 0, float(joint[single])
    if not left:
        cost += yield from relocate(search)
    return left, cost, search


def _packed(
    instance: Instance, candidate_nodes: CandidateNodes, best: tuple[int, float, SearchState] | None
) -> Generator[None, None, tuple[int, float, SearchState] | None]:
    """Return `best`, or the result of packing when that leaves fewer out: largest component first, tightest node."""
    size = (instance.requests / np.maximum(instance.requests.max(axis=0), 1e-300)).max(axis=1)
    order = [int(component) for component in np.argsort(-size, kind="stable")]
    for columns in candidate_nodes.shortlists(_WIDE):
        if best is not None and instance.budget.over:
            break
        search = SearchState(instance, columns)
        left, cost = yield from greedy_fill(search, order, tight=True)
        if best is None or left < best[0]:
            best = (left, cost + (0.0 if left else (yield from relocate(search))), search)
    return best


def greedy_fill(
    search: SearchState, order: list[int], *, stop: float = np.inf, tight: bool = False
) -> Generator[None, None, tuple[int, float]]:
    """Place components in `order` where each costs least; return how many fit nowhere and the cost of the others.

    With `tight` each goes where least is left over instead. Gives up, leaving the rest unplaced, once the cost
    reaches `stop`.
    """
    left, total = 0, 0.0
    for component in order:
        yield from search.instance.budget.pause()
        costs = search.costs(component)
        column = int(costs.argmin())
        if costs[column] >= INFEASIBLE / 2:
            left += 1
            continue
        if tight:
            column = int((costs + (costs >= INFEASIBLE / 2) * INFEASIBLE + 1e9 * search.leftover(component)).argmin())
        total += float(costs[column])
        if total > stop:
            return left + 1, total
        search.place(component, column)
    return left, total


def connectivity_order(instance: Instance) -> list[int]:
    """Return the components so that each is, among the rest, the one tied most strongly to those before it.

    Components with a selector or placed peers go first; the strength of a tie is what it costs to cut it.
    """
    strength = _strength(instance)
    components = instance.components
    totals = np.maximum(instance.infrastructure.capacity.sum(axis=0), 1e-300)
    size = (instance.requests / totals).max(axis=1)
    size = size / max(float(size.max()), 1e-300)
    inner = strength[:components, :components]
    scale = max(float(inner.max(initial=0.0)), 1e-300)
    inner = inner / scale
    pull = strength[:components, components:].sum(axis=1) / scale
    pull += np.where(instance.application.has_selector, 1e6, 0.0)
    first = 1e-3 * inner.sum(axis=1) + 1e-6 * size
    score = pull + first
    order = []
    for _ in range(components):
        component = int(score.argmax())
        order.append(component)
        score += inner[component]
        score[component] = -np.inf
    return order


def _strength(instance: Instance) -> Floats:
    """Return float64[J', J'], symmetric: roughly what cutting the edges between two components costs."""
    infrastructure, weights = instance.infrastructure, instance.weights
    strength = np.zeros((instance.size, instance.size))
    if instance.has_network:
        strength += weights.network * (instance.weight + instance.weight.T)
    if instance.has_traffic:
        price = 2 * weights.bandwidth * float(infrastructure.bandwidth_price.mean())
        strength += instance.traffic * (price if price > 0 else 1e-9)
    return strength
