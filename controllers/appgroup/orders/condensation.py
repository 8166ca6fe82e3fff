"""Strongly connected components: what turns a graph with cycles into one that can be ordered.

Source: S. R. Kosaraju's two depth-first searches, as in A. Aho, J. Hopcroft, J. Ullman, "Data
Structures and Algorithms" (1983): the finishing order of the graph, backwards, picks the roots of a
search in the transposed graph, and every tree of that search is one component.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from controllers.appgroup.orders.graph import DependencyGraph
from controllers.appgroup.orders.tarjan import finishing_order


@dataclass(frozen=True, slots=True)
class Condensation:
    """A graph with each strongly connected component drawn together into one node."""

    graph: DependencyGraph
    """The acyclic graph of the components, numbered by the first declared member of each."""
    members: tuple[tuple[int, ...], ...]
    """For every component its nodes of the original graph, in declaration order."""
    cycles: tuple[tuple[int, ...], ...]
    """One cycle per component that has any: nodes of the original graph, the first one again at the end."""


def condense(graph: DependencyGraph) -> Condensation:
    """Return the condensation of ``graph``, in time linear in its nodes and edges."""
    members = _components(graph)
    component = [0] * len(graph)
    for number, nodes in enumerate(members):
        for node in nodes:
            component[node] = number
    successors = [
        [component[target] for node in nodes for target in graph.successors[node] if component[target] != number]
        for number, nodes in enumerate(members)
    ]
    cyclic = (nodes for nodes in members if len(nodes) > 1 or nodes[0] in graph.successors[nodes[0]])
    cycles = tuple(_cycle(graph, nodes, component) for nodes in cyclic)
    return Condensation(graph=DependencyGraph.of(successors), members=members, cycles=cycles)


def _components(graph: DependencyGraph) -> tuple[tuple[int, ...], ...]:
    """Return the strongly connected components, each sorted, ordered by their first node."""
    transposed: list[list[int]] = [[] for _ in range(len(graph))]
    for node, targets in enumerate(graph.successors):
        for target in targets:
            transposed[target].append(node)
    taken = [False] * len(graph)
    found: list[tuple[int, ...]] = []
    for root in reversed(finishing_order(graph)):
        if taken[root]:
            continue
        taken[root] = True
        nodes = [root]
        for node in nodes:  # grows while it is walked: the reached part of the component
            for source in transposed[node]:
                if not taken[source]:
                    taken[source] = True
                    nodes.append(source)
        found.append(tuple(sorted(nodes)))
    return tuple(sorted(found))


def _cycle(graph: DependencyGraph, nodes: tuple[int, ...], component: list[int]) -> tuple[int, ...]:
    """Return a shortest cycle through the first node of a component, as a breadth-first search finds it."""
    start = nodes[0]
    came_from: dict[int, int] = {}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for target in graph.successors[node]:
            if target == start:
                path = [start]
                while node != start:
                    path.append(node)
                    node = came_from[node]
                return (start, *reversed(path))
            if component[target] == component[start] and target not in came_from:
                came_from[target] = node
                waiting.append(target)
    raise ValueError(f"node {start} is on no cycle")
