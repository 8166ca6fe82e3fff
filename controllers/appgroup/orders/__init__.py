"""The six orders of an application's workloads: pure, deterministic, without recursion.

A graph numbers the workloads in declaration order; an order is a permutation of these numbers. Every
algorithm breaks ties by declaration order alone, so the same object always gives the same order.
Cycles are condensed first (:mod:`.condensation`): the components are ordered like workloads, and the
workloads of one component stand next to each other in declaration order. Without a cycle the
condensation is the graph itself, so it changes nothing.

Source: the six algorithms of the KEP "Network-Aware Scheduling" (kubernetes sig-scheduling, 260).
"""

from controllers.appgroup.orders.graph import DependencyGraph
from controllers.appgroup.orders.sorting import Ordering, sort_workloads

__all__ = ["DependencyGraph", "Ordering", "sort_workloads"]
