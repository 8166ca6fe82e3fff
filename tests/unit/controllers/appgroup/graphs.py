"""Random and large graphs for the order tests."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import strategies as st

from controllers.appgroup.orders import DependencyGraph


def respects(graph: DependencyGraph, order: Sequence[int]) -> bool:
    """Return whether ``order`` is a permutation of the nodes with every edge leading forwards."""
    place = {node: index for index, node in enumerate(order)}
    forwards = all(place[node] < place[target] for node in place for target in graph.successors[node])
    return sorted(order) == list(range(len(graph))) and forwards


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 12) -> DependencyGraph:
    """Any graph: cycles, self-edges and repeated edges included."""
    size = draw(st.integers(0, max_nodes))
    if size == 0:
        return DependencyGraph.of([])
    targets = st.lists(st.integers(0, size - 1), max_size=size)
    return DependencyGraph.of(draw(st.lists(targets, min_size=size, max_size=size)))


@st.composite
def acyclic_graphs(draw: st.DrawFn, max_nodes: int = 12) -> DependencyGraph:
    """A graph without cycles whose declaration order is unrelated to its edges."""
    size = draw(st.integers(0, max_nodes))
    rank = draw(st.permutations(range(size)))
    successors = []
    for node in range(size):
        later = [other for other in range(size) if rank[other] > rank[node]]
        successors.append(draw(st.lists(st.sampled_from(later), max_size=len(later))) if later else [])
    return DependencyGraph.of(successors)


def chain(size: int) -> DependencyGraph:
    """Return 0 -> 1 -> ... -> size-1."""
    return DependencyGraph.of([[node + 1] if node + 1 < size else [] for node in range(size)])


def ring(size: int) -> DependencyGraph:
    """Return the chain with its end joined to its start."""
    return DependencyGraph.of([[(node + 1) % size] for node in range(size)])


def star(size: int) -> DependencyGraph:
    """Return one node that depends on all others."""
    return DependencyGraph.of([list(range(1, size)), *([] for _ in range(size - 1))])


def funnel(size: int) -> DependencyGraph:
    """Return size-1 nodes that all depend on the last one."""
    return DependencyGraph.of([*([size - 1] for _ in range(size - 1)), []])


def random_acyclic(size: int, *, degree: int, seed: int) -> DependencyGraph:
    """Return a random graph with ``degree`` edges per node, each to a later node."""
    rng = random.Random(seed)
    return DependencyGraph.of(
        [
            rng.sample(range(node + 1, size), min(degree, size - node - 1)) if node + 1 < size else []
            for node in range(size)
        ]
    )


def random_graph(size: int, *, degree: int, seed: int) -> DependencyGraph:
    """Return a random graph with ``degree`` edges per node to anywhere."""
    rng = random.Random(seed)
    return DependencyGraph.of([rng.sample(range(size), degree) for _ in range(size)])
