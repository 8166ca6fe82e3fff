"""Parts of a slice: what shares a node, in as few parts as have room, cutting as little as possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.cases import boutique, cluster, mesh
from berth.scheduling.gang.budget import UNLIMITED, finish
from berth.scheduling.replicas.problem import Bools, Edge, PodSet, Problem, Workload
from berth.scheduling.replicas.rule import Affinity
from berth.scheduling.replicas.search.template import MOST_PAIRS, _links, _some_node_takes, cut_cost, parts
from tests.support.counts import HOST, books_of, nodes, problem


@pytest.mark.parametrize(
    ("cpu", "edges", "expected"),
    [
        pytest.param(9, [(0, 1), (1, 2), (2, 3)], [(0, 1, 2, 3)], id="all on one node"),
        pytest.param(9, [(0, 1), (2, 3)], [(0, 1), (2, 3)], id="what does not call each other is apart"),
        pytest.param(2, [(0, 1), (0, 1), (1, 2), (2, 3), (2, 3)], [(0, 1), (2, 3)], id="the light edge is cut"),
        pytest.param(2, [(0, 1), (1, 2), (1, 2), (2, 3)], [(1, 2), (0,), (3,)], id="the heavy edge is kept"),
        pytest.param(1, [(0, 1), (1, 2), (2, 3)], [(0,), (1,), (2,), (3,)], id="one a node"),
        pytest.param(0, [(0, 1)], [(0,), (1,), (2,), (3,)], id="no room: each by itself"),
    ],
)
def test_parts(cpu: int, edges: list[tuple[int, int]], expected: list[tuple[int, ...]]) -> None:
    books = books_of(problem(1, 1, 1, 1, edges=edges, on=nodes(cpu)))
    assert finish(parts(books, range(4))) == expected


@pytest.mark.parametrize(
    ("template", "edges", "expected"),
    [
        pytest.param([(0, 1, 2)], [(0, 1), (1, 2)], 0.0, id="nothing"),
        pytest.param([(0, 1), (2,)], [(0, 1), (1, 2), (1, 2), (0, 2)], 3.0, id="edges between parts, each"),
        pytest.param([(0,), (1,)], [(0, 1), (1, 2)], 1.0, id="none to others"),
    ],
)
def test_cut_edges_cost_what_calls_inside_a_location_cost(
    template: list[tuple[int, ...]], edges: list[tuple[int, int]], expected: float
) -> None:
    assert cut_cost(books_of(problem(1, 1, 1, edges=edges)), template) == expected


@pytest.mark.parametrize(("replicas", "sizes"), [(1, [4]), (2, [2, 2]), (4, [1, 1, 1, 1])])
def test_a_node_has_room_for_all_replicas_of_a_part(replicas: int, sizes: list[int]) -> None:
    books = books_of(problem(4, 4, 4, 4, edges=[(0, 1), (1, 2), (2, 3)], on=nodes(4)))
    assert [len(part) for part in finish(parts(books, range(4), replicas))] == sizes


def test_room_is_that_of_the_upper_quarter_of_the_nodes() -> None:
    """A few large nodes are no measure, nor are full ones."""
    chain = [(0, 1), (1, 2), (2, 3)]
    few, many = ([2, 2, 2, 2, 2, 2, 2, 9], [0, 0, 0, 2, 2, 9, 9, 9])
    sizes = [
        [len(part) for part in finish(parts(books_of(problem(1, 1, 1, 1, edges=chain, on=nodes(cpu))), range(4)))]
        for cpu in (few, many)
    ]
    assert sizes == [[2, 2], [4]]


@pytest.mark.parametrize("unasked", [0, -1, 7], ids=["none", "over-committed", "some"])
def test_room_is_that_for_what_is_asked(unasked: int) -> None:
    """The one node that has what nobody asks for is no larger than others."""
    chain = [(0, 1), (1, 2), (2, 3)]
    asked = problem(1, 1, 1, 1, edges=chain, on=nodes([2, 2, 2, 2, 4, 4, 4, 2]))
    free = np.column_stack([asked.nodes.free, np.full(8, unasked)])
    free[7, 1] = 8
    sets = [replace(pod_set, request=np.array([1, 0])) for pod_set in asked.pod_sets]
    books = books_of(replace(asked, nodes=replace(asked.nodes, free=free), pod_sets=sets))
    assert finish(parts(books, range(4))) == [(0, 1, 2, 3)]


def test_a_pod_set_goes_over_to_the_part_that_it_calls_more() -> None:
    """Merging puts 1 with 0, as all edges are alike; together 2 and 3 pull it away."""
    books = books_of(problem(1, 1, 1, 1, edges=[(0, 1), (1, 2), (1, 3), (2, 3)], on=nodes(3)))
    assert finish(parts(books, range(4))) == [(1, 2, 3), (0,)]


def test_pod_sets_of_one_workload_are_linked_with_what_it_calls() -> None:
    sets = [PodSet(workload=w, replicas=1, request=np.array([1])) for w in (0, 0, 1)]
    books = books_of(
        Problem(
            nodes=nodes(9),
            workloads=[Workload(name="a"), Workload(name="b")],
            pod_sets=sets,
            edges=problem(1, 1, edges=[(0, 1)]).edges,
        )
    )
    assert finish(parts(books, range(3))) == [(0, 1, 2)]


def near(*pairs: tuple[int, int]) -> list[Affinity]:
    return [Affinity(domain=HOST, subjects=[one], selects=[other]) for one, other in pairs]


@pytest.mark.parametrize(
    ("cpu", "replicas", "expected"),
    [
        pytest.param([0, 0, 0, 0, 0, 0, 0, 9], 1, [(2, 1, 0), (3,)], id="few nodes take them: its end first"),
        pytest.param([0, 0, 0, 0, 0, 0, 0, 5], 2, [(2,), (3,), (1, 0)], id="not as often as is asked"),
        pytest.param(2, 1, [(2, 1), (3, 0)], id="none takes all: who is placed first comes first"),
    ],
)
def test_what_must_share_a_node_is_one_part(cpu: int, replicas: int, expected: list[tuple[int, ...]]) -> None:
    """Calls to another one count less."""
    asked = problem(1, 1, 1, 1, edges=[(0, 3)] * 9, rules=near((0, 1), (1, 2)), on=nodes(cpu))
    assert finish(parts(books_of(asked), range(4), replicas)) == expected


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(500, 4000), st.integers(1, 3))
def test_every_pod_set_is_in_one_part_that_fits(workloads: int, cpu: int, replicas: int) -> None:
    asked = mesh(workloads, 3, nodes=cluster(8, 2, cpu=cpu))
    books = books_of(asked)
    found = finish(parts(books, range(workloads), replicas))
    assert sorted(row for part in found for row in part) == list(range(workloads))
    for part in found:
        need = sum(asked.pod_sets[row].request for row in part) * replicas
        assert len(part) == 1 or (need <= asked.nodes.free[0]).all()


@pytest.mark.parametrize("first", range(11))
def test_a_slice_of_boutique_cuts_no_more_than_it_must_on_nodes_of_one_core(first: int) -> None:
    """Whoever is named first: 270 of 1270 milli-cores are apart, and no such pod sets have fewer than two edges."""
    asked = boutique(nodes=cluster(24, 4, cpu=1000))
    edges = [(edge.caller + first, edge.callee + first) for edge in asked.edges]
    turned = [Edge(caller=caller % 11, callee=callee % 11) for caller, callee in edges]
    sets = [replace(asked.pod_sets[(row - first) % 11], workload=row) for row in range(11)]
    books = books_of(replace(asked, edges=turned, pod_sets=sets))
    assert cut_cost(books, finish(parts(books, range(11)))) == 2.0


def test_boutique_is_one_part_where_a_node_has_room_for_it() -> None:
    assert finish(parts(books_of(boutique()), range(11))) == [tuple(range(11))]


@pytest.mark.parametrize(
    ("cpu", "rows"),
    [
        pytest.param([0, 0, 0, 0, 0, 0, 0, 2], [], id="no node has room"),
        pytest.param([9, 0, 0, 0, 0, 0, 0, 0], [0], id="none that the first may use"),
        pytest.param([0, 0, 0, 0, 0, 0, 0, 9], [0, 1, 2], id="one for all"),
    ],
)
def test_members_of_a_part_are_asked_only_while_a_node_is_left(
    cpu: list[int], rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked at each refused bond, 1300 pod sets near one took 0.8 s without a pause."""
    asked = problem(1, 1, 1, on=nodes(cpu), mask=HOST == 7)
    books = books_of(asked)
    asked_for: list[int] = []
    can = books.can

    def counted(row: int) -> Bools:
        asked_for.append(row)
        return can(row)

    monkeypatch.setattr(books, "can", counted)
    assert _some_node_takes(books, [0, 1, 2], np.array([3])) is (len(rows) == 3)
    assert asked_for == rows


@pytest.mark.parametrize(("callers", "called"), [(30, 30), (300, 300), (1, 900), (700, 50), (3, 1000)])
def test_pod_sets_that_are_all_different_have_no_more_links_than_they_need(callers: int, called: int) -> None:
    sets = [PodSet(workload=w, replicas=1, request=np.array([1])) for w in [0] * callers + [1] * called]
    books = books_of(replace(problem(1, 1, edges=[(0, 1)]), pod_sets=sets))
    links = finish(_links(books, range(len(sets)), UNLIMITED))
    assert all(links.values()), "each pod set has one"
    pairs = sum(map(len, links.values())) // 2
    assert pairs == (callers * called if callers * called <= MOST_PAIRS else max(callers, called))
    assert sorted(row for part in finish(parts(books, range(len(sets)))) for row in part) == list(range(len(sets)))
