"""TarjanSort: the order in which a depth-first search finishes, backwards.

Source: R. Tarjan, "Edge-disjoint spanning trees and depth-first search", Acta Informatica 6 (1976).
"""

from __future__ import annotations

from controllers.appgroup.orders.graph import DependencyGraph


def finishing_order(graph: DependencyGraph) -> list[int]:
    """Return the nodes in the order in which a depth-first search leaves them.

    The search begins at every unvisited node in declaration order and follows edges in declared
    order. It keeps its own stack, so the depth of the graph does not matter; a cycle does no harm.
    """
    visited = [False] * len(graph)
    finished: list[int] = []
    for root in range(len(graph)):
        if visited[root]:
            continue
        visited[root] = True
        stack = [(root, iter(graph.successors[root]))]
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if not visited[target]:
                    visited[target] = True
                    stack.append((target, iter(graph.successors[target])))
                    break
            else:
                finished.append(node)
                stack.pop()
    return finished


def tarjan_order(graph: DependencyGraph) -> list[int]:
    """Return the nodes of an acyclic graph, dependents before what they depend on.

    Raises:
        ValueError: the graph has a cycle; condense it first.
    """
    order = finishing_order(graph)[::-1]
    place = [0] * len(order)
    for index, node in enumerate(order):
        place[node] = index
    # An edge that does not lead forwards in this order closes a cycle, and every cycle has such an edge.
    if any(place[target] <= place[node] for node in order for target in graph.successors[node]):
        raise ValueError("the graph has a cycle; condense it before ordering")
    return order
