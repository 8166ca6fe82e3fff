"""Small problems for the planner in counts, its books, and plans pod by pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Edge, Nodes, PodSet, Prices, Problem, Rule, Workload
from berth.scheduling.replicas.result import Plan
from berth.scheduling.replicas.rule import Spread
from berth.scheduling.replicas.search.draft import Draft

COST = np.array([[1.0, 5, 80, 80], [5, 1, 80, 80], [80, 80, 1, 5], [80, 80, 5, 1]])
"""Four zones in two regions"""
HOST, ZONE = np.arange(8), np.repeat(np.arange(4), 2)
"""Domains of the eight nodes of `nodes`: two in each zone"""


def nodes(cpu: int | Sequence[int] = 10, **fields: Any) -> Nodes:
    """Eight nodes in four zones."""
    free = np.broadcast_to(np.array(cpu, dtype=np.int64), 8).reshape(8, 1).copy()
    return Nodes(**{"free": free, "location": ZONE, "location_cost": COST, "zone": ZONE, **fields})


def problem(
    *replicas: int,
    edges: Sequence[tuple[int, int] | Edge] = (),
    routing: Routing | Sequence[Routing] = Routing.ALL,
    placed: dict[int, dict[int, int]] | None = None,
    rules: Sequence[Rule] = (),
    on: Nodes | None = None,
    prices: Prices | None = None,
    **sets: Any,
) -> Problem:
    """A workload with one pod set of unit requests for each number of replicas."""
    routings = [routing] * len(replicas) if isinstance(routing, Routing) else routing
    return Problem(
        nodes=on or nodes(),
        workloads=[
            Workload(name=f"w{w}", routing=each, placed=(placed or {}).get(w, {})) for w, each in enumerate(routings)
        ],
        pod_sets=[
            PodSet(**{"workload": w, "replicas": count, "request": np.array([1]), **sets})
            for w, count in enumerate(replicas)
        ],
        edges=[each if isinstance(each, Edge) else Edge(caller=each[0], callee=each[1]) for each in edges],
        rules=rules,
        prices=prices or Prices(),
    )


def with_rules(seed: int, kind: type[Rule], *, required: bool) -> Problem:
    """A generated problem with those of its rules alone that are of a kind."""
    asked = small_problem(seed)
    rules = [rule for rule in asked.rules if isinstance(rule, kind) and is_required(rule) is required]
    return replace(asked, rules=rules)


@cache
def seeds_of(kind: type[Rule], *, required: bool) -> list[int]:
    """Seeds whose generated problems have such rules."""
    return [seed for seed in range(400) if with_rules(seed, kind, required=required).rules]


def is_required(rule: Rule) -> bool:
    """Whether a plan must keep it."""
    return rule.hard if isinstance(rule, Spread) else rule.weight is None


def books_of(asked: Problem, columns: Sequence[int] | None = None) -> Books:
    """Books over all nodes, or over some."""
    return Books(Model(asked, np.arange(asked.nodes.size) if columns is None else np.array(columns)))


def walk(books: Books, rng: np.random.Generator, steps: int, columns: Sequence[int] | None = None) -> None:
    """Random insertions, of no more pods than there are, and removals, room or not."""
    places = range(books.model.size) if columns is None else columns
    for _ in range(steps):
        planned = np.argwhere(books.planned)
        waiting = np.flatnonzero(books.planned.sum(axis=1) < books.model.replicas)
        if len(planned) and (not len(waiting) or rng.random() < 0.4):
            row, column = planned[rng.integers(len(planned))].tolist()
            books.remove(row, column)
        elif len(waiting):
            books.insert(int(rng.choice(waiting)), int(rng.choice(places)))


def filled(asked: Problem, rng: np.random.Generator) -> Draft:
    """A draft with every pod where there is room for it, somewhere, in any order."""
    draft = Draft(books_of(asked))
    for row in rng.permutation(len(draft.missing)).tolist():
        while draft.missing[row]:
            able = np.flatnonzero(draft.books.can(row))
            if not len(able):
                break
            draft.put(row, int(rng.choice(able)))
    return draft


def state_of(answer: Plan | Books) -> list[tuple[int, ...]]:
    """The node of each pod, by pod set."""
    if isinstance(answer, Books):
        columns = answer.model.columns
        return [tuple(np.repeat(columns, counts).tolist()) for counts in answer.planned]
    return [tuple(node for node, n in sorted(counts.items()) for _ in range(n)) for counts in answer.counts]


def check_changes(books: Books) -> None:
    """One more pod of each set costs on each column what the objective is more then."""
    scale = 1e-9 * books.model.penalty
    for row in range(len(books.model.workload)):
        before, change = books.value(), books.costs(row)
        for column in range(books.model.size):
            books.insert(row, column)
            assert books.value() - before == pytest.approx(change[column], abs=scale, rel=1e-9)
            books.remove(row, column)
