"""KahnSort: repeatedly take a workload that nothing waiting depends on, the newest ready one first.

Source: A. B. Kahn, "Topological sorting of large networks", CACM 5 (1962), with a stack for the set
of ready nodes.
"""

from __future__ import annotations

from controllers.appgroup.orders.graph import DependencyGraph


def kahn_order(graph: DependencyGraph) -> list[int]:
    """Return the nodes of an acyclic graph, dependents before what they depend on.

    The stack of ready nodes begins with the nodes without dependents in declaration order; a node's
    dependencies are pushed in declared order as their in-degree reaches 0; the last pushed is next.

    Raises:
        ValueError: the graph has a cycle; condense it first.
    """
    degrees = graph.in_degrees()
    ready = [node for node, degree in enumerate(degrees) if degree == 0]
    order: list[int] = []
    while ready:
        node = ready.pop()
        order.append(node)
        for target in graph.successors[node]:
            degrees[target] -= 1
            if degrees[target] == 0:
                ready.append(target)
    if len(order) < len(graph):
        raise ValueError("the graph has a cycle; condense it before ordering")
    return order
