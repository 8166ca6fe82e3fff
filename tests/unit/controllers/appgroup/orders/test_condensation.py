"""Strongly connected components, cycle paths, and what cycles do to the orders."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.appgroup import SortingAlgorithm
from controllers.appgroup.orders import DependencyGraph, sort_workloads
from controllers.appgroup.orders.condensation import condense
from controllers.appgroup.orders.kahn import kahn_order
from tests.unit.controllers.appgroup.graphs import acyclic_graphs, graphs, respects


def reachable(graph: DependencyGraph, start: int) -> set[int]:
    """Return the nodes that at least one edge leads to, starting at ``start``."""
    found: set[int] = set()
    waiting = list(graph.successors[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(graph.successors[node])
    return found


CASES = [
    pytest.param([], (), (), id="empty"),
    pytest.param([[1], []], ((0,), (1,)), (), id="no cycle"),
    pytest.param([[0]], ((0,),), ((0, 0),), id="self-edge"),
    pytest.param([[1], [0]], ((0, 1),), ((0, 1, 0),), id="pair"),
    pytest.param([[1], [2], [0]], ((0, 1, 2),), ((0, 1, 2, 0),), id="ring of three"),
    pytest.param([[1], [2], [1]], ((0,), (1, 2)), ((1, 2, 1),), id="root above a pair"),
    pytest.param([[1], [0, 2], [3], [2]], ((0, 1), (2, 3)), ((0, 1, 0), (2, 3, 2)), id="two pairs"),
    pytest.param([[1, 2], [2], [0]], ((0, 1, 2),), ((0, 2, 0),), id="the shortest way round is shown"),
    pytest.param([[2], [0], [1], [0]], ((0, 1, 2), (3,)), ((0, 2, 1, 0),), id="path follows the edges"),
    # 0 is on the cycle through 1 only; 2 joins the component by 1 -> 2 -> 1.
    pytest.param([[1], [2, 0], [1]], ((0, 1, 2),), ((0, 1, 0),), id="two cycles in one component"),
]


@pytest.mark.parametrize(("successors", "members", "cycles"), CASES)
def test_condense(
    successors: list[list[int]], members: tuple[tuple[int, ...], ...], cycles: tuple[tuple[int, ...], ...]
) -> None:
    condensation = condense(DependencyGraph.of(successors))
    assert condensation.members == members
    assert condensation.cycles == cycles


@given(graphs())
def test_components_are_mutual_reachability(graph: DependencyGraph) -> None:
    component = {node: number for number, nodes in enumerate(condense(graph).members) for node in nodes}
    reach = [reachable(graph, node) for node in range(len(graph))]
    for a in range(len(graph)):
        for b in range(len(graph)):
            together = a == b or (b in reach[a] and a in reach[b])
            assert (component[a] == component[b]) is together


@given(graphs())
def test_condensation_is_acyclic_and_keeps_the_edges(graph: DependencyGraph) -> None:
    condensation = condense(graph)
    assert respects(condensation.graph, kahn_order(condensation.graph))
    component = {node: number for number, nodes in enumerate(condensation.members) for node in nodes}
    expected = {
        (component[node], component[target])
        for node, targets in enumerate(graph.successors)
        for target in targets
        if component[node] != component[target]
    }
    found = {(node, target) for node, targets in enumerate(condensation.graph.successors) for target in targets}
    assert found == expected


@given(acyclic_graphs())
def test_condensing_an_acyclic_graph_changes_nothing(graph: DependencyGraph) -> None:
    condensation = condense(graph)
    assert condensation.graph == graph
    assert condensation.cycles == ()


@given(graphs())
def test_every_reported_cycle_is_one(graph: DependencyGraph) -> None:
    condensation = condense(graph)
    with_cycle = [nodes for nodes in condensation.members if nodes[0] in reachable(graph, nodes[0])]
    assert len(condensation.cycles) == len(with_cycle)
    for cycle, nodes in zip(condensation.cycles, with_cycle, strict=True):
        assert cycle[0] == cycle[-1] == nodes[0]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(target in graph.successors[node] for node, target in itertools.pairwise(cycle))
        assert set(cycle) <= set(nodes)


@given(graphs(), st.sampled_from(SortingAlgorithm))
def test_members_of_a_component_stand_together_in_declaration_order(
    graph: DependencyGraph, algorithm: SortingAlgorithm
) -> None:
    order = sort_workloads(graph, algorithm).order
    for nodes in condense(graph).members:
        start = order.index(nodes[0])
        assert order[start : start + len(nodes)] == nodes


@given(graphs(), st.sampled_from([SortingAlgorithm.KAHN_SORT, SortingAlgorithm.TARJAN_SORT]))
def test_edges_between_components_lead_forwards(graph: DependencyGraph, algorithm: SortingAlgorithm) -> None:
    place = {node: index for index, node in enumerate(sort_workloads(graph, algorithm).order)}
    for node, targets in enumerate(graph.successors):
        for target in targets:
            if node not in reachable(graph, target):
                assert place[node] < place[target]


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        pytest.param("KahnSort", (0, 1, 3, 4, 2), id="kahn"),
        pytest.param("AlternateKahn", (0, 2, 1, 3, 4), id="alternate kahn"),
        pytest.param("ReverseKahn", (2, 4, 1, 3, 0), id="reverse kahn"),
        pytest.param("TarjanSort", (0, 1, 3, 4, 2), id="tarjan"),
        pytest.param("AlternateTarjan", (0, 2, 1, 3, 4), id="alternate tarjan"),
        pytest.param("ReverseTarjan", (2, 4, 1, 3, 0), id="reverse tarjan"),
    ],
)
def test_orders_with_a_cycle(algorithm: str, expected: tuple[int, ...]) -> None:
    # frontend -> cart, catalog; cart <-> checkout; checkout -> payment
    graph = DependencyGraph.of([[2, 1], [3], [], [1, 4], []])
    ordering = sort_workloads(graph, SortingAlgorithm(algorithm))
    assert ordering.order == expected
    assert ordering.cycles == ((1, 3, 1),)
