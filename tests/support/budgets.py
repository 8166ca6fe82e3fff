"""Generated applications with minBandwidth between places whose budgets just suffice for one of their placements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.scheduling.replicas.problem import Link, Problem
from tests.support.counts import is_required

TRIES = 50
"""Random placements that are looked at for one that keeps all rules."""


def small(seed: int) -> Problem | None:
    """A generated problem with links whose budgets its pods take all of, or nearly; None if no placement came up.

    Every second one has hard rules as well, of one in three some budget is one bit/s short of what is needed.
    """
    rng = np.random.default_rng(seed)
    asked = small_problem(seed)
    edges = [
        replace(edge, bandwidth=float(rng.integers(1, 10)), max_cost=edge.max_cost if seed % 2 else np.inf)
        for edge in asked.edges
    ]
    rules = [rule for rule in asked.rules if seed % 2 or not is_required(rule)]
    asked = replace(asked, edges=edges, rules=rules, nodes=replace(asked.nodes, bandwidth=None))
    state = placement(asked, rng)
    return None if state is None else tight(asked, state, rng)


def placement(asked: Problem, rng: np.random.Generator) -> list[tuple[int, ...]] | None:
    """A placement at random that keeps all rules, if one comes up."""
    judge = Judge(asked)
    for _ in range(TRIES):
        free = asked.nodes.free.copy()
        state: list[tuple[int, ...]] = []
        for pod_set in asked.pod_sets:
            homes: list[int] = []
            for _ in range(pod_set.replicas):
                room = (free >= pod_set.request).all(axis=1) & (True if pod_set.mask is None else pod_set.mask)
                if not room.any():
                    break
                homes.append(int(rng.choice(np.flatnonzero(room))))
                free[homes[-1]] -= pod_set.request
            state.append(tuple(sorted(homes)))
        placed = sum(map(len, state))
        if placed == asked.pods and not judge.broken(state):
            return state
    return None


def tight(asked: Problem, state: Sequence[tuple[int, ...]], rng: np.random.Generator) -> Problem:
    """The problem with links and nodes that have just what a placement takes of them, some a little more or less."""
    count = len(asked.nodes.location_cost)
    pairs = [(a, b) for a in range(count) for b in range(a, count)]
    chosen = [[pair] for pair in pairs if rng.random() < 0.7]
    if rng.random() < 0.3:
        chosen.append([pair for pair in pairs if pair[0] != pair[1]])
    nodes = replace(asked.nodes, links=[Link(between, 0.0) for between in chosen])
    usage = np.array(Judge(replace(asked, nodes=nodes)).usage(state, asked.edges))
    short = rng.random() < 1 / 3
    usage += rng.choice([0, 0, 1], len(usage)) - (short * rng.choice([0, 0, 0, 1], len(usage)))
    size = asked.nodes.size
    links = [Link(between, float(free)) for between, free in zip(chosen, usage[size:], strict=True)]
    budgets = usage[:size] if rng.random() < 0.3 else None
    return replace(asked, nodes=replace(nodes, links=links, bandwidth=budgets))
