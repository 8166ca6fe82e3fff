"""The best plan in counts by trying all of them: branch and bound with plain loops, for problems of a few pods."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement

from bench.replicas_core.judge import Judge, Nodes, Part
from berth.scheduling.replicas.problem import Problem


class TooLargeError(Exception):
    """More states than anybody wants to wait for."""


def best(problem: Problem, limit: int = 2_000_000) -> tuple[float, list[Nodes] | None]:
    """The lowest objective and a state that has it; (infinite, None) where no placement exists.

    Every part of the objective is at least 0 and is added as soon as all pod sets that it depends on are decided.
    """
    judge = Judge(problem)
    size = len(problem.pod_sets)
    options = [[nodes for nodes in _options(problem, row) if _fits(judge, problem, row, nodes)] for row in range(size)]
    order = sorted(range(size), key=lambda row: len(options[row]))
    position = {row: number for number, row in enumerate(order)}
    due: list[list[Part]] = [[] for _ in range(size)]
    base = 0.0
    for part in judge.parts:
        if part.rows:
            due[max(position[row] for row in part.rows)].append(part)
        else:
            base += part.value([()] * size)
    known: dict[tuple[int, tuple[Nodes, ...]], float] = {}
    state: list[Nodes] = [()] * size
    record: list[Nodes] | None = None
    lowest, visited = math.inf, 0

    def ask(part: Part) -> float:
        key = (id(part), tuple(state[row] for row in part.rows))
        if key not in known:
            known[key] = part.value(state)
        return known[key]

    def descend(depth: int, value: float) -> None:
        nonlocal lowest, record, visited
        if depth == size:
            lowest, record = value, list(state)
            return
        row = order[depth]
        ranked = []
        for nodes in options[row]:
            visited += 1
            if visited > limit:
                raise TooLargeError
            state[row] = nodes
            total = value
            for part in due[depth]:
                total += part.value(state) if len(part.rows) == size else ask(part)
                if not total < lowest:
                    break
            else:
                ranked.append((total, nodes))
        ranked.sort()
        for total, nodes in ranked:
            if not total < lowest - 1e-12:
                break
            state[row] = nodes
            descend(depth + 1, total)

    descend(0, base)
    return lowest, record


def _options(problem: Problem, row: int) -> Iterator[Nodes]:
    return combinations_with_replacement(range(problem.nodes.size), problem.pod_sets[row].replicas)


def _fits(judge: Judge, problem: Problem, row: int, nodes: Nodes) -> bool:
    state: list[Nodes] = [()] * len(problem.pod_sets)
    state[row] = nodes
    return all(not math.isinf(part.value(state)) for part in judge.parts if part.rows == (row,) or part.name == "room")
