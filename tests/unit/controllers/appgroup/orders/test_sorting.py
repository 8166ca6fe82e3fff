"""The six orders on the reference application, on small shapes, and as properties of random graphs.

Left out: cycles and components (test_condensation.py), huge graphs (test_orders_large.py).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.appgroup import SortingAlgorithm
from controllers.appgroup.orders import DependencyGraph, sort_workloads
from controllers.appgroup.orders.kahn import kahn_order
from controllers.appgroup.orders.tarjan import finishing_order, tarjan_order
from controllers.appgroup.orders.transforms import alternate, reverse
from hack.harness import boutique
from tests.unit.controllers.appgroup.graphs import acyclic_graphs, graphs, respects


@pytest.mark.parametrize("size", [10, 11])
@pytest.mark.parametrize("algorithm", list(SortingAlgorithm))
def test_online_boutique(algorithm: SortingAlgorithm, size: int) -> None:
    expected = (boutique.ORDERS_10 if size == 10 else boutique.ORDERS_11)[algorithm]
    ordering = sort_workloads(DependencyGraph.of(boutique.successors(size)), algorithm)
    selectors = boutique.names(size)
    assert " ".join(selectors[node] for node in ordering.order) == expected
    assert ordering.cycles == ()


SHAPES = [
    pytest.param([], [], [], id="empty"),
    pytest.param([[]], [0], [0], id="single"),
    pytest.param([[1], [2], []], [0, 1, 2], [0, 1, 2], id="chain"),
    pytest.param([[], [0], [1]], [2, 1, 0], [2, 1, 0], id="chain declared backwards"),
    pytest.param([[1, 2, 3], [], [], []], [0, 3, 2, 1], [0, 3, 2, 1], id="star: newest child first"),
    pytest.param([[], [], []], [2, 1, 0], [2, 1, 0], id="no edges: newest root first"),
    pytest.param([[1, 2], [3], [3], []], [0, 2, 1, 3], [0, 2, 1, 3], id="diamond"),
    pytest.param([[1, 1, 2, 1], [], []], [0, 2, 1], [0, 2, 1], id="repeated edge counts once"),
    # Kahn releases 3 with its last dependent 2; Tarjan finishes 3 below 1, before 2 is entered.
    pytest.param([[1, 2], [3, 4], [3], [], []], [0, 2, 1, 4, 3], [0, 2, 1, 4, 3], id="shared child"),
    pytest.param([[2], [2, 3], [], []], [1, 3, 0, 2], [1, 3, 0, 2], id="two roots share a child"),
    pytest.param([[1], [], [1]], [2, 0, 1], [2, 0, 1], id="late root"),
    pytest.param([[1, 3], [2], [], [2, 4], []], [0, 3, 4, 1, 2], [0, 3, 4, 1, 2], id="deep before wide"),
    pytest.param([[2, 1], [3], [3], []], [0, 1, 2, 3], [0, 1, 2, 3], id="declared order of edges counts"),
    pytest.param([[1, 2], [], [1, 3], []], [0, 2, 3, 1], [0, 2, 3, 1], id="edge between siblings"),
]


@pytest.mark.parametrize(("successors", "kahn", "tarjan"), SHAPES)
def test_base_orders(successors: list[list[int]], kahn: list[int], tarjan: list[int]) -> None:
    graph = DependencyGraph.of(successors)
    assert kahn_order(graph) == kahn
    assert tarjan_order(graph) == tarjan


def test_the_two_base_orders_differ_where_their_definitions_do() -> None:
    # p8 -> p5, p6, p7 with p6 known earlier: Kahn takes p7 p6 p5, the search has left p6 before it finds p5.
    graph = DependencyGraph.of([[2, 1], [3, 2, 4], [], [], []])
    assert kahn_order(graph) == [0, 1, 4, 2, 3]
    assert tarjan_order(graph) == [0, 1, 4, 3, 2]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param([], [], id="empty"),
        pytest.param([1], [1], id="one"),
        pytest.param([1, 2], [1, 2], id="two"),
        pytest.param([1, 2, 3], [1, 3, 2], id="odd"),
        pytest.param([1, 2, 3, 4], [1, 4, 2, 3], id="even"),
    ],
)
def test_alternate(items: list[int], expected: list[int]) -> None:
    assert alternate(items) == expected


@given(st.lists(st.integers(), unique=True))
def test_alternate_takes_from_both_ends(items: list[int]) -> None:
    result = alternate(items)
    assert result[0::2] == items[: (len(items) + 1) // 2]
    assert result[1::2] == items[::-1][: len(items) // 2]


@given(st.lists(st.integers()))
def test_reverse_undoes_itself(items: list[int]) -> None:
    assert reverse(reverse(items)) == items


@given(acyclic_graphs())
def test_base_orders_put_dependents_first(graph: DependencyGraph) -> None:
    assert respects(graph, kahn_order(graph))
    assert respects(graph, tarjan_order(graph))


@given(acyclic_graphs())
def test_tarjan_is_the_recursive_definition(graph: DependencyGraph) -> None:
    left: list[int] = []
    entered: set[int] = set()

    def visit(node: int) -> None:
        entered.add(node)
        for target in graph.successors[node]:
            if target not in entered:
                visit(target)
        left.append(node)

    for root in range(len(graph)):
        if root not in entered:
            visit(root)
    assert finishing_order(graph) == left
    assert tarjan_order(graph) == left[::-1]


@given(graphs(), st.sampled_from(SortingAlgorithm))
def test_every_order_is_a_permutation_and_repeatable(graph: DependencyGraph, algorithm: SortingAlgorithm) -> None:
    ordering = sort_workloads(graph, algorithm)
    assert sorted(ordering.order) == list(range(len(graph)))
    assert sort_workloads(graph, algorithm) == ordering


@given(graphs())
def test_transforms_apply_to_their_base(graph: DependencyGraph) -> None:
    for base, alternated, reversed_ in [
        (SortingAlgorithm.KAHN_SORT, SortingAlgorithm.ALTERNATE_KAHN, SortingAlgorithm.REVERSE_KAHN),
        (SortingAlgorithm.TARJAN_SORT, SortingAlgorithm.ALTERNATE_TARJAN, SortingAlgorithm.REVERSE_TARJAN),
    ]:
        ordering = sort_workloads(graph, base)
        if not ordering.cycles:
            assert list(sort_workloads(graph, alternated).order) == alternate(ordering.order)
            assert list(sort_workloads(graph, reversed_).order) == reverse(ordering.order)


@pytest.mark.parametrize("order", [kahn_order, tarjan_order], ids=["kahn", "tarjan"])
@pytest.mark.parametrize(
    "successors",
    [
        pytest.param([[0]], id="self"),
        pytest.param([[1], [0]], id="pair"),
        pytest.param([[1], [2], [1]], id="behind a root"),
    ],
)
def test_base_orders_refuse_cycles(order: object, successors: list[list[int]]) -> None:
    assert callable(order)
    with pytest.raises(ValueError, match="condense"):
        order(DependencyGraph.of(successors))


def test_edges_must_stay_in_the_graph() -> None:
    with pytest.raises(ValueError, match="0 -> 7 leads out of the graph of 2 nodes"):
        DependencyGraph.of([[1, 7], []])
