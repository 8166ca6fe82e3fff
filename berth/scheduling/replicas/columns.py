"""Which nodes the search looks at: of nodes that are alike only as many as a plan can use."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np
import numpy.typing as npt

from berth.scheduling.replicas.locations import in_order
from berth.scheduling.replicas.problem import Bools, Floats, Ints, Problem
from berth.scheduling.replicas.room import requested_resources, rooms_of
from berth.scheduling.replicas.rule import Spread

SPARE = 2
"""Nodes of a class beyond what its pods need."""
MOST = 1500
"""Columns at most in the first attempt, but for a few of every location."""
CELLS = 2_000_000
"""Pod sets times columns at most in the first attempt: every pair of them costs some 55 bytes."""
FEW = 8
"""Nodes of every location at least; of many locations fewer, together half of the columns at most, but one of each."""
LOCATIONS = 400
"""Locations at most in the first attempt."""
PAIRS = 2_000_000
"""Columns times locations at most in the second attempt: tables have a number for each."""
ROOM = 1.5
"""How many times its pods the nodes of a location hold, if there are enough."""


def choose_columns(problem: Problem) -> Iterator[Ints]:
    """Yield nodes to look at, int64[K]: the promising ones, then all, in case those do not do."""
    size = problem.nodes.size
    if not size:
        return
    needed = _needed(problem)
    first = _of_classes(problem, needed)
    if len(first) or not problem.pods:
        yield first
    if len(first) == size:
        return
    most = 4 * CELLS // max(1, len(problem.pod_sets))
    locations = len(problem.nodes.location_cost)
    if size * locations > PAIRS:
        most = min(most, max(PAIRS // locations, isqrt(PAIRS)))
    if size <= most:
        yield np.arange(size)
    elif most > len(first):
        room, *more = rooms_of(problem)
        most += int(np.count_nonzero(needed))
        for special in more:
            best = np.argsort(-special, kind="stable")[: most // (2 * len(more))]
            needed[best[special[best] > 0]] = True
        others = np.argsort(-np.where(needed, -1.0, room), kind="stable")
        needed[others[: max(0, most - np.count_nonzero(needed))]] = True
        yield np.flatnonzero(needed)


def _needed(problem: Problem) -> Bools:
    """bool[N], nodes with placed replicas: what is on one node costs nothing."""
    needed = np.zeros(problem.nodes.size, dtype=np.bool_)
    for workload in problem.workloads:
        needed[[*workload.placed, *workload.leaving]] = True
    return needed


def _of_classes(problem: Problem, needed: Bools) -> Ints:
    """Nodes of each class in order, as many as its pods need and some to spare."""
    kind = classes(problem)
    order = np.argsort(kind, kind="stable")
    sorted_kind = kind[order]
    start = np.flatnonzero(np.append(True, sorted_kind[1:] != sorted_kind[:-1]))
    rank = np.arange(len(order)) - np.repeat(start, np.diff(np.append(start, len(order))))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = rank
    class_of = np.empty(len(order), dtype=np.int64)
    class_of[order] = np.repeat(np.arange(len(start)), np.diff(np.append(start, len(order))))
    cap = _nodes_used(problem)[order[start]][class_of]
    keep = (number < cap) | needed
    most = min(MOST, CELLS // max(1, len(problem.pod_sets)))
    if keep.sum() > most or len(np.unique(problem.nodes.location[keep])) > LOCATIONS:
        keep = _best_of_locations(problem, keep, most) | needed
    return np.flatnonzero(keep)


def _nodes_used(problem: Problem) -> Ints:
    """int64[N], how many nodes like each one a plan uses at most, roughly."""
    free = np.maximum(problem.nodes.free, 0)
    need = np.zeros(free.shape[1])
    replicas = 0
    for pod_set in problem.pod_sets:
        need += pod_set.replicas * pod_set.request
        replicas = max(replicas, pod_set.replicas)
    # What a node has none of fills it with nobody: pods that ask for other resources alone may well come there.
    filled = np.divide(need, free, out=np.zeros(free.shape), where=free > 0).max(axis=1, initial=0.0)
    used: Ints = np.minimum(np.ceil(1.25 * filled) + SPARE + replicas, problem.pods).astype(np.int64)
    return used


def classes(problem: Problem) -> Ints:
    """int64[N], equal for nodes that the problem does not tell apart."""
    nodes, requested = problem.nodes, requested_resources(problem)
    rng = np.random.default_rng(7)
    kind = np.zeros(nodes.size, dtype=np.uint64)

    def mix(values: npt.NDArray[np.generic]) -> None:
        nonlocal kind
        factor = rng.integers(1, 2**63, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        bits = np.ascontiguousarray(values).astype(np.float64).view(np.uint64)
        with np.errstate(over="ignore"):
            kind = (kind ^ (bits + (bits >> np.uint64(31)))) * factor
            kind ^= kind >> np.uint64(29)

    for resource in nodes.free.T[requested]:
        mix(resource)
    mix(nodes.location)
    mix(nodes.zone)
    if problem.sharing is not None:
        mix(problem.sharing.kind)
    if nodes.bandwidth is not None:
        mix(nodes.bandwidth)
    if nodes.reserve is not None:
        for resource in nodes.reserve.T[requested]:
            mix(resource)
    seen: set[int] = set()
    for pod_set in problem.pod_sets:
        for values in (pod_set.mask, pod_set.cost):
            if values is not None and id(values) not in seen:
                seen.add(id(values))
                mix(values)
    for rule in problem.rules:
        if id(rule.domain) not in seen:
            seen.add(id(rule.domain))
            if not every_node_its_own(rule.domain):
                mix(rule.domain)
        counted = rule.eligible if isinstance(rule, Spread) else rule.placed_subjects
        for more in (rule.placed, counted):
            if more is not None and id(more) not in seen:
                seen.add(id(more))
                mix(more)
    return kind.astype(np.int64)


def every_node_its_own(domain: Ints) -> bool:
    """Whether the domains are the nodes: they tell no two nodes apart."""
    keyed = domain[domain >= 0]
    return len(keyed) == len(domain) and bool((np.bincount(keyed) <= 1).all())


def _best_of_locations(problem: Problem, keep: Bools, most: int) -> Bools:
    """The emptiest nodes of promising locations, enough for all pods, and a few of the cheapest."""
    nodes, rooms = problem.nodes, rooms_of(problem)
    charge = np.zeros(nodes.size)
    for pod_set in problem.pod_sets:
        if pod_set.cost is not None:
            charge += pod_set.replicas * pod_set.cost
    if problem.sharing is not None:
        for row, number in problem.sharing.number.items():
            charge += problem.pod_sets[row].replicas * problem.sharing.alone[number][problem.sharing.kind]
    chosen = _shares(problem, np.where(keep, rooms[0], 0.0), most)
    spare = SPARE + max(pod_set.replicas for pod_set in problem.pod_sets)
    locations = _locations(problem, np.where(keep, rooms[0], 0.0))
    turns = len(rooms) * len(locations)
    few = max(1, min(FEW, most // (2 * max(1, turns))))
    left = most - few * turns - int(np.count_nonzero(chosen))
    for location in locations:
        here = np.flatnonzero(keep & (nodes.location == location))
        for number, room in enumerate(rooms):
            emptiest = here[np.argsort(-room[here], kind="stable")]
            if number:
                emptiest = emptiest[room[emptiest] > 0]
            enough = int(np.searchsorted(np.cumsum(room[emptiest]), ROOM)) + spare
            taken = emptiest[: max(few, min(enough, few + left))]
            left -= max(0, int(np.count_nonzero(~chosen[taken])) - few)
            chosen[taken] = True
        if charge.any():
            chosen[here[np.argsort(charge[here], kind="stable")[:few]]] = True
    return chosen


def _shares(problem: Problem, room: Floats, most: int) -> Bools:
    """bool[N], the emptiest nodes of every domain of hard spread constraints, enough for its share of their pods."""
    chosen = np.zeros(problem.nodes.size, dtype=np.bool_)
    rules = [rule for rule in problem.rules if isinstance(rule, Spread) and rule.hard]
    keys = {id(rule.domain): rule for rule in rules if rule.present.any()}
    keys = {key: rule for key, rule in keys.items() if not every_node_its_own(rule.domain)}
    for key, rule in keys.items():
        rows = {row for other in rules if id(other.domain) == key for row in other.subjects}
        pods = sum(problem.pod_sets[row].replicas for row in rows)
        domains = np.flatnonzero(rule.present).tolist()
        share = ROOM * pods / max(1, problem.pods) / len(domains)
        for domain in domains:
            here = np.flatnonzero((rule.domain == domain) & (room > 0))
            emptiest = here[np.argsort(-room[here], kind="stable")]
            enough = int(np.searchsorted(np.cumsum(room[emptiest]), share)) + 1
            chosen[emptiest[: min(enough, most // (len(keys) * len(domains)))]] = True
    return chosen


def _locations(problem: Problem, room: Floats) -> list[int]:
    """Locations to look at, in the order in which columns go to them."""
    nodes = problem.nodes
    total = np.zeros(len(nodes.location_cost))
    np.add.at(total, nodes.location, room)
    placed = np.zeros(len(total))
    for workload in problem.workloads:
        for node, count in workload.placed.items():
            placed[nodes.location[node]] += count
    return in_order(nodes.location_cost, total, placed, LOCATIONS)
